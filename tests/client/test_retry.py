"""How often and after how long a call is tried again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.client.scripted import (
    Line,
    ScriptedProvider,
    always,
    busy,
    client_of,
    generate,
    guarded,
    in_turn,
    make_request,
    text_response,
)
from tests.virtual_time import virtual_time
from uncanny.client.calls import CallScope
from uncanny.client.client import ModelClient
from uncanny.client.endpoint import (
    ATTEMPTS,
    FAILURES,
    FIRST_WAIT_S,
    LONGEST_ASKED_WAIT_S,
    LONGEST_WAIT_S,
    REFUSALS,
    TOTAL_S,
    Breaker,
    Retries,
)
from uncanny.errors import (
    ModelDownError,
    ProviderError,
    RefusedError,
    RequestRejectedError,
    TransientError,
)
from uncanny.models.base import ModelRequest, ModelResponse

PATIENCE_S = 60.0  # that of `guarded`


class Attempts:
    """Attempts that fail with these errors in turn. `waits` are the seconds between them.

    After each failure the model answers somebody else, unless `outage`. An attempt takes `lasts_s`.
    """

    def __init__(self, *errors: TransientError, outage: bool = False, lasts_s: float = 0.0) -> None:
        self.errors, self.outage, self.lasts_s = errors, outage, lasts_s
        self.waits: list[float] = []

    async def run(self) -> None:
        breaker = Breaker("any/model", PATIENCE_S)
        retries = Retries(breaker, "a.png")
        for error in self.errors:
            await asyncio.sleep(self.lasts_s)
            if not self.outage:
                breaker.succeeded()
            began = now()
            await retries.wait(error)
            self.waits.append(now() - began)


def now() -> float:
    return asyncio.get_running_loop().time()


def failure(number: int, retry_after: float | None = None) -> TransientError:
    return TransientError(f"failure {number}", kind="server", retry_after=retry_after)


@virtual_time
async def test_nothing_is_slept_without_a_failure() -> None:
    assert await generate(client_of(ScriptedProvider(in_turn("1")))) == 1
    assert now() == 0


@virtual_time
async def test_it_waits_as_long_as_retry_after_says_within_reason() -> None:
    attempts = Attempts(failure(1, 7.5), failure(2, 86_400.0))
    await attempts.run()
    assert attempts.waits == pytest.approx([7.5, LONGEST_ASKED_WAIT_S])


@pytest.mark.parametrize("retry_after", [None, 0.0, 1e-9])
@virtual_time
async def test_left_to_itself_it_waits_a_random_time_below_a_growing_bound(retry_after: float | None) -> None:
    attempts = Attempts(*(failure(number, retry_after) for number in range(100)), outage=True)
    await attempts.run()
    longest = min(LONGEST_WAIT_S, 2 * PATIENCE_S / FAILURES)
    bounds = [min(FIRST_WAIT_S * 2**number, longest) for number in range(100)]
    assert all(0 < wait <= bound + 1e-9 for wait, bound in zip(attempts.waits, bounds, strict=True))
    assert len(set(attempts.waits)) == len(attempts.waits)
    assert max(attempts.waits) > longest / 2


@virtual_time
async def test_after_the_last_attempt_the_last_error_is_raised() -> None:
    attempts = Attempts(*(failure(number) for number in range(1, 20)))
    with pytest.raises(TransientError, match=f"failure {ATTEMPTS}"):
        await attempts.run()
    assert len(attempts.waits) == ATTEMPTS - 1 == 5


@virtual_time
async def test_who_is_refused_as_too_many_is_asked_more_often() -> None:
    refusals = (TransientError("too many", kind="http_429") for _ in range(100))
    others = (failure(number) for number in range(1, ATTEMPTS))
    attempts = Attempts(*others, *refusals)
    with pytest.raises(TransientError, match="too many"):
        await attempts.run()
    assert len(attempts.waits) == ATTEMPTS - 1 + REFUSALS - 1


@virtual_time
async def test_attempts_that_take_long_are_fewer() -> None:
    attempts = Attempts(*(failure(number) for number in range(20)), lasts_s=TOTAL_S / 3)
    with pytest.raises(TransientError):
        await attempts.run()
    assert len(attempts.waits) == 2


@pytest.mark.parametrize(
    "error",
    [RequestRejectedError("x"), RefusedError("x"), ModelDownError("x"), ProviderError("x")],
)
@virtual_time
async def test_only_what_may_pass_is_tried_again(error: ProviderError) -> None:
    model = ScriptedProvider(in_turn(error))
    with pytest.raises(type(error)):
        await generate(client_of(model))
    assert (len(model.requests), now()) == (1, 0)


@virtual_time
async def test_a_repair_has_its_own_attempts() -> None:
    script = in_turn(*[busy()] * (ATTEMPTS - 1), "many", *[busy()] * (ATTEMPTS - 1), "1")
    model = ScriptedProvider(script)
    own = guarded(model)

    async def others() -> None:
        while True:  # the model answers others meanwhile, so failures are the request's own
            own.breaker.succeeded()
            await asyncio.sleep(0.01)

    answering = asyncio.create_task(others())
    assert await generate(client_of(own)) == 1
    answering.cancel()
    assert len(model.requests) == 2 * ATTEMPTS


def during(
    begin_s: float, end_s: float, line: Line, every_s: float = 0.1
) -> Callable[[ModelRequest], Awaitable[Line]]:
    """A model that answers after `every_s`, with `line` from `begin_s` to `end_s`."""

    async def answer(_: ModelRequest) -> ModelResponse | ProviderError:
        await asyncio.sleep(every_s)
        return line if begin_s <= now() < end_s else text_response("1")

    return answer


async def answered_calls(model_client: ModelClient, image: str, calls: int) -> int:
    """How many of so many calls about an image, one after the other, were answered."""
    scope = CallScope(image)
    for number in range(calls):
        await generate(model_client, make_request(f"{image} {number}"), scope)
    return len([call for call in scope.calls if call.outcome == "answered"])


CONNECTION = TransientError("refused", kind="connection")
DOWN = TransientError("status 500", kind="http_500")


@pytest.mark.slow
@pytest.mark.parametrize("line", [DOWN, CONNECTION, busy(), busy(0.5)], ids=str)
@pytest.mark.parametrize("lasts_s", [8, 30, PATIENCE_S - 2])
@virtual_time
async def test_an_outage_shorter_than_patience_fails_nothing(line: TransientError, lasts_s: float) -> None:
    model = ScriptedProvider(during(2, 2 + lasts_s, line))
    model_client = client_of(model)
    answered = await asyncio.gather(*(answered_calls(model_client, f"{n}.png", 30) for n in range(30)))
    assert answered == [30] * 30


@pytest.mark.parametrize("line", [DOWN, CONNECTION], ids=str)
@virtual_time
async def test_an_outage_longer_than_patience_ends_the_model_then(line: TransientError) -> None:
    model_client = client_of(ScriptedProvider(during(2, 1e9, line)))
    ended = await asyncio.gather(
        *(answered_calls(model_client, f"{n}.png", 99) for n in range(30)), return_exceptions=True
    )
    assert {type(end) for end in ended} == {ModelDownError}
    assert PATIENCE_S <= now() - 2 < 2 * PATIENCE_S + LONGEST_WAIT_S


@virtual_time
async def test_an_image_a_server_stumbles_over_fails_soon_while_others_are_answered() -> None:
    async def answer(request: ModelRequest) -> ModelResponse | ProviderError:
        await asyncio.sleep(0.2)
        return DOWN if "bad.png" in str(request.messages[-1].parts) else text_response("1")

    model = ScriptedProvider(answer)
    model_client = client_of(model)
    others = asyncio.gather(*(answered_calls(model_client, f"{n}.png", 200) for n in range(5)))
    with pytest.raises(TransientError, match="status 500"):
        await answered_calls(model_client, "bad.png", 1)
    assert now() < 20
    assert sum("bad.png" in str(request.messages[-1].parts) for request in model.requests) == ATTEMPTS
    assert await others == [200] * 5


@virtual_time
async def test_an_image_alone_that_a_server_stumbles_over_fails_when_patience_is_over() -> None:
    scope = CallScope("bad.png")
    own = guarded(ScriptedProvider(always(DOWN)))
    model_client = client_of(own)
    ended = await asyncio.gather(
        *(generate(model_client, make_request(str(n)), scope) for n in range(6)), return_exceptions=True
    )
    assert {type(end) for end in ended} == {TransientError}
    assert PATIENCE_S <= now() < PATIENCE_S + LONGEST_WAIT_S
    assert len(scope.calls) >= FAILURES
    assert own.unavailable is None


@virtual_time
async def test_an_image_alone_fails_soon_where_patience_is_short() -> None:
    own = guarded(ScriptedProvider(always(DOWN)), patience_s=1.0)
    with pytest.raises(TransientError, match="status 500"):
        await generate(client_of(own), make_request("0"), CallScope("bad.png"))
    assert 1 <= now() <= FAILURES * FIRST_WAIT_S


@pytest.mark.parametrize("images", [1, 2])
@virtual_time
async def test_a_server_that_hangs_is_given_up_when_patience_for_four_timeouts_is_over(images: int) -> None:
    async def hang(_: ModelRequest) -> ProviderError:
        await asyncio.sleep(0.5)
        return TransientError("no answer", kind="timeout", overloaded=True)

    own = guarded(ScriptedProvider(hang), concurrency=images, timeout_s=0.5, patience_s=2.0)
    model_client = client_of(own)
    ended = await asyncio.gather(
        *(generate(model_client, make_request(str(n)), CallScope(f"{n}.png")) for n in range(images)),
        return_exceptions=True,
    )
    assert {type(end) for end in ended} == {TransientError if images == 1 else ModelDownError}
    # The first failure, patience, the longest wait, and the call that ends it.
    assert 2.5 <= now() <= 0.5 + 2.0 + FIRST_WAIT_S + 0.5


@virtual_time
async def test_a_server_never_reached_is_not_waited_for_beyond_patience() -> None:
    own = guarded(ScriptedProvider(always(CONNECTION)), patience_s=2.0)
    with pytest.raises(ModelDownError, match="cannot be reached"):
        await generate(client_of(own), make_request("0"), CallScope("0.png"))
    assert 2 <= now() <= 2 + FIRST_WAIT_S


@virtual_time
async def test_a_model_that_was_given_up_is_tried_again_after_its_rest() -> None:
    down = True
    model = ScriptedProvider(lambda _: DOWN if down else text_response("200"))
    own = guarded(model, patience_s=10.0, rest_s=30.0)
    model_client = client_of(own)

    async def ask(number: int) -> int:
        return await generate(model_client, make_request(str(number)), CallScope("the same name"))

    ended = await asyncio.gather(*map(ask, range(4)), return_exceptions=True)
    assert {type(each) for each in ended} == {ModelDownError}
    calls = len(model.requests)
    with pytest.raises(ModelDownError):
        await ask(4)
    assert len(model.requests) == calls  # it rests: nobody is asked
    await asyncio.sleep(30)
    with pytest.raises(ModelDownError):
        await ask(5)
    assert len(model.requests) == calls + 1  # the breaker kept its count: one failure is enough
    await asyncio.sleep(30)
    down = False
    assert await ask(6) == 200
    assert own.unavailable is None


@virtual_time
async def test_calls_that_hang_for_ever_end_an_image_too() -> None:
    async def hang(_: ModelRequest) -> ProviderError:
        await asyncio.sleep(120)
        return TransientError("no answer", kind="timeout", overloaded=True)

    with pytest.raises(TransientError, match="no answer"):
        await answered_calls(client_of(ScriptedProvider(hang)), "bad.png", 1)
    assert now() < 900


@virtual_time
async def test_a_retry_after_of_zero_does_not_make_six_calls_at_once() -> None:
    model = ScriptedProvider(in_turn(*[busy(0.0)] * 5, "1"))
    assert await generate(client_of(model)) == 1
    assert now() > 0.5
