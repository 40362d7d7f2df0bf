"""One generation: repairs, longer answers, refusals, and what the call log says of each."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest

from tests.client.scripted import (
    WARMING,
    ScriptedProvider,
    always,
    busy,
    client_of,
    generate,
    guarded,
    in_turn,
    make_request,
    picture,
    text_response,
    texts,
)
from tests.virtual_time import virtual_time
from uncanny.agents.common.context import schema_of
from uncanny.answers.forms import OBJECTS
from uncanny.client.budget import Budget
from uncanny.client.calls import CallScope
from uncanny.client.client import MOST_OUTPUT_TOKENS, REPAIRS
from uncanny.errors import (
    AnswerError,
    ModelUnusableError,
    ProviderError,
    RefusedError,
    RequestRejectedError,
    TruncatedError,
)
from uncanny.models.base import Sampling, Tokens


async def test_an_answer_that_reads_takes_one_call() -> None:
    model = ScriptedProvider(in_turn("7"))
    scope = CallScope("a.png")
    request = make_request(agent="Counter", step=2, subject="cup", sample=1)
    assert await generate(client_of(model), request, scope) == 7
    assert model.requests == [request]
    (call,) = scope.calls
    assert (call.image, call.agent, call.step, call.object, call.sample) == ("a.png", "Counter", 2, "cup", 1)
    assert (call.outcome, call.answer, call.detail) == ("answered", "7", None)
    assert (call.prompt, call.asked, call.sees_image) == ("count@1", "What is it?", False)
    assert (call.attempt, call.repair, call.replayed, call.model) == (1, 0, False, "script/one")


async def test_a_repair_shows_the_model_its_prompt_its_answer_and_the_error() -> None:
    model = ScriptedProvider(in_turn("many", "a few", "3"))
    scope = CallScope("a.png")
    first = make_request("How many?", picture())
    assert await generate(client_of(model), first, scope) == 3
    for repair, bad in zip(model.requests[1:], ["many", "a few"], strict=True):
        assert repair.messages[: len(first.messages)] == first.messages
        assert [turn.role for turn in repair.messages[len(first.messages) :]] == ["assistant", "user"]
        # Only the last bad answer stands there, not both.
        assert texts(repair)[len(first.messages) :] == [bad, f"Again: '{bad}' is no number"]
    assert [(call.outcome, call.repair) for call in scope.calls] == [
        ("unparseable", 0),
        ("unparseable", 1),
        ("answered", 2),
    ]
    assert [call.detail for call in scope.calls] == ["'many' is no number", "'a few' is no number", None]
    assert scope.calls[1].asked == "Again: 'many' is no number"


async def test_there_are_at_most_two_repairs() -> None:
    model = ScriptedProvider(always("many"))
    with pytest.raises(AnswerError, match="'many' is no number"):
        await generate(client_of(model))
    assert len(model.requests) == 1 + REPAIRS == 3


async def test_an_empty_answer_can_be_repaired_too() -> None:
    model = ScriptedProvider(in_turn("", "1"))
    assert await generate(client_of(model)) == 1
    assert texts(model.requests[1], "assistant") == ["(empty)"]


async def test_a_truncated_answer_is_generated_again_with_twice_the_tokens_up_to_the_most() -> None:
    model = ScriptedProvider(always(text_response("1", "length")))
    scope = CallScope("a.png")
    with pytest.raises(TruncatedError, match="cut off at 16000 output tokens"):
        await generate(client_of(model), scope=scope)
    limits = [request.sampling.max_output_tokens for request in model.requests]
    assert limits == [2_000, 4_000, 8_000, MOST_OUTPUT_TOKENS]
    # Read as a whole, "1" would have been a valid answer.
    assert {call.outcome for call in scope.calls} == {"unparseable"}
    assert scope.calls[0].detail == "cut off at 2000 output tokens"


@pytest.mark.parametrize(("first", "limits"), [(9_000, [9_000, 16_000]), (20_000, [20_000])])
async def test_the_room_never_shrinks_and_stops_at_the_most(first: int, limits: list[int]) -> None:
    model = ScriptedProvider(always(text_response("", "length")))
    with pytest.raises(TruncatedError):
        await generate(client_of(model), make_request(sampling=Sampling(max_output_tokens=first)))
    assert [request.sampling.max_output_tokens for request in model.requests] == limits


async def test_a_repair_keeps_the_room_and_gets_more_when_it_is_cut_off() -> None:
    script = in_turn(text_response("1", "length"), "many", text_response("1", "length"), "1")
    model = ScriptedProvider(script)
    assert await generate(client_of(model)) == 1
    assert [request.sampling.max_output_tokens for request in model.requests] == [2_000, 4_000, 4_000, 8_000]
    assert [len(request.messages) for request in model.requests] == [2, 2, 4, 4]


@pytest.mark.parametrize(("text", "message"), [("I cannot.", "I cannot."), (" ", "refused without words")])
async def test_a_refusal_is_neither_repaired_nor_retried(text: str, message: str) -> None:
    model = ScriptedProvider(in_turn(text_response(text, "refusal")))
    scope = CallScope("a.png")
    with pytest.raises(RefusedError, match=message):
        await generate(client_of(model), scope=scope)
    assert [(call.outcome, call.answer) for call in scope.calls] == [("refused", text)]


async def test_a_rejected_request_is_never_sent_again() -> None:
    model = ScriptedProvider(in_turn(RequestRejectedError("too many pixels")))
    scope = CallScope("a.png")
    with pytest.raises(RequestRejectedError):
        await generate(client_of(model), scope=scope)
    assert [(call.outcome, call.answer, call.detail) for call in scope.calls] == [
        ("error", "", "too many pixels")
    ]


@virtual_time
async def test_the_four_outcomes_stay_apart_in_the_log() -> None:
    script = in_turn(busy(), "many", busy(), text_response("No.", "refusal"))
    scope = CallScope("a.png")
    model_client = client_of(ScriptedProvider(script))
    with pytest.raises(RefusedError):
        await generate(model_client, scope=scope)
    await generate(client_of(ScriptedProvider(in_turn("4"))), scope=scope)
    assert [call.outcome for call in scope.calls] == ["error", "unparseable", "error", "refused", "answered"]
    assert [call.attempt for call in scope.calls] == [1, 2, 3, 4, 1]
    assert [call.input_tokens for call in scope.calls] == [None, 100, None, 100, 100]


@virtual_time
async def test_an_overloaded_server_gets_fewer_calls_at_once() -> None:
    own = guarded(ScriptedProvider(in_turn(busy(), "1")))
    before = own.limiter.limit
    await generate(client_of(own))
    assert own.limiter.limit < before
    assert own.limiter.active == 0


@pytest.mark.parametrize("line", [busy(), RequestRejectedError("x"), ModelUnusableError("x")])
@virtual_time
async def test_a_slot_is_given_back_whatever_happens(line: ProviderError) -> None:
    own = guarded(ScriptedProvider(in_turn(line, "1")))
    with contextlib.suppress(RequestRejectedError, ModelUnusableError):
        await generate(client_of(own))
    assert own.limiter.active == 0


@virtual_time
async def test_every_call_is_seen_as_it_ends() -> None:
    seen: list[str] = []
    model_client = client_of(
        ScriptedProvider(in_turn(busy(), "x", "1")), on_call=lambda call: seen.append(call.outcome)
    )
    await generate(model_client)
    assert seen == ["error", "unparseable", "answered"]


@virtual_time
async def test_the_budget_books_what_was_used_also_for_answers_nobody_could_read() -> None:
    budget = Budget(max_tokens=10_000)
    model = ScriptedProvider(in_turn("x", busy(), "1"))
    await generate(client_of(model, budget=budget))
    assert budget.spent.tokens == 220


async def test_the_budget_books_the_worst_case_where_usage_is_not_reported() -> None:
    budget = Budget(max_tokens=10_000, max_cost_usd=100.0)
    model = ScriptedProvider(in_turn(text_response("1", tokens=Tokens())))
    await generate(client_of(guarded(model, price=0.001, worst=900), budget=budget))
    assert budget.spent.tokens == 900
    assert budget.spent.cost_usd == pytest.approx(0.9)


async def test_images_are_not_warmed_up_where_the_provider_keeps_no_prefixes() -> None:
    scope = CallScope("a.png")
    await generate(
        client_of(ScriptedProvider(in_turn("1"))),
        make_request("?", picture()),
        scope,
    )
    assert not scope.warm


async def test_calls_without_an_image_wait_for_no_prefix() -> None:
    scope = CallScope("a.png")
    model = ScriptedProvider(in_turn("1"), capabilities=WARMING)
    await generate(client_of(model), make_request("?"), scope)
    assert not scope.warm


async def test_free_and_constrained_calls_are_one_prefix_unless_the_schema_comes_first() -> None:
    free, bound = make_request("?", picture()), make_request("!", picture(), schema=schema_of(OBJECTS))
    for schema_first, prefixes in ((False, 1), (True, 2)):
        scope = CallScope("a.png")
        capabilities = replace(WARMING, schema_in_prefix=schema_first)
        model_client = client_of(ScriptedProvider(always("1"), capabilities=capabilities))
        await generate(model_client, free, scope)
        await generate(model_client, bound, scope)
        assert len(scope.warm) == prefixes
