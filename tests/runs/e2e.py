"""What end-to-end tests share: a fake server, the command as a process and in this one, and a run as read."""

from __future__ import annotations

import asyncio
import io
import os
import re
import sqlite3
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

import orjson
import pytest
from PIL import Image

from uncanny.cli import main
from uncanny.demo.server.app import FakeServerOptions, running
from uncanny.records.answer_cache import AnswerCache
from uncanny.schema import Annotation

SOURCE = Path(__file__).parents[2] / "src"
PROVIDERS = ("OPENAI", "ANTHROPIC", "VLLM", "OPENAI_COMPATIBLE")
KEYS = {f"{provider}_API_KEY": "any-key" for provider in PROVIDERS}
NO_CHANGE: Mapping[str, str | None] = MappingProxyType({})
PROGRESS = re.compile(r"[\d,]+(/[\d,]+)? \w+(\n|,? [·\d])")
# They speak the protocol of OpenAI: what is theirs alone has tests of its own, whole runs are slow tests.
VLLM, COMPATIBLE = (pytest.param(each, marks=pytest.mark.slow) for each in ("vllm", "openai-compatible"))
# Servers of tests end by themselves, whatever becomes of the test.
SERVER_LIFE_S = 900.0
# One call at a time: faults strike by the number of the request, so the same ones every time.
IN_ORDER = ("--concurrency", "1")


@dataclass(frozen=True, slots=True)
class Done:
    """A command that has ended."""

    code: int
    out: str
    err: str

    @property
    def told(self) -> str:
        """Standard error without the lines that only tell how far the run is."""
        return "".join(line for line in self.err.splitlines(keepends=True) if not PROGRESS.match(line))

    def json(self) -> Any:
        return orjson.loads(self.out)


@dataclass(frozen=True, slots=True)
class Server:
    """A fake server somewhere. `url` is its root, without `/v1`."""

    url: str

    @property
    def v1(self) -> str:
        return self.url + "/v1"

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def stats(self) -> dict[str, Any]:
        with urllib.request.urlopen(self.url + "/stats", timeout=30) as reply:
            found: dict[str, Any] = orjson.loads(reply.read())
        return found

    def requests(self) -> int:
        return int(self.stats()["requests"])

    def asked(self, provider: str = "openai", name: str = "any") -> tuple[str, ...]:
        """The options that send a run to this server."""
        url = self.url if provider == "anthropic" else self.v1
        return "--model", f"{provider}/{name}", "--base-url", url


@contextmanager
def serving(**options: Any) -> Iterator[Server]:
    """A fake server on a thread of this process; leaving ends it and cuts its connections."""
    started: list[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]] = []
    ready = threading.Event()

    async def serve() -> None:
        end = asyncio.Event()
        try:
            async with running(FakeServerOptions(**options)) as url:
                started.append((url, asyncio.get_running_loop(), end))
                ready.set()
                await asyncio.wait_for(end.wait(), SERVER_LIFE_S)
        finally:
            ready.set()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(60)
    assert started, "the fake server did not start"
    url, loop, end = started[0]
    try:
        yield Server(url)
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join(60)


@contextmanager
def serving_process(*arguments: str) -> Iterator[Server]:
    """A fake server as a process of its own."""
    command = ("fake-server", "--max-seconds", str(SERVER_LIFE_S), *arguments)
    with start(*command) as process:
        try:
            assert process.stdout is not None
            yield Server(process.stdout.readline().decode().split()[-1])
        finally:
            process.terminate()
            process.communicate(timeout=30)


def environment(extra: Mapping[str, str | None] = NO_CHANGE) -> dict[str, str]:
    """This process's environment with made-up keys; None takes a variable away."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith(("_API_KEY", "_BASE_URL"))}
    kept["PYTHONPATH"] = os.pathsep.join(filter(None, (str(SOURCE), os.environ.get("PYTHONPATH"))))
    wanted: dict[str, str | None] = {**kept, **KEYS, **extra}
    return {name: value for name, value in wanted.items() if value is not None}


class Started(subprocess.Popen[bytes]):
    """A process that nobody waits for once its test has failed."""

    def __exit__(self, kind: type[BaseException] | None, *more: Any) -> None:
        if kind is not None:
            self.kill()
        super().__exit__(kind, *more)


def start(
    *arguments: object, env: Mapping[str, str | None] = NO_CHANGE, file_limit_kib: int | None = None
) -> Started:
    """`uncanny …` as a process, to be waited for or killed by the caller.

    With `file_limit_kib` no file can grow beyond it: a full disk that needs no disk.
    """
    limited = ["sh", "-c", f'ulimit -f {file_limit_kib}; exec "$@"', "sh"] if file_limit_kib else []
    return Started(
        [*limited, sys.executable, "-m", "uncanny", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(env),
    )


def uncanny(
    *arguments: object,
    env: Mapping[str, str | None] = NO_CHANGE,
    timeout_s: float = 100.0,
    file_limit_kib: int | None = None,
) -> Done:
    """`uncanny …` as a process, to its end."""
    with start(*arguments, env=env, file_limit_kib=file_limit_kib) as process:
        return finish(process, timeout_s)


def finish(process: subprocess.Popen[bytes], timeout_s: float = 100.0) -> Done:
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return Done(process.returncode, out.decode(), err.decode())


def uncanny_here(*arguments: object, env: Mapping[str, str | None] = NO_CHANGE) -> Done:
    """The same command line within this process, for tests that are not about processes: a second faster."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    with (
        patch.dict(os.environ, environment(env), clear=True),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as end,
    ):
        main([str(each) for each in arguments])
    for stream in (out, err):
        stream.seek(0)
    assert isinstance(end.value.code, int)
    done = Done(end.value.code, out.read(), err.read())
    assert "\ufdd0" not in done.out + done.err, "a mark of `uncanny.wording` was printed"
    return done


def edit_answers(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change every call that the answer cache in `folder` keeps."""

    async def edit() -> None:
        cache = AnswerCache(folder)
        for key, value in rows:
            calls = orjson.loads(value)
            for call in calls:
                change(call)
            await cache.put(key, orjson.dumps(calls))
        cache.close()

    with sqlite3.connect(folder / "answers.db") as database:
        rows = database.execute("SELECT key, value FROM answers").fetchall()
    database.close()
    asyncio.run(edit())


def pictures(folder: Path, number: int, first: int = 0, size: tuple[int, int] = (32, 24)) -> Path:
    """`number` small PNG files, each different, `p00.png` and so on."""
    folder.mkdir(parents=True, exist_ok=True)
    for index in range(first, first + number):
        picture = Image.new("RGB", size, (index % 256, 90, 160))
        picture.putpixel((index % 32, index % 24), (255, 255, index % 256))
        picture.save(folder / f"p{index:02d}.png")
    return folder


@dataclass(frozen=True, slots=True)
class Run:
    """A run folder as other tools read it."""

    path: Path

    def records(self) -> list[Annotation]:
        """All records, checked: every line validates strictly, one an image, in order of names."""
        lines = (self.path / "annotations.jsonl").read_bytes().splitlines()
        found = [Annotation.model_validate_json(line) for line in lines]
        names = [record.image for record in found]
        assert names == sorted(set(names))
        for record in found:
            check_record(record)
        return found

    def record(self, name: str) -> Annotation:
        return next(record for record in self.records() if record.image.endswith(name))

    def statuses(self) -> Counter[str]:
        return Counter(record.status for record in self.records())

    def calls(self) -> list[dict[str, Any]]:
        """All calls; none twice, none of an image without a record."""
        found = [orjson.loads(line) for line in (self.path / "calls.jsonl").read_bytes().splitlines()]
        recorded = {record.image for record in self.records()}
        assert {call["image"] for call in found} <= recorded
        return found

    def manifest(self) -> dict[str, Any]:
        found: dict[str, Any] = orjson.loads((self.path / "run.json").read_bytes())
        return found


def check_record(record: Annotation) -> None:
    """What must hold for every record, however the models behaved."""
    assert (record.status == "ok") == (not record.errors), record
    assert all(error.message and error.kind for error in record.errors), record
    if record.status in ("failed", "unreadable"):
        assert not record.anomalies, record
    for anomaly in record.anomalies:
        assert type(anomaly.severity) is int, anomaly
        assert 0 <= anomaly.severity <= 100, anomaly
        assert 1 <= len(anomaly.name.strip()) <= 200, anomaly
        assert anomaly.phenomenon.strip(), anomaly
        assert anomaly.reasoning.strip(), anomaly


def check_no_traceback(done: Done) -> None:
    assert "Traceback" not in done.err + done.out
    assert 'File "' not in done.err + done.out
