"""The questions about one pair, by a real model client: early exit, both orders, asking again, failing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from itertools import product
from typing import Any

import pytest

from tests.client.scripted import ScriptedProvider, guarded, picture, text_response, texts
from uncanny.agents.realism_judge import ROLES, Judgement, PairContext, judge_pair
from uncanny.answers.verdicts import Position
from uncanny.client.calls import CallScope
from uncanny.client.client import ModelClient
from uncanny.errors import ModelUnusableError, RequestRejectedError
from uncanny.eval.realism.verdicts import Labelled, label_of
from uncanny.models.base import ModelRequest, ModelResponse, Sampling, SentImage
from uncanny.prompts import prompt_set

ORIGINAL, EDITED = picture(b"original"), picture(b"edited")
SAMPLING = Sampling(0.1, 1.0, 2_048)
Script = Mapping[str, str | None]


def images(request: ModelRequest) -> list[SentImage]:
    return [part for turn in request.messages for part in turn.parts if isinstance(part, SentImage)]


def check_of(request: ModelRequest) -> str:
    shown = images(request)
    if len(shown) == 1:
        return "first"
    return "original_first" if shown[0] is ORIGINAL else "edited_first"


class Pair:
    """One pair, a model that says what `script` has for each question, and what came of it."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.model = ScriptedProvider(self.answer)
        self.scope = CallScope("pair")

    def answer(self, request: ModelRequest) -> ModelResponse:
        verdict = self.script[check_of(request)]
        return text_response("I see." if verdict is None else f"I see.\n\nVerdict: {verdict}")

    async def judge(self) -> dict[str, Judgement[Any]]:
        model_client = ModelClient({"": [guarded(self.model)]})
        context = PairContext(model_client, self.scope, SAMPLING, prompt_set("realism"), ORIGINAL, EDITED)
        return {judgement.check: judgement for judgement in await judge_pair(context)}


def labelled(judgements: Mapping[str, Judgement[Any]]) -> Labelled:
    names = ("first", "original_first", "edited_first")
    return label_of(*(judgements[name].verdict if name in judgements else None for name in names))


@pytest.mark.parametrize("first", ["no", None])
async def test_without_a_yes_the_second_check_is_not_asked(first: str | None) -> None:
    pair = Pair({"first": first})
    state = await pair.judge()
    assert {check_of(request) for request in pair.model.requests} == {"first"}
    assert len(pair.model.requests) == (1 if first else 3)
    assert state.keys() == {"first"}
    assert labelled(state) == label_of("no" if first else None, None, None)


@pytest.mark.parametrize(
    ("original_first", "edited_first"), list(product(["first", "second", "both", None], repeat=2))
)
async def test_after_a_yes_both_orders_are_asked_and_labelled(
    original_first: Position | None, edited_first: Position | None
) -> None:
    pair = Pair({"first": "Yes", "original_first": original_first, "edited_first": edited_first})
    judgements = await pair.judge()
    assert labelled(judgements) == label_of("yes", original_first, edited_first)
    del judgements["first"]
    assert {name: judgement.verdict for name, judgement in judgements.items()} == {
        "original_first": original_first,
        "edited_first": edited_first,
    }
    assert len(pair.model.requests) == 3 + 2 * [original_first, edited_first].count(None)
    for judgement in judgements.values():
        assert (judgement.kind == "unparseable") == (judgement.verdict is None)
        assert judgement.raw is not None


async def test_both_orders_go_side_by_side() -> None:
    pair = Pair({"first": "Yes"})
    together = asyncio.Barrier(2)

    async def answer(request: ModelRequest) -> ModelResponse:
        if check_of(request) == "first":
            return text_response("Verdict: Yes")
        await asyncio.wait_for(together.wait(), 5)
        return text_response("Verdict: Both")

    pair.model = ScriptedProvider(answer)
    assert labelled(await pair.judge()) == ("deceiving", 4)


async def test_a_question_is_asked_with_our_texts_and_sampling() -> None:
    pair = Pair({"first": "Yes", "original_first": "First", "edited_first": "Both"})
    await pair.judge()
    by_name = {check_of(request): request for request in pair.model.requests}
    assert images(by_name["first"]) == [EDITED]
    assert images(by_name["original_first"]) == [ORIGINAL, EDITED]
    assert images(by_name["edited_first"]) == [EDITED, ORIGINAL]
    for name, request in by_name.items():
        assert request.sampling == SAMPLING
        assert request.schema is None
        assert (request.agent, request.subject) == (ROLES["realism" if name == "first" else "order"], name)
        assert "Verdict:" in texts(request, "user")[0]
    (system,) = {texts(request, "system")[0] for request in by_name.values()}
    assert system
    # What comes first is the same, so that a provider can use it again.
    assert by_name["edited_first"].messages[1].parts[0] is by_name["first"].messages[1].parts[0]


async def test_an_answer_without_a_verdict_is_asked_for_again_with_the_reason() -> None:
    said_so = iter(["I cannot say.", "Verdict: Perhaps", "So be it.\nVerdict: No"])
    pair = Pair({})
    pair.model = ScriptedProvider(lambda _: text_response(next(said_so)))
    state = await pair.judge()
    assert (state["first"].verdict, state["first"].raw) == ("no", "So be it.\nVerdict: No")
    assert len(pair.model.requests) == 3
    again = [texts(request, "user")[-1] for request in pair.model.requests[1:]]
    assert "no line starts with" in again[0]
    assert "'Perhaps'" in again[1]
    assert all("`Yes` or `No`" in text for text in again)
    assert [call.outcome for call in pair.scope.calls] == ["unparseable", "unparseable", "answered"]


async def test_two_repairs_and_no_more() -> None:
    pair = Pair({"first": None})
    state = await pair.judge()
    assert len(pair.model.requests) == 3
    assert (state["first"].verdict, state["first"].kind) == (None, "unparseable")
    assert state["first"].raw == "I see."


async def test_a_refusal_and_a_rejection_are_no_verdicts_and_leave_the_other_order_alone() -> None:
    def answer(request: ModelRequest) -> ModelResponse | RequestRejectedError:
        match check_of(request):
            case "first":
                return text_response("Verdict: Yes")
            case "original_first":
                return text_response("I would rather not.", "refusal")
        return RequestRejectedError("too large")

    pair = Pair({})
    pair.model = ScriptedProvider(answer)
    judgements = await pair.judge()
    assert labelled(judgements) == ("undetermined", None)
    assert (judgements["original_first"].kind, judgements["original_first"].raw) == (
        "refused",
        "I would rather not.",
    )
    assert (judgements["edited_first"].kind, judgements["edited_first"].raw) == ("rejected", None)
    assert len(pair.model.requests) == 3


@pytest.mark.parametrize("at", ["first", "edited_first"])
async def test_what_ends_the_run_is_raised(at: str) -> None:
    def answer(request: ModelRequest) -> ModelResponse | ModelUnusableError:
        if check_of(request) == at:
            return ModelUnusableError("wrong key")
        return text_response("Verdict: Yes" if check_of(request) == "first" else "Verdict: Both")

    pair = Pair({})
    pair.model = ScriptedProvider(answer)
    with pytest.raises(ModelUnusableError, match="wrong key"):
        await pair.judge()
