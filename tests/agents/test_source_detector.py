"""What the two turns of detection put to the model, and what they make of its answers."""

from __future__ import annotations

import pytest

from tests.client.scripted import (
    Line,
    Script,
    ScriptedProvider,
    guarded,
    in_turn,
    picture,
    text_response,
    texts,
)
from uncanny.agents.common.context import ImageContext
from uncanny.agents.config import DetectConfig
from uncanny.agents.source_detector import (
    AGENT,
    Listing,
    Verdict,
    describe_content,
    judge_source,
    list_anomalies,
)
from uncanny.client.calls import CallScope
from uncanny.client.client import ModelClient
from uncanny.errors import RequestRejectedError, StepFailedError
from uncanny.models.base import ModelRequest, Sampling
from uncanny.prompts import prompt_set

IMAGE = picture(b"one")
LIST = "@1. Name: Hand\nPhenomenon: six fingers\nReasoning: five is right\nSeverity Score: 12"
YES, NO = Verdict("Yes.", "generated"), Verdict("no", "real")


class Conversation:
    """About one image, with a scripted model."""

    def __init__(
        self, *lines: Line, config: DetectConfig | None = None, script: Script | None = None
    ) -> None:
        self.model = ScriptedProvider(script or in_turn(*lines))
        model_client = ModelClient({"": [guarded(self.model)]})
        self.scope = CallScope("a.png")
        prompts = prompt_set("detect")
        self.image = ImageContext(model_client, self.scope, config or DetectConfig(), prompts, IMAGE)

    async def judge(self) -> Verdict:
        return await judge_source(self.image)

    async def list_anomalies(self, verdict: Verdict) -> Listing:
        return await list_anomalies(self.image, verdict)

    async def describe(self, verdict: Verdict) -> str:
        return await describe_content(self.image, verdict)

    @property
    def requests(self) -> list[ModelRequest]:
        return self.model.requests


async def test_turn_one_asks_about_the_picture_at_temperature_zero_without_a_schema() -> None:
    conversation = Conversation(text_response("no"))
    assert await conversation.judge() == NO
    (request,) = conversation.requests
    system, user = request.messages
    assert (system.role, user.role) == ("system", "user")
    assert user.parts[0] is IMAGE
    assert user.shared == 1
    assert request.sampling == Sampling(0.0, None, 2_000)
    assert request.schema is None
    assert (request.agent, request.step) == (AGENT, 1)


@pytest.mark.parametrize("turn", ["anomalies", "content"])
async def test_turn_two_repeats_turn_one_to_the_byte_and_adds_the_models_own_answer(turn: str) -> None:
    conversation = Conversation(text_response("Yes."), text_response(LIST))
    verdict = await conversation.judge()
    await (conversation.list_anomalies(verdict) if turn == "anomalies" else conversation.describe(verdict))
    first, second = conversation.requests
    assert second.messages[:2] == first.messages
    answer, question = second.messages[2:]
    assert (answer.role, answer.parts) == ("assistant", ("Yes.",))
    assert (question.role, question.parts) == ("user", (prompt_set("detect")[turn].fill(),))
    assert (second.schema, second.step) == (None, 2)


async def test_thoughts_are_not_sent_back() -> None:
    conversation = Conversation(
        text_response("<think>Six fingers?\n</think>\n\n Yes. \n"), text_response("No anomalies found.")
    )
    verdict = await conversation.judge()
    assert verdict.source == "generated"
    assert verdict.raw.startswith("<think>")
    listing = await conversation.list_anomalies(verdict)
    assert texts(conversation.requests[1], "assistant") == ["Yes."]
    assert (listing.raw, listing.anomalies) == ("No anomalies found.", ())


async def test_a_verdict_that_is_not_clear_is_asked_for_once_more_in_the_fixed_form() -> None:
    conversation = Conversation(text_response("It could be either."), text_response("Verdict: Yes"))
    assert await conversation.judge() == Verdict("Verdict: Yes", "generated")
    first, again = conversation.requests
    assert again.messages[: len(first.messages)] == first.messages
    assert texts(again, "assistant") == ["It could be either."]
    assert "`Verdict: Yes` or `Verdict: No`" in texts(again)[-1]


@pytest.mark.parametrize("raw", ["", "Maybe.", "It could be either; I cannot tell."])
async def test_what_is_still_not_clear_is_kept_and_not_asked_a_third_time(raw: str) -> None:
    conversation = Conversation(text_response("<think>Hm."), text_response(raw))
    assert await conversation.judge() == Verdict(raw, None)
    assert len(conversation.requests) == 2
    assert texts(conversation.requests[1], "assistant") == ["(empty)"]
    assert [call.outcome for call in conversation.scope.calls] == ["answered", "answered"]


async def test_the_second_turn_follows_the_verdict_that_was_clear() -> None:
    conversation = Conversation(
        text_response("Hm."), text_response("Verdict: No"), text_response("A dog on a lawn.")
    )
    await conversation.describe(await conversation.judge())
    assert texts(conversation.requests[2], "assistant") == ["Verdict: No"]
    assert conversation.requests[2].messages[:2] == conversation.requests[0].messages


async def test_a_refusal_is_an_answer_to_turn_one_and_a_failure_of_turn_two() -> None:
    refusal = text_response("I will not look at this.", "refusal")
    assert await Conversation(refusal).judge() == Verdict("I will not look at this.", None, refused=True)
    for turn in ("list_anomalies", "describe"):
        with pytest.raises(StepFailedError, match="I will not") as failed:
            await getattr(Conversation(refusal), turn)(YES)
        assert (failed.value.record.step, failed.value.record.kind) == (2, "refused")


async def test_the_anomalies_are_read_and_kept_as_they_came() -> None:
    listing = await Conversation(text_response(LIST)).list_anomalies(YES)
    assert listing.raw == LIST
    (anomaly,) = listing.anomalies
    assert (anomaly.name, anomaly.phenomenon, anomaly.severity) == ("Hand", "six fingers", 12)


async def test_a_list_that_does_not_validate_is_asked_for_again_twice_with_the_reason() -> None:
    wrong = text_response(LIST.replace("12", "140"))
    conversation = Conversation(wrong, wrong, text_response(LIST))
    assert len((await conversation.list_anomalies(YES)).anomalies) == 1
    assert [len(request.messages) for request in conversation.requests] == [4, 6, 6]
    assert "realism 140 is outside" in texts(conversation.requests[1])[-1]
    assert conversation.requests[1].messages[:4] == conversation.requests[0].messages
    with pytest.raises(StepFailedError) as failed:
        await Conversation(wrong, wrong, wrong).list_anomalies(YES)
    assert failed.value.record.kind == "unparseable"


async def test_an_empty_description_is_asked_for_again() -> None:
    conversation = Conversation(text_response(" \n"), text_response("A dog on a lawn."))
    assert await conversation.describe(NO) == "A dog on a lawn."
    assert "the answer is empty" in texts(conversation.requests[1])[-1]


async def test_a_failed_call_of_turn_one_is_no_verdict() -> None:
    with pytest.raises(StepFailedError, match="too large") as failed:
        await Conversation(RequestRejectedError("too large")).judge()
    assert (failed.value.record.agent, failed.value.record.step) == (AGENT, 1)
    assert failed.value.record.kind == "rejected"


async def test_every_prompt_is_used_and_none_has_a_hole() -> None:
    wrong = text_response(LIST.replace("12", "140"))
    conversation = Conversation(
        text_response("yes"), wrong, text_response(LIST), text_response(""), text_response("A dog.")
    )
    verdict = await conversation.judge()
    await conversation.list_anomalies(verdict)
    await conversation.describe(verdict)
    sent = {text for request in conversation.requests for text in texts(request)}
    for name, prompt in prompt_set("detect").prompts.items():
        start = prompt.template.template.partition("$")[0]
        assert any(text.startswith(start) or f"\n{start}" in text for text in sent), name
        assert not any("$" in text for text in sent)
    ids = {prompt_set("detect")[name].id for name in ("source", "anomalies", "content")}
    assert {call.prompt for call in conversation.scope.calls} == ids


async def test_the_plan_is_what_is_sent() -> None:
    conversation = Conversation(
        text_response("yes"), config=DetectConfig(temperature=None, top_p=0.5, max_output_tokens=9)
    )
    await conversation.judge()
    assert conversation.requests[0].sampling == Sampling(None, 0.5, 9)
