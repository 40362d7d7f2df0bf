"""How long a FastAPI app's event loop is held up while 50 requests at once have images annotated.

The app and the fake server are processes of their own, the app with a priority above all others where that is
allowed. A monitor in its loop sleeps for 5 ms again and again: what it sleeps longer is a stall. Start-up is
not measured, the first request is.
"""

from __future__ import annotations

import asyncio
import gc
import io
import os
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, Literal

import httpx2
import numpy as np
from fastapi import FastAPI, Request
from PIL import Image

from benchmarks.common import fake_server, figure, sized

Way = Literal["annotate", "pillow", "alone"]
REQUESTS: Final = 50
CONCURRENCY: Final = 8
# Of the monitor, and how long a stall may be.
BEAT_S: Final = 0.005
WANTED_MS: Final = 50.0


@dataclass(frozen=True, slots=True)
class Held:
    """What one burst did: stalls of the loop, calls at the server, TLS contexts made, seconds it took.

    `idle_ms` is the longest stall in a second before it, of an app that does nothing: that is the machine.
    """

    idle_ms: float
    longest_ms: float
    above_20_ms: int
    most_calls: int
    tls_contexts: int
    seconds: float


class Monitor:
    """Stalls of the running loop, in milliseconds."""

    def __init__(self) -> None:
        self.stalls: list[float] = []

    async def watch(self) -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(BEAT_S)
            self.stalls.append(1000 * (time.perf_counter() - began - BEAT_S))


def app(server: str) -> FastAPI:
    """A service as the documentation has it, with routes for the monitor and for one-image functions."""
    import uncanny

    os.environ["OPENAI_API_KEY"] = "any-key"
    monitor = Monitor()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        session = uncanny.Annotator("openai/any", base_url=f"{server}/v1", concurrency=CONCURRENCY)
        async with session as app.state.annotator:
            gc.collect()
            gc.freeze()  # as docs/embed.md advises: a collection stops all threads
            watching = asyncio.create_task(monitor.watch())
            yield
            watching.cancel()

    service = FastAPI(lifespan=lifespan)

    @service.post("/annotate")
    async def annotate(request: Request) -> dict[str, Any]:
        found = await request.app.state.annotator.annotate(await request.body())
        return {"status": found.status, "anomalies": len(found.anomalies)}

    @service.post("/pillow")
    async def pillow(request: Request) -> dict[str, Any]:
        image = Image.open(io.BytesIO(await request.body()))
        found = await request.app.state.annotator.annotate(image)
        return {"status": found.status, "anomalies": len(found.anomalies)}

    @service.post("/alone")
    async def alone(request: Request) -> dict[str, Any]:
        data = await request.body()
        found = await uncanny.annotate_image_async(data, model="openai/any", base_url=f"{server}/v1")
        return {"status": found.status, "anomalies": len(found.anomalies)}

    @service.get("/stalls")
    async def stalls() -> list[float]:
        stalls, monitor.stalls = monitor.stalls, []
        return stalls

    @service.get("/contexts")
    async def contexts() -> int:
        return sum(type(each) is ssl.SSLContext for each in gc.get_objects())

    return service


def burst(way: Way, images: list[bytes], latency_ms: int = 50) -> Held:
    """One burst of a request an image at a fresh app and a fresh server."""
    with fake_server("--latency-ms", str(latency_ms)) as server, _running(server) as address:
        return asyncio.run(_burst(address, server, way, images))


async def _burst(address: str, server: str, way: Way, images: list[bytes]) -> Held:
    limits = httpx2.Limits(max_connections=len(images))
    async with httpx2.AsyncClient(base_url=address, timeout=300, limits=limits) as client:
        before = (await client.get("/contexts")).json()
        await client.get("/stalls")
        await asyncio.sleep(1)
        idle = (await client.get("/stalls")).json()
        began = time.perf_counter()
        replies = await asyncio.gather(*(client.post(f"/{way}", content=image) for image in images))
        seconds = time.perf_counter() - began
        stalls = (await client.get("/stalls")).json()
        after = (await client.get("/contexts")).json()
        assert all(reply.json()["status"] == "ok" for reply in replies), [reply.text for reply in replies]
        stats = (await client.get(f"{server}/stats")).json()
    return Held(
        max(idle),
        max(stalls),
        sum(stall > 20 for stall in stalls),
        stats["max_concurrent"],
        after - before,
        seconds,
    )


@contextmanager
def _running(server: str) -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.calls.embedded", server]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
            process.wait(30)


def photograph(number: int, width: int, height: int) -> bytes:
    """A JPEG like a photograph, different for every number."""
    across = np.linspace(0, 255, width) + np.random.default_rng(number).normal(0, 6, (height, width))
    channels = [across, across[::-1], np.roll(across, 13 * (number + 1), axis=1)]
    pixels = np.stack(channels, axis=2).clip(0, 255).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", quality=90)
    return file.getvalue()


def main() -> None:
    requests, few = sized(REQUESTS, 6), sized(8, 2)
    small = [photograph(number, 1024, 768) for number in range(requests)]
    large = [photograph(number, 4000, 3000) for number in range(few)]
    for name, way, images in (
        (f"{requests} requests, 1024x768", "annotate", small),
        (f"{len(large)} requests, 4000x3000, bytes", "annotate", large),
        (f"{len(large[:4])} requests, 4000x3000, Pillow images", "pillow", large[:4]),
        (f"{requests} requests, a session each", "alone", small),
    ):
        held = burst(way, images)  # type: ignore[arg-type]
        limits = (None, None) if way == "alone" else (CONCURRENCY, 1)
        figure(f"{name}, longest stall", held.longest_ms, "ms", WANTED_MS)
        figure(f"{name}, longest stall when idle", held.idle_ms, "ms")
        figure(f"{name}, stalls above 20 ms", held.above_20_ms)
        figure(f"{name}, calls at the server at once", held.most_calls, "", limits[0])
        figure(f"{name}, TLS contexts", held.tls_contexts, "", limits[1])
        figure(f"{name}, wall time", held.seconds, "s")


def _serve(server: str) -> None:
    import socket

    import uvicorn

    # Where this is allowed, other work on the machine is not measured along with ours.
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    listening = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(app(server), log_level="error", access_log=False)).run([listening])


if __name__ == "__main__":
    _serve(sys.argv[1])
