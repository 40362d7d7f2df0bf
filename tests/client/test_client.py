"""Routing, fallback, single flight and warm prefixes, with scripted models behind the real client."""

from __future__ import annotations

import asyncio

import pytest

from tests.client.scripted import (
    ScriptedProvider,
    always,
    busy,
    client_of,
    generate,
    guarded,
    in_turn,
    make_request,
    number,
    text_response,
)
from tests.virtual_time import in_virtual_time, virtual_time
from uncanny.client.budget import Budget
from uncanny.client.calls import CallRecord, CallScope
from uncanny.client.client import ModelClient
from uncanny.client.endpoint import Endpoint
from uncanny.client.waiting import Ticket
from uncanny.errors import (
    AnswerError,
    BudgetError,
    ModelDownError,
    ModelUnusableError,
    RefusedError,
    RequestRejectedError,
    TransientError,
    TruncatedError,
    UsageError,
)
from uncanny.models.base import ModelRequest, ModelResponse
from uncanny.records.answer_cache import AnswerCache


def no_key() -> ModelUnusableError:
    return ModelUnusableError("the key is wrong")


async def test_each_agent_has_its_own_route_and_the_others_the_general_one() -> None:
    general, special = (ScriptedProvider(always("1")) for _ in range(2))
    model_client = ModelClient({"": [guarded(general)], "Counter": [guarded(special)]})
    await generate(model_client, make_request(agent="Counter"))
    await generate(model_client, make_request(agent="Other"))
    assert (len(general.requests), len(special.requests)) == (1, 1)


async def test_a_model_that_cannot_be_used_falls_back_once_and_is_not_called_again() -> None:
    first = ScriptedProvider(in_turn(no_key()), name="script/first")
    second = ScriptedProvider(always("2"), name="script/second")
    fallbacks: list[tuple[str, str]] = []

    def note(endpoint: Endpoint, error: ModelUnusableError) -> None:
        fallbacks.append((endpoint.name, error.message))

    scope = CallScope("a.png")
    model_client = client_of(first, second, on_fallback=note)
    assert [await generate(model_client, make_request(str(n)), scope) for n in range(3)] == [2, 2, 2]
    assert fallbacks == [("script/first", "the key is wrong")]
    assert [call.model for call in scope.calls] == ["script/first"] + 3 * ["script/second"]
    assert [call.outcome for call in scope.calls] == ["error"] + 3 * ["answered"]


@pytest.mark.parametrize(
    "line",
    [RequestRejectedError("x"), text_response("no", "refusal"), text_response("x"), busy()],
    ids=lambda x: str(x)[:12],
)
@virtual_time
async def test_the_fallback_is_for_unavailable_models_not_for_failed_generations(line: ModelResponse) -> None:
    second = ScriptedProvider(always("2"))
    model_client = client_of(ScriptedProvider(always(line)), second)
    with pytest.raises((RequestRejectedError, RefusedError, AnswerError, TransientError)):
        await generate(model_client)
    assert not second.requests


async def test_when_no_model_is_left_the_last_error_is_raised() -> None:
    endpoints = [guarded(ScriptedProvider(in_turn(no_key()))), guarded(ScriptedProvider(in_turn(no_key())))]
    model_client = ModelClient({"": endpoints})
    for _ in range(2):
        with pytest.raises(ModelUnusableError, match="the key is wrong"):
            await generate(model_client)


def test_the_breaker_opens_on_a_model_that_only_rejects() -> None:
    async def main() -> None:
        model = ScriptedProvider(always(RequestRejectedError("no images")))
        model_client = client_of(model)
        for n in range(9):
            with pytest.raises(RequestRejectedError):
                await generate(model_client, make_request(str(n)))
        with pytest.raises(ModelDownError, match="rejected each of the first 10 requests: no images"):
            await generate(model_client)

    in_virtual_time(main())


async def test_a_call_that_waited_for_a_slot_of_an_unavailable_model_is_not_made() -> None:
    model = ScriptedProvider(always(no_key()))
    model_client = client_of(guarded(model, concurrency=1))
    ended = await asyncio.gather(
        *(generate(model_client, make_request(str(n))) for n in range(9)), return_exceptions=True
    )
    assert {type(end) for end in ended} == {ModelUnusableError}
    assert len(model.requests) == 1


async def test_a_spent_budget_stops_a_dear_model_and_lets_a_free_one_go_on() -> None:
    budget = Budget(max_cost_usd=0.5)
    dear = ScriptedProvider(always("1"), name="script/dear")
    free = ScriptedProvider(always("2"), name="script/free")
    with pytest.raises(BudgetError, match=r"\$0 of \$0.5000"):
        await generate(client_of(guarded(dear, price=0.001), budget=budget))
    assert await generate(client_of(guarded(dear, price=0.001), free, budget=budget)) == 2
    assert not dear.requests


async def test_of_equal_requests_at_once_one_is_sent(cache: AnswerCache) -> None:
    model = ScriptedProvider(always("5"))
    model_client = client_of(model, cache=cache)
    scopes = [CallScope(f"{n}.png") for n in range(6)]
    assert await asyncio.gather(*(generate(model_client, scope=scope) for scope in scopes)) == [5] * 6
    assert len(model.requests) == 1
    assert [scope.calls[0].image for scope in scopes] == [f"{n}.png" for n in range(6)]
    assert sorted(scope.calls[0].replayed for scope in scopes) == [False] + 5 * [True]


async def test_when_the_first_of_equal_requests_fails_the_next_one_is_sent(cache: AnswerCache) -> None:
    model = ScriptedProvider(in_turn(text_response("no", "refusal"), "5"))
    model_client = client_of(model, cache=cache)
    ended = await asyncio.gather(*(generate(model_client) for _ in range(4)), return_exceptions=True)
    assert [type(end) for end in ended] == [RefusedError, int, int, int]
    assert len(model.requests) == 2


async def test_when_the_first_of_equal_requests_is_cancelled_the_next_one_is_sent(cache: AnswerCache) -> None:
    reached, release = asyncio.Event(), asyncio.Event()

    async def script(_: ModelRequest) -> ModelResponse:
        reached.set()
        await release.wait()
        return text_response("5")

    model = ScriptedProvider(script)
    model_client = client_of(model, cache=cache)
    first, *others = [asyncio.create_task(generate(model_client)) for _ in range(3)]
    await asyncio.wait_for(reached.wait(), 60)
    first.cancel()
    release.set()
    assert await asyncio.gather(*others) == [5, 5]
    assert len(model.requests) == 2


async def test_samples_of_the_same_request_stay_apart(cache: AnswerCache) -> None:
    model = ScriptedProvider(in_turn("1", "2", "3"))
    model_client = client_of(model, cache=cache)
    for _ in range(2):
        assert [await generate(model_client, make_request(sample=n)) for n in range(3)] == [1, 2, 3]
    assert len(model.requests) == 3


@pytest.mark.parametrize(
    "line", [text_response("x"), text_response("1", "refusal"), text_response("1", "length"), busy()], ids=str
)
@virtual_time
async def test_what_is_no_answer_is_not_kept(line: ModelResponse, cache: AnswerCache) -> None:
    with pytest.raises((AnswerError, RefusedError, TruncatedError, TransientError)):
        await generate(client_of(ScriptedProvider(always(line)), cache=cache))
    assert len(cache) == 0


async def test_an_answer_is_on_disk_before_its_slot_is_released(
    cache: AnswerCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = guarded(ScriptedProvider(always("1")))
    slots: list[int] = []
    put = cache.put

    async def watched(key: str, value: bytes) -> None:
        await put(key, value)
        slots.append(own.limiter.active)

    monkeypatch.setattr(cache, "put", watched)
    await generate(client_of(own, cache=cache))
    assert slots == [1]


async def test_a_cache_that_cannot_be_written_is_an_error(
    cache: AnswerCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(_key: str, _value: bytes) -> None:
        raise UsageError("the disk is full")

    monkeypatch.setattr(cache, "put", full)
    own = guarded(ScriptedProvider(always("1")))
    with pytest.raises(UsageError, match="the disk is full"):
        await generate(client_of(own, cache=cache))
    assert own.limiter.active == 0


async def test_the_answer_of_a_fallback_is_replayed_without_calling_the_first(cache: AnswerCache) -> None:
    second = ScriptedProvider(always("2"), name="script/second")
    broken = ScriptedProvider(lambda _: no_key(), name="script/first")
    await generate(client_of(broken, second, cache=cache))
    mended = ScriptedProvider(always("1"), name="script/first")
    scope = CallScope("a.png")
    assert await generate(client_of(mended, second, cache=cache), scope=scope) == 2
    assert not mended.requests
    assert [(call.model, call.replayed) for call in scope.calls] == [("script/second", True)]


async def test_endpoints_shared_by_routes_are_counted_once() -> None:
    shared = guarded(ScriptedProvider(always("1")))
    model_client = ModelClient({"": [shared], "Counter": [shared, shared]})
    async with shared.limiter.slot(Ticket(0)):
        assert model_client.in_flight() == 1


async def test_replayed_calls_reach_the_callback_as_such(cache: AnswerCache) -> None:
    seen: list[CallRecord] = []
    model_client = client_of(ScriptedProvider(in_turn("x", "1")), cache=cache, on_call=seen.append)
    await generate(model_client)
    await generate(model_client)
    assert [(call.outcome, call.replayed) for call in seen] == [
        ("unparseable", False),
        ("answered", False),
        ("unparseable", True),
        ("answered", True),
    ]
    assert number(seen[-1].answer) == 1
