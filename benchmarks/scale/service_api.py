"""Requests a second and how long they take, of the service's reads and verdicts, beside a bare FastAPI route.

One process serves, another one asks over 16 connections that stay open. With `UNCANNY_DATABASE` the service
keeps its jobs in that PostgreSQL instead of SQLite.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx2

from benchmarks.common import figure, sized
from benchmarks.scale.review import make_annotations

CONNECTIONS, SECONDS = 16, sized(4, 1)
JOBS, IMAGES, VERDICTS = sized(2_000, 60), sized(5_000, 100), sized(10_000, 200)
BARE = """
import uvicorn
from fastapi import FastAPI
app = FastAPI()
@app.get("/")
def bare() -> dict[str, str]:
    return {"state": "finished"}
@app.post("/")
def bare_post(body: dict[str, str]) -> dict[str, str]:
    return body
uvicorn.run(app, port=%d, log_level="error", access_log=False)
"""


class Load(NamedTuple):
    """Answers a second, milliseconds of each, and of the server's CPU an answer."""

    rate: float
    median_ms: float
    p99_ms: float
    cpu_ms: float


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="uncanny-service-"))
    try:
        job = _prepare(folder)
        with _bare() as (address, pid):
            bare = _show("bare route, GET", asyncio.run(_load(address, pid, [_get("/")])), None)
            body = b'{"decision":"accept"}'
            bare_post = _show("bare route, POST", asyncio.run(_load(address, pid, [_post("/", body)])), None)
        with _service(folder) as (address, pid):
            verdicts = _verdicts(address, job)
            for name, path in {
                "a job": f"/api/v1/jobs/{job}",
                f"50 of {JOBS:,} jobs": "/api/v1/jobs",
                "20 records": f"/api/v1/jobs/{job}/records?limit=20",
                f"20 of {IMAGES * 6:,} findings": f"/api/v1/jobs/{job}/findings?limit=20",
                "health": "/healthz",
            }.items():
                _show(name, asyncio.run(_load(address, pid, [_get(path)])), bare)
            path = f"/api/v1/jobs/{job}/verdicts"
            judged = asyncio.run(_load(address, pid, [_post(path, body) for body in verdicts]))
            _show("a verdict", judged, bare_post)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _show(name: str, load: Load, bare: Load | None) -> Load:
    other = None if bare is None else bare.rate
    figure(f"{name}, answers a second", load.rate, "", other, "bare route", wanted=None, higher=True)
    other = None if bare is None else bare.cpu_ms
    figure(f"{name}, CPU", load.cpu_ms, "ms", other, "bare route", wanted=None)
    figure(f"{name}, median", load.median_ms, "ms")
    figure(f"{name}, p99", load.p99_ms, "ms")
    return load


def _prepare(folder: Path) -> str:
    """A service with many jobs that have ended; the last one's run has findings. Returns its id."""
    from uncanny.service.service import Service

    with Service.open(folder / "data", database=os.environ.get("UNCANNY_DATABASE")) as service:
        for number in range(JOBS):
            submitted = service.jobs.submit("annotate", {"images": ["x"], "model": "demo"}, name=None, by="b")
            claimed = service.jobs.claim("benchmark", 60)
            assert claimed is not None
            service.jobs.end(claimed, "finished", exit_code=0)
            if number == JOBS // 2:
                job = submitted.id
        run = service.job_folder(job) / "run"
        run.mkdir(parents=True)
        make_annotations(run, IMAGES)
    return job


def _verdicts(address: str, job: str) -> list[bytes]:
    """A verdict on each of many findings."""
    bodies: list[bytes] = []
    with httpx2.Client(base_url=address, timeout=60) as client:
        after: str | None = None
        while len(bodies) < VERDICTS:
            query = {"limit": "200"} | ({} if after is None else {"after": after})
            page = client.get(f"/api/v1/jobs/{job}/findings", params=query).raise_for_status().json()
            for finding in page["findings"]:
                text = f'{{"finding":"{finding["id"]}","text":"{finding["text"]}","decision":"accept"}}'
                bodies.append(text.encode())
            after = page["next"]
    return bodies


def _get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()


def _post(path: str, body: bytes) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body


async def _load(address: str, pid: int, requests: Sequence[bytes]) -> Load:
    """Ask for `SECONDS`, each connection its next request as soon as it has its answer."""
    host, port = address.removeprefix("http://").split(":")
    waiting = itertools.cycle(requests)
    times: list[float] = []
    until = time.perf_counter() + SECONDS

    async def ask() -> None:
        reader, writer = await asyncio.open_connection(host, int(port))
        while (began := time.perf_counter()) < until:
            writer.write(next(waiting))
            head = await reader.readuntil(b"\r\n\r\n")
            assert head[9:11] == b"20", head
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await reader.readexactly(int(length[15:]))
            times.append(time.perf_counter() - began)
        writer.close()

    cpu = _cpu(pid)
    began = time.perf_counter()
    await asyncio.gather(*(ask() for _ in range(CONNECTIONS)))
    took, cpu = time.perf_counter() - began, _cpu(pid) - cpu
    slow = statistics.quantiles(times, n=100)
    return Load(len(times) / took, slow[49] * 1e3, slow[98] * 1e3, cpu / len(times) * 1e3)


def _cpu(pid: int) -> float:
    """Seconds of CPU that a process has taken, as Linux tells them."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _service(folder: Path) -> Iterator[tuple[str, int]]:
    command = [sys.executable, "-m", "uncanny", "serve", "--port", "0", "--jobs", "0"]
    with _process([*command, "--data", str(folder / "data")]) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1], process.pid


@contextmanager
def _bare() -> Iterator[tuple[str, int]]:
    port = 18_999
    with _process([sys.executable, "-c", BARE % port]) as process:
        address = f"http://127.0.0.1:{port}"
        while True:
            try:
                httpx2.get(address)
            except httpx2.ConnectError:
                time.sleep(0.05)
            else:
                break
        yield address, process.pid


@contextmanager
def _process(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()
