"""All calls of detection: what the second turn is depends on the first, and failures stay where they are."""

from __future__ import annotations

import pytest

from tests.agents.test_source_detector import LIST, Conversation
from tests.client.scripted import Line, in_turn, text_response, texts
from uncanny.agents.config import DetectConfig
from uncanny.agents.source_detector import Detected, Verdict, detect_source
from uncanny.errors import ModelUnusableError, RequestRejectedError
from uncanny.prompts import prompt_set
from uncanny.schema import Source


async def walk(*lines: Line) -> tuple[Detected, Conversation]:
    conversation = Conversation(*lines)
    return await detect_source(conversation.image), conversation


def steps(found: Detected) -> list[int]:
    return [failure.step for failure in found.failures]


async def test_generated_leads_to_the_anomalies() -> None:
    found, conversation = await walk(text_response("yes"), text_response(LIST))
    assert found.verdict == Verdict("yes", "generated")
    assert found.listing is not None
    assert [anomaly.name for anomaly in found.listing.anomalies] == ["Hand"]
    assert found.description is None
    assert not found.failures
    assert [call.step for call in conversation.scope.calls] == [1, 2]


async def test_real_leads_to_the_content() -> None:
    found, _ = await walk(text_response("no"), text_response("A dog."))
    assert found == Detected(Verdict("no", "real"), None, "A dog.")


@pytest.mark.parametrize(
    "lines",
    [
        [text_response("Who knows?"), text_response("")],
        [text_response(""), text_response("Who knows?")],
        [text_response("Hm."), text_response("I will not.", "refusal")],
        [text_response("I will not.", "refusal")],
    ],
)
async def test_no_clear_verdict_leads_nowhere(lines: list[Line]) -> None:
    found, conversation = await walk(*lines)
    assert found.verdict is not None
    assert found.verdict.source is None
    assert found == Detected(found.verdict)
    assert len(conversation.requests) == len(lines)


async def test_a_failed_first_turn_is_a_failure_without_a_verdict() -> None:
    found, conversation = await walk(RequestRejectedError("too large"))
    assert steps(found) == [1]
    assert found == Detected(failures=found.failures)
    assert len(conversation.requests) == 1


@pytest.mark.parametrize("verdict", ["yes", "no"])
async def test_a_failed_second_turn_leaves_the_verdict(verdict: str) -> None:
    found, _ = await walk(text_response(verdict), RequestRejectedError("too large"))
    assert found.verdict is not None
    assert steps(found) == [2]
    assert found == Detected(found.verdict, failures=found.failures)


async def walk_independent(**answers: Line) -> tuple[Detected, Conversation]:
    """The two calls go side by side: each gets the answer by the name of its text."""
    asked = {prompt_set("detect")[name].fill(): in_turn(line) for name, line in answers.items()}
    config = DetectConfig(protocol="independent")
    conversation = Conversation(config=config, script=lambda request: asked[texts(request)[-1]](request))
    return await detect_source(conversation.image), conversation


@pytest.mark.parametrize(("raw", "source"), [("yes", "generated"), ("no", "real"), ("Who knows?", None)])
async def test_independent_calls_are_made_whatever_the_verdict_and_see_nothing_of_each_other(
    raw: str, source: Source | None
) -> None:
    found, conversation = await walk_independent(source=text_response(raw), anomalies=text_response(LIST))
    assert found.listing is not None
    assert [anomaly.name for anomaly in found.listing.anomalies] == ["Hand"]
    assert found == Detected(Verdict(raw, source), found.listing)
    assert sorted(call.step for call in conversation.scope.calls) == [1, 2]
    assert [[message.role for message in each.messages] for each in conversation.requests] == [
        ["system", "user"]
    ] * 2
    assert conversation.requests[0].messages[0] == conversation.requests[1].messages[0]


async def test_a_refusal_is_a_verdict_of_none_and_the_anomalies_are_still_listed() -> None:
    found, _ = await walk_independent(
        source=text_response("I will not.", "refusal"), anomalies=text_response("No anomalies found.")
    )
    assert found.verdict is not None
    assert (found.verdict.source, found.verdict.refused) == (None, True)
    assert found.listing is not None
    assert found.listing.anomalies == ()


async def test_a_failed_independent_call_leaves_the_other() -> None:
    found, _ = await walk_independent(source=RequestRejectedError("too large"), anomalies=text_response(LIST))
    assert (found.verdict, steps(found)) == (None, [1])
    assert found.listing is not None
    found, _ = await walk_independent(source=text_response("yes"), anomalies=RequestRejectedError("no"))
    assert (found.verdict, found.listing, steps(found)) == (Verdict("yes", "generated"), None, [2])
    found, _ = await walk_independent(
        source=RequestRejectedError("too large"), anomalies=RequestRejectedError("no")
    )
    assert (found.verdict, found.listing, steps(found)) == (None, None, [1, 2])


@pytest.mark.parametrize("ended", ["source", "anomalies"])
async def test_what_ends_the_run_is_raised_when_both_calls_are_back(ended: str) -> None:
    answers: dict[str, Line] = {"source": text_response("yes"), "anomalies": text_response(LIST)}
    with pytest.raises(ModelUnusableError, match="no such model"):
        await walk_independent(**answers | {ended: ModelUnusableError("no such model")})


async def test_what_ends_the_run_is_raised() -> None:
    with pytest.raises(ModelUnusableError, match="no such model"):
        await walk(ModelUnusableError("no such model"))
