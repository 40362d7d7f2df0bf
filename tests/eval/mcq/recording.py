"""A fake server that keeps what it was sent, and an MCQ run as other tools read it."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from tests.runs.e2e import Server
from uncanny.demo.server.app import FakeServerOptions, application
from uncanny.eval.mcq.data.items import Answer, Item

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
# Servers of tests end by themselves, whatever becomes of the test.
LIFE_S = 600.0


@dataclass(frozen=True, slots=True)
class Sent:
    """One request body, whichever protocol it was in. `pictures` are the bytes of image files."""

    body: dict[str, Any]
    roles: tuple[str, ...]
    kinds: tuple[str, ...]
    system: str
    text: str
    pictures: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class RecordingServer(Server):
    bodies: list[bytes] = field(default_factory=list)

    def sent(self) -> list[Sent]:
        return [_read(orjson.loads(body)) for body in self.bodies]


@contextmanager
def recording(
    refuse: Callable[[Sent], bool] = lambda _: False, fail: Callable[[Sent], bool] = lambda _: False
) -> Iterator[RecordingServer]:
    """A server on a thread of this process. What `fail` picks gets status 400; `refuse` picks refusals."""
    bodies: list[bytes] = []
    ready: list[tuple[int, asyncio.AbstractEventLoop, asyncio.Event]] = []
    started = threading.Event()

    @web.middleware
    async def keep(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.method != "POST":
            return await handler(request)
        bodies.append(await request.read())
        sent = _read(orjson.loads(bodies[-1]))
        if fail(sent):
            return web.json_response({"error": {"message": "too odd", "type": "invalid"}}, status=400)
        if refuse(sent):
            return web.json_response(_refusal())
        return await handler(request)

    async def serve() -> None:
        app = application(FakeServerOptions())
        app.middlewares.append(keep)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        end = asyncio.Event()
        ready.append((runner.addresses[0][1], asyncio.get_running_loop(), end))
        started.set()
        try:
            await asyncio.wait_for(end.wait(), LIFE_S)
        finally:
            await runner.cleanup()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert started.wait(60)
    port, loop, end = ready[0]
    try:
        yield RecordingServer(f"http://127.0.0.1:{port}", bodies)
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join(60)


def _refusal() -> dict[str, Any]:
    message = {"role": "assistant", "content": None, "refusal": "I would rather not."}
    return {
        "id": "x",
        "object": "chat.completion",
        "created": 0,
        "model": "any",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def _read(body: dict[str, Any]) -> Sent:
    turns = body["messages"]
    system = _words(
        body.get("system") or "".join(_words(t["content"]) for t in turns if t["role"] == "system")
    )
    content = [part for turn in turns if turn["role"] == "user" for part in _parts(turn["content"])]
    pictures = [part for part in content if part["type"] != "text"]
    return Sent(
        body=body,
        roles=tuple(turn["role"] for turn in turns if turn["role"] != "system"),
        kinds=tuple("text" if part["type"] == "text" else "image" for part in content),
        system=system,
        text=_words(content),
        pictures=tuple(map(_bytes, pictures)),
    )


def _parts(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _words(content: Any) -> str:
    return "".join(part["text"] for part in _parts(content) if part["type"] == "text")


def _bytes(part: dict[str, Any]) -> bytes:
    if part["type"] == "image":
        return base64.b64decode(part["source"]["data"])
    return base64.b64decode(part["image_url"]["url"].partition(",")[2])


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class McqRun:
    """A run folder of `mcq run`."""

    path: Path

    @property
    def file(self) -> Path:
        return self.path / "answers.jsonl"

    def answers_list(self) -> list[Answer]:
        return [Answer.model_validate_json(line) for line in self.file.read_bytes().splitlines()]

    def answers(self) -> dict[str, Answer]:
        """All answers by `item/question`, checked: each once, in order."""
        answers = self.answers_list()
        keys = [f"{answer.id}/{answer.question}" for answer in answers]
        assert keys == sorted(set(keys))
        return dict(zip(keys, answers, strict=True))

    def raw(self) -> dict[str, str | None]:
        return {key: answer.raw for key, answer in self.answers().items()}

    def calls(self) -> list[dict[str, Any]]:
        return [orjson.loads(line) for line in (self.path / "calls.jsonl").read_bytes().splitlines()]

    def manifest(self) -> dict[str, Any]:
        manifest: dict[str, Any] = orjson.loads((self.path / "run.json").read_bytes())
        return manifest


def rewritten(items_file: Path, change: Callable[[Item], dict[str, Any]]) -> None:
    """Change items of a file in place: `change` gives the fields that become others."""
    lines = []
    for line in items_file.read_bytes().splitlines():
        record = orjson.loads(line)
        lines.append(orjson.dumps(record | change(Item.model_validate(record))))
    items_file.write_bytes(b"\n".join(lines) + b"\n")
