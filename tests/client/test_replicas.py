"""Several servers of one model: images stay with one, move when it dies, and come back."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from tests.client.scripted import (
    ScriptedProvider,
    always,
    busy,
    client_of,
    generate,
    guarded,
    make_request,
    picture,
    text_response,
)
from tests.virtual_time import virtual_time
from uncanny.client.calls import CallRecord, CallScope, cache_key
from uncanny.client.client import ModelClient
from uncanny.client.endpoint import Endpoint
from uncanny.client.replicas import REST_S, Replica, Replicas
from uncanny.errors import (
    ModelDownError,
    ModelUnusableError,
    ProviderError,
    RefusedError,
    RequestRejectedError,
    TransientError,
)
from uncanny.models.base import ModelRequest, ModelResponse

IMAGES = [picture(f"image {number}".encode()) for number in range(200)]
REQUESTS = [make_request(image=image) for image in IMAGES]


class Server(ScriptedProvider):
    """A replica that answers with its own number, unless it is down."""

    def __init__(self, number: int) -> None:
        super().__init__(self._line)
        self.endpoint = f"http://127.0.0.1:{8000 + number}/v1/"
        self.answer = str(number)
        self.error: ProviderError | None = None
        self.looks = 0

    def _line(self, _: ModelRequest) -> ModelResponse | ProviderError:
        return self.error or text_response(self.answer)

    async def is_up(self) -> bool:
        self.looks += 1
        return self.error is None

    async def until_up(self) -> None:
        while not await self.is_up():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(1)


class Setting:
    """Servers, the client that asks them, and what was said."""

    def __init__(self, servers: int, *, revive: Callable[[], Awaitable[None]] | None = None) -> None:
        self.servers = [Server(number) for number in range(servers)]
        self.said: list[str] = []
        self.calls: list[CallRecord] = []
        self.endpoint = guarded(self.servers[0], patience_s=60.0)
        self.replicas = Replicas(
            [
                Replica(guarded(each), f"server {number}", revive or each.until_up, waited_for=bool(revive))
                for number, each in enumerate(self.servers)
            ],
            self.endpoint.breaker,
            self.said.append,
        )
        self.endpoint.replicas = self.replicas
        self.client: ModelClient = client_of(self.endpoint, on_call=self.calls.append)

    def states(self) -> list[str]:
        return [replica.state for replica in self.replicas.members]

    async def ask(self, number: int) -> int:
        return await generate(self.client, REQUESTS[number], CallScope(f"{number}.png"))

    async def ask_all(self) -> list[int]:
        return await asyncio.gather(*map(self.ask, range(len(REQUESTS))))


def refused_connection() -> TransientError:
    return TransientError("connection refused", kind="connection")


async def test_an_image_stays_with_one_replica_and_all_get_their_share() -> None:
    setting = Setting(3)
    async with setting.replicas:
        first, again = await setting.ask_all(), await setting.ask_all()
    assert first == again
    # 200 images among three, each a throw: less than 40 for one of them is four standard deviations away.
    assert min(Counter(first).values()) > 40


async def test_questions_without_an_image_go_with_their_input() -> None:
    setting = Setting(3)
    async with setting.replicas:
        same = [await generate(setting.client, make_request(), CallScope("a.png")) for _ in range(5)]
        others = [await generate(setting.client, make_request(), CallScope(f"{n}.png")) for n in range(20)]
    assert len(set(same)) == 1
    assert set(others) == {0, 1, 2}


@virtual_time
async def test_only_the_images_of_a_dead_replica_move_and_they_come_back() -> None:
    setting = Setting(3)
    async with setting.replicas:
        before = await setting.ask_all()
        setting.servers[1].error = refused_connection()
        meanwhile = await setting.ask_all()
        asked = len(setting.servers[1].requests)
        assert await setting.ask_all() == meanwhile
        assert len(setting.servers[1].requests) == asked  # not one call more
        setting.servers[1].error = None
        await asyncio.sleep(2)
        assert await setting.ask_all() == before
    assert 1 not in meanwhile
    assert [(a, b) for a, b in zip(before, meanwhile, strict=True) if a != 1 and a != b] == []
    assert {b for a, b in zip(before, meanwhile, strict=True) if a == 1} == {0, 2}
    lost, back = setting.said
    assert lost == "server 1 is not asked for now: connection refused"
    assert back.startswith("server 1 was back after ")


async def test_records_and_keys_are_the_same_whatever_replica_answers() -> None:
    setting = Setting(2)
    for server in setting.servers:
        server.answer = "7"
    async with setting.replicas:
        await setting.ask_all()
    assert {call.model for call in setting.calls} == {"script/one"}
    told = {(call.served_model, call.answer, call.outcome, call.attempt) for call in setting.calls}
    assert told == {("script-2026", "7", "answered", 1)}
    alone = guarded(Server(0))
    assert cache_key(setting.endpoint, REQUESTS[0]) == cache_key(alone, REQUESTS[0])
    assert all(len(server.requests) > 0 for server in setting.servers)


@virtual_time
async def test_a_call_that_a_dying_replica_cuts_off_is_made_at_another_one() -> None:
    setting = Setting(2)
    async with setting.replicas:
        number = (await setting.ask_all()).index(1)
        setting.servers[1].error = refused_connection()
        assert await setting.ask(number) == 0
    assert [call.outcome for call in setting.calls[-2:]] == ["error", "answered"]
    assert setting.calls[-1].attempt == 2


@virtual_time
async def test_a_request_that_fails_twice_at_one_replica_is_made_at_the_next() -> None:
    """As when a replica hangs: its breaker takes minutes, and the request has six attempts."""
    setting = Setting(2)
    async with setting.replicas:
        number = (await setting.ask_all()).index(1)
        setting.servers[1].error = TransientError("no answer", kind="timeout", overloaded=True)
        assert await setting.ask(number) == 0
    assert [call.outcome for call in setting.calls[-3:]] == ["error", "error", "answered"]


@virtual_time
async def test_a_replica_that_only_fails_rests() -> None:
    setting = Setting(2)
    async with setting.replicas:
        mine = [number for number, answer in enumerate(await setting.ask_all()) if answer == 1]
        setting.servers[1].error = busy()
        began = asyncio.get_running_loop().time()
        while not setting.said:
            await asyncio.gather(*map(setting.ask, mine[:10]))
            await asyncio.sleep(10)
        assert asyncio.get_running_loop().time() - began >= 60  # the patience of its breaker
        asked = len(setting.servers[1].requests)
        await asyncio.gather(*map(setting.ask, mine))
        assert len(setting.servers[1].requests) == asked
        setting.servers[1].error = None
        await asyncio.sleep(REST_S + 1)
        assert await setting.ask(mine[0]) == 1


@virtual_time
async def test_after_an_error_of_the_server_it_is_looked_at() -> None:
    setting = Setting(2)
    async with setting.replicas:
        number = (await setting.ask_all()).index(1)
        setting.servers[1].error = TransientError("HTTP 500: engine dead", kind="http_500")
        assert await setting.ask(number) == 0
        assert setting.servers[1].looks > 0
        assert setting.said == ["server 1 is not asked for now: HTTP 500: engine dead"]


@virtual_time
async def test_when_no_replica_answers_patience_with_the_model_decides() -> None:
    setting = Setting(2)
    async with setting.replicas:
        await setting.ask_all()
        for server in setting.servers:
            server.error = refused_connection()
        began = asyncio.get_running_loop().time()
        with pytest.raises(ModelDownError, match="script/one failed"):
            await setting.ask_all()
    assert 60 <= asyncio.get_running_loop().time() - began < 120


@virtual_time
async def test_requests_wait_for_a_server_of_ours_that_starts_again() -> None:
    """Longer than any patience, and without a failed call meanwhile."""
    ready = asyncio.Event()
    setting = Setting(1, revive=ready.wait)  # type: ignore[arg-type]
    async with setting.replicas:
        setting.servers[0].error = refused_connection()
        asked = asyncio.gather(*map(setting.ask, range(50)))
        await asyncio.sleep(3_000)
        assert not asked.done()
        assert setting.states() == ["away"]
        failed = len(setting.calls)
        assert failed <= 8  # as many as were in flight
        setting.servers[0].error = None
        ready.set()
        assert await asked == [0] * 50
        assert setting.states() == ["up"]
    assert len(setting.calls) == failed + 50


@virtual_time
async def test_a_server_of_ours_that_is_gone_for_good_ends_the_model_with_its_reason() -> None:
    async def revive() -> None:
        await asyncio.sleep(30)
        raise ModelUnusableError("died four times: out of memory")

    setting = Setting(1, revive=revive)
    async with setting.replicas:
        setting.servers[0].error = refused_connection()
        with pytest.raises(ModelUnusableError, match="died four times: out of memory"):
            await setting.ask(0)
        with pytest.raises(ModelUnusableError, match="died four times"):
            await setting.ask(1)
    assert setting.endpoint.unavailable is not None


@virtual_time
async def test_the_others_do_the_work_of_one_that_is_gone_for_good() -> None:
    async def revive() -> None:
        raise ModelUnusableError("died four times")

    setting = Setting(2, revive=revive)
    async with setting.replicas:
        setting.servers[1].error = refused_connection()
        assert set(await setting.ask_all()) == {0}
    assert setting.said == ["server 1 is not asked any more: died four times"]
    assert setting.endpoint.unavailable is None


async def test_a_replica_that_does_not_have_the_model_is_left_out_and_named() -> None:
    setting = Setting(2)
    setting.servers[1].error = ModelUnusableError("HTTP 404: no such model")
    async with setting.replicas:
        assert set(await setting.ask_all()) == {0}
        assert setting.said == ["server 1 is not asked any more: HTTP 404: no such model"]
        setting.servers[0].error = ModelUnusableError("HTTP 404: gone here as well")
        with pytest.raises(ModelUnusableError, match="gone here as well"):
            await setting.ask(0)


async def test_each_replica_has_slots_of_its_own_and_draining_closes_all() -> None:
    setting = Setting(2)
    async with setting.replicas:
        await setting.ask_all()
        assert [server.most for server in setting.servers] == [8, 8]
        setting.client.drain()
        waiting = asyncio.gather(*map(setting.ask, range(20)))
        done, _ = await asyncio.wait([asyncio.ensure_future(waiting)], timeout=0.05)
        assert not done
        waiting.cancel()
        assert setting.client.in_flight() == 0


@virtual_time
async def test_a_request_that_waits_for_a_slot_of_a_replica_moves_when_that_dies() -> None:
    setting = Setting(2)
    async with setting.replicas:
        mine = [number for number, answer in enumerate(await setting.ask_all()) if answer == 1]
        before = len(setting.servers[1].requests)
        setting.servers[1].error = refused_connection()
        assert set(await asyncio.gather(*map(setting.ask, mine))) == {0}
        assert len(setting.servers[1].requests) - before == 8  # those that had a slot


class Mortal(Setting):
    """Servers of ours that one of the images kills, and that are back a minute later."""

    def __init__(self, servers: int, deadly: int) -> None:
        super().__init__(servers)
        self.deaths = [0] * servers
        self.at_once: list[int] = []
        for number, (replica, server) in enumerate(zip(self.replicas.members, self.servers, strict=True)):
            replica.waited_for = True
            replica.revive = partial(self._restart, number)
            replica.restarts = partial(self.deaths.__getitem__, number)
            server._script = partial(self._answer, server, IMAGES[deadly].sha256)

    async def _answer(self, server: Server, deadly: str, request: ModelRequest) -> ModelResponse:
        image = request.first_image()
        for _ in range(3):
            await asyncio.sleep(1)
            if image is not None and image.sha256 == deadly:
                server.error = refused_connection()
            if server.error is not None:
                self.at_once.append(server.now)
                raise server.error
        return text_response(server.answer)

    async def _restart(self, number: int) -> None:
        self.deaths[number] += 1
        await asyncio.sleep(60)
        self.servers[number].error = None


@pytest.mark.parametrize("servers", [1, 2])
@virtual_time
async def test_a_request_that_servers_die_of_is_given_up_and_all_others_are_answered(servers: int) -> None:
    setting = Mortal(servers, deadly=17)
    async with setting.replicas:
        answers = await asyncio.gather(*map(setting.ask, range(len(REQUESTS))), return_exceptions=True)
    (error,) = [answer for answer in answers if isinstance(answer, BaseException)]
    assert error is answers[17]
    assert isinstance(error, RequestRejectedError)
    assert "script/one: its server died 2 times while it answered this question" in str(error)
    assert sum(setting.deaths) == 2


@virtual_time
async def test_of_a_server_that_comes_and_goes_little_is_told() -> None:
    setting = Setting(2)
    async with setting.replicas:
        number = (await setting.ask_all()).index(1)
        for _ in range(20):
            setting.servers[1].error = refused_connection()
            assert await setting.ask(number) == 0
            setting.servers[1].error = None
            await asyncio.sleep(5)
            assert await setting.ask(number) == 1
    assert len(setting.said) == 6
    assert setting.said[-1].endswith(", and later losses are not told")


@virtual_time
async def test_a_server_that_runs_and_drops_connections_is_an_outage_all_the_same() -> None:
    """As when we have no file left to open: it looks well, and no call gets there."""

    async def well() -> None:
        return

    setting = Setting(1, revive=well)
    setting.servers[0]._script = always(refused_connection())
    async with setting.replicas:
        await asyncio.sleep(0)
        with pytest.raises(ModelDownError):
            await setting.ask_all()
    assert setting.said == []


@virtual_time
async def test_a_defect_in_reviving_does_not_let_requests_wait_for_ever() -> None:
    async def revive() -> None:
        raise ZeroDivisionError("a defect")

    setting = Setting(1, revive=revive)
    async with setting.replicas:
        setting.servers[0].error = refused_connection()
        with pytest.raises(ModelUnusableError, match="ZeroDivisionError: a defect"):
            await setting.ask(0)


async def test_a_refusal_is_not_the_servers_failure() -> None:
    setting = Setting(2)
    async with setting.replicas:
        for server in setting.servers:
            server._script = lambda _: text_response("no", "refusal")
        with pytest.raises(RefusedError):
            await setting.ask(0)
    assert setting.said == []
    assert setting.states() == ["up", "up"]


def test_an_endpoint_without_replicas_is_its_own_server() -> None:
    alone = guarded(ScriptedProvider(always("1")))
    assert alone.servers == (alone,)
    servers: tuple[Endpoint, ...] = Setting(2).endpoint.servers
    assert len(servers) == 2
