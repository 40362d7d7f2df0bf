"""Who goes first, and that nobody waits for those between it and the one it needs."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.client.scripted import (
    CAPABILITIES,
    WARMING,
    ScriptedProvider,
    client_of,
    generate,
    guarded,
    make_request,
    picture,
    text_response,
    texts,
)
from tests.virtual_time import in_virtual_time
from uncanny.client.calls import CallScope
from uncanny.client.waiting import Gate, Ticket, WaitingQueue
from uncanny.models.base import Capabilities, ModelRequest, ModelResponse
from uncanny.records.answer_cache import AnswerCache


class ImmediateCache(AnswerCache):
    """Keeps an answer at once: in virtual time nothing waits for the cache's thread."""

    async def put(self, key: str, value: bytes) -> None:
        self._commit({key: value})


class Slow:
    """A model with one slot whose calls take a second each, and inputs begun in order of their names."""

    def __init__(self, cache: AnswerCache | None = None, capabilities: Capabilities = CAPABILITIES) -> None:
        self.model = ScriptedProvider(self.script, capabilities=capabilities)
        self.model_client = client_of(guarded(self.model, concurrency=1), cache=cache)
        self.scopes = {name: CallScope(name) for name in "abcdef"}

    async def script(self, _: ModelRequest) -> ModelResponse:
        await asyncio.sleep(1)
        return text_response("1")

    def start(self, name: str, text: str, image: bytes | None = None) -> asyncio.Task[int]:
        request = make_request(text, None if image is None else picture(image))
        return asyncio.create_task(generate(self.model_client, request, self.scopes[name]))

    def sent(self) -> list[str]:
        return [texts(request, "user")[0] for request in self.model.requests]


def test_calls_of_the_input_begun_first_go_first() -> None:
    async def main() -> list[str]:
        slow = Slow()
        tasks = [slow.start(name, f"{name}{number}") for number in range(2) for name in "dcba"]
        await asyncio.gather(*tasks)
        return slow.sent()

    assert in_virtual_time(main()) == ["d0", "a0", "a1", "b0", "b1", "c0", "c1", "d1"]


def test_a_call_that_an_older_input_waits_for_goes_with_the_older_one(tmp_path: Path) -> None:
    async def main(cache: AnswerCache) -> list[str]:
        slow = Slow(cache)
        tasks = [slow.start("b", "b0"), slow.start("f", "shared")]
        await asyncio.sleep(0.1)
        tasks += [slow.start(name, f"{name}1") for name in "cde"]
        await asyncio.sleep(0.1)
        tasks.append(slow.start("a", "shared"))
        await asyncio.gather(*tasks)
        return slow.sent()

    cache = ImmediateCache(tmp_path)
    try:
        assert in_virtual_time(main(cache)) == ["b0", "shared", "c1", "d1", "e1"]
    finally:
        cache.close()


def test_so_does_the_call_that_warms_the_prefix_for_it(tmp_path: Path) -> None:
    async def main(cache: AnswerCache) -> list[str]:
        slow = Slow(cache, WARMING)
        tasks = [slow.start("b", "b0"), slow.start("f", "warms", b"f"), slow.start("f", "shared", b"f")]
        await asyncio.sleep(0.1)
        tasks += [slow.start(name, f"{name}1") for name in "cde"]
        await asyncio.sleep(0.1)
        # Another item about the same picture: its call waits for that of "f", and that for "warms". When
        # that is done the slot goes on before "shared" can wait for it.
        tasks.append(slow.start("a", "shared", b"f"))
        await asyncio.gather(*tasks)
        return slow.sent()

    cache = ImmediateCache(tmp_path)
    try:
        assert in_virtual_time(main(cache)) == ["b0", "warms", "c1", "shared", "d1", "e1"]
    finally:
        cache.close()


async def test_a_waiter_that_was_cancelled_is_passed_over() -> None:
    queue = WaitingQueue[str]()
    futures = [queue.enter(Ticket(number), str(number)) for number in (3, 1, 2)]
    futures[1].cancel()
    first = queue.first()
    assert first is not None
    assert first.wanted == "2"
    first.granted.set_result(None)
    last = queue.first()
    assert last is not None
    assert last.wanted == "3"
    last.granted.set_result(None)
    assert queue.first() is None


async def test_a_ticket_is_never_put_back_by_who_waits_for_it() -> None:
    opener = Ticket(3)
    gate = Gate(opener)
    waiting = [asyncio.create_task(gate.passed(Ticket(number))) for number in (5, 1, 4)]
    await asyncio.sleep(0)
    assert (opener.order, opener.input) == (1, 3)
    gate.open()
    await asyncio.gather(*waiting)
    await gate.passed(Ticket(9))
