"""The graph of detection: what the second turn is depends on the first, and failures stay where they are."""

from __future__ import annotations

from typing import cast

import pytest

from tests.agents.test_source_detector import LIST, Conversation
from tests.client.scripted import Line, in_turn, text_response, texts
from uncanny.agents.source_detector import Verdict
from uncanny.errors import ModelUnusableError, RequestRejectedError
from uncanny.graphs.detect import DetectState, detect_graph
from uncanny.prompts import prompt_set
from uncanny.schema import Source


async def walk(*lines: Line) -> tuple[DetectState, Conversation]:
    conversation = Conversation(*lines)
    state = await detect_graph().ainvoke({"image": "a.png"}, context=conversation.image)
    return cast(DetectState, state), conversation


async def test_generated_leads_to_the_anomalies() -> None:
    state, conversation = await walk(text_response("yes"), text_response(LIST))
    assert state["verdict"] == Verdict("yes", "generated")
    assert [anomaly.name for anomaly in state["listing"].anomalies] == ["Hand"]
    assert "description" not in state
    assert "failure" not in state
    assert [call.step for call in conversation.scope.calls] == [1, 2]


async def test_real_leads_to_the_content() -> None:
    state, _ = await walk(text_response("no"), text_response("A dog."))
    assert (state["verdict"].source, state["description"]) == ("real", "A dog.")
    assert "listing" not in state


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
    state, conversation = await walk(*lines)
    assert state["verdict"].source is None
    assert set(state) == {"image", "verdict"}
    assert len(conversation.requests) == len(lines)


async def test_a_failed_first_turn_is_a_failure_without_a_verdict() -> None:
    state, conversation = await walk(RequestRejectedError("too large"))
    assert set(state) == {"image", "failure"}
    assert state["failure"].step == 1
    assert len(conversation.requests) == 1


@pytest.mark.parametrize("verdict", ["yes", "no"])
async def test_a_failed_second_turn_leaves_the_verdict(verdict: str) -> None:
    state, _ = await walk(text_response(verdict), RequestRejectedError("too large"))
    assert set(state) == {"image", "verdict", "failure"}
    assert state["failure"].step == 2


async def walk_independent(**answers: Line) -> tuple[DetectState, Conversation]:
    """The two calls go side by side: each gets the answer by the name of its text."""
    asked = {prompt_set("detect")[name].fill(): in_turn(line) for name, line in answers.items()}
    conversation = Conversation(script=lambda request: asked[texts(request)[-1]](request))
    graph = detect_graph("independent")
    state = await graph.ainvoke({"image": "a.png"}, context=conversation.image)
    return cast(DetectState, state), conversation


@pytest.mark.parametrize(("raw", "source"), [("yes", "generated"), ("no", "real"), ("Who knows?", None)])
async def test_independent_calls_are_made_whatever_the_verdict_and_see_nothing_of_each_other(
    raw: str, source: Source | None
) -> None:
    state, conversation = await walk_independent(source=text_response(raw), anomalies=text_response(LIST))
    assert state["verdict"] == Verdict(raw, source)
    assert [anomaly.name for anomaly in state["listing"].anomalies] == ["Hand"]
    assert set(state) == {"image", "verdict", "listing"}
    assert sorted(call.step for call in conversation.scope.calls) == [1, 2]
    assert [[message.role for message in each.messages] for each in conversation.requests] == [
        ["system", "user"]
    ] * 2
    assert conversation.requests[0].messages[0] == conversation.requests[1].messages[0]


async def test_a_refusal_is_a_verdict_of_none_and_the_anomalies_are_still_listed() -> None:
    state, _ = await walk_independent(
        source=text_response("I will not.", "refusal"), anomalies=text_response("No anomalies found.")
    )
    assert (state["verdict"].source, state["verdict"].refused) == (None, True)
    assert state["listing"].anomalies == ()


async def test_a_failed_independent_call_leaves_the_other() -> None:
    state, _ = await walk_independent(source=RequestRejectedError("too large"), anomalies=text_response(LIST))
    assert set(state) == {"image", "failure", "listing"}
    state, _ = await walk_independent(source=text_response("yes"), anomalies=RequestRejectedError("no"))
    assert set(state) == {"image", "verdict", "listing_failure"}
    assert state["listing_failure"].step == 2
    state, _ = await walk_independent(
        source=RequestRejectedError("too large"), anomalies=RequestRejectedError("no")
    )
    assert set(state) == {"image", "failure", "listing_failure"}


@pytest.mark.parametrize("ended", ["source", "anomalies"])
async def test_what_ends_the_run_is_raised_when_both_calls_are_back(ended: str) -> None:
    answers: dict[str, Line] = {"source": text_response("yes"), "anomalies": text_response(LIST)}
    with pytest.raises(ModelUnusableError, match="no such model"):
        await walk_independent(**answers | {ended: ModelUnusableError("no such model")})


async def test_what_ends_the_run_is_raised() -> None:
    with pytest.raises(ModelUnusableError, match="no such model"):
        await walk(ModelUnusableError("no such model"))
