"""The first call about an image goes ahead alone, so that the others find its prefix computed."""

from __future__ import annotations

import asyncio

from tests.client.scripted import (
    WARMING,
    ScriptedProvider,
    busy,
    client_of,
    generate,
    in_turn,
    make_request,
    picture,
    text_response,
    texts,
)
from tests.virtual_time import virtual_time
from uncanny.client.calls import CallScope
from uncanny.errors import RequestRejectedError
from uncanny.models.base import ModelRequest, ModelResponse


class Warming:
    """A model with a prefix cache whose calls end when the test says so, each by its text."""

    def __init__(self) -> None:
        self.gates: dict[str, asyncio.Event] = {}
        self.failing: set[str] = set()
        self.model = ScriptedProvider(self.script, capabilities=WARMING)
        self.model_client = client_of(self.model)
        self.scope = CallScope("a.png")

    async def script(self, request: ModelRequest) -> ModelResponse:
        text = texts(request, "user")[0]
        await self.gates.setdefault(text, asyncio.Event()).wait()
        if text in self.failing:
            raise RequestRejectedError("x")
        return text_response("1")

    def start(self, *names: str, image: bytes = b"one") -> list[asyncio.Task[int]]:
        requests = (make_request(name, picture(image)) for name in names)
        return [asyncio.create_task(generate(self.model_client, request, self.scope)) for request in requests]

    async def end(self, *names: str) -> None:
        for name in names:
            self.gates.setdefault(name, asyncio.Event()).set()
        await self.settled()

    async def settled(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    def sent(self) -> list[str]:
        return [texts(request, "user")[0] for request in self.model.requests]


async def test_the_first_call_about_an_image_goes_ahead_alone_and_then_all() -> None:
    warming = Warming()
    tasks = warming.start("a", "b", "c", "d")
    await warming.settled()
    assert warming.sent() == ["a"]
    await warming.end("a")
    assert warming.sent() == ["a", "b", "c", "d"]
    await warming.end("b", "c", "d")
    assert await asyncio.gather(*tasks) == [1, 1, 1, 1]


async def test_another_image_waits_for_nobody() -> None:
    warming = Warming()
    tasks = [*warming.start("a", "b"), *warming.start("c", image=b"two")]
    await warming.settled()
    assert warming.sent() == ["a", "c"]
    await warming.end("a", "b", "c")
    await asyncio.gather(*tasks)


async def test_the_others_go_on_when_the_first_fails() -> None:
    warming = Warming()
    warming.failing.add("a")
    tasks = warming.start("a", "b", "c")
    await warming.end("a", "b", "c")
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(end) for end in ended] == [RequestRejectedError, int, int]


async def test_the_others_go_on_when_the_first_is_cancelled() -> None:
    warming = Warming()
    first, *others = warming.start("a", "b", "c")
    await warming.settled()
    first.cancel()
    await warming.end("b", "c")
    assert await asyncio.gather(*others) == [1, 1]


@virtual_time
async def test_the_first_may_be_tried_again_while_the_others_run() -> None:
    model = ScriptedProvider(in_turn(busy(), "1", "1"), capabilities=WARMING)
    model_client = client_of(model)
    scope = CallScope("a.png")
    requests = [make_request(name, picture()) for name in "ab"]
    assert await asyncio.gather(*(generate(model_client, request, scope) for request in requests)) == [1, 1]
    assert len(model.requests) == 3


async def test_while_draining_nothing_new_is_sent_and_what_is_in_flight_comes_back() -> None:
    warming = Warming()
    tasks = [*warming.start("a"), *warming.start("b", image=b"two")]
    await warming.settled()
    assert warming.model_client.in_flight() == 2
    warming.model_client.drain()
    tasks += warming.start("c", image=b"three")
    await warming.end("a", "b", "c")
    assert warming.model_client.in_flight() == 0
    assert [task.done() for task in tasks] == [True, True, False]
    tasks[2].cancel()
