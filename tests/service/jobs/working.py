"""What tests of workers share: jobs that ask a fake server, and waiting for what becomes of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.runs.e2e import Server, pictures
from uncanny.service import ENDED
from uncanny.service.answers import Job
from uncanny.service.jobs.worker import Pace, Worker
from uncanny.service.service import Service

# As fast as a busy machine allows; what takes long in a test says so itself.
PACE = Pace(lease_s=5.0, beat_s=0.1, poll_s=0.1, interrupt_s=20.0, kill_s=5.0, again_s=0.1)
LONG_S = 90.0


@contextmanager
def working(service: Service, *, jobs: int = 2, pace: Pace = PACE) -> Iterator[Worker]:
    worker = Worker(service, jobs=jobs, pace=pace)
    worker.start()
    try:
        yield worker
    finally:
        worker.stop()


def until(wanted: Callable[[], Any], what: str = "it") -> Any:
    """Wait until `wanted` gives something true, which is returned."""
    end = time.monotonic() + LONG_S
    while not (value := wanted()):
        assert time.monotonic() < end, f"{what} has not come about"
        time.sleep(0.02)
    return value


def ended(service: Service, job: Job) -> Job:
    until(lambda: service.jobs.get(job.id).state in ENDED, f"the end of {service.jobs.get(job.id)}")
    return service.jobs.get(job.id)


def ask(monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    """Have the children of this process ask `server` wherever they ask OpenAI."""
    monkeypatch.setenv("OPENAI_BASE_URL", server.v1)
    monkeypatch.setenv("OPENAI_API_KEY", "any-key")


def submit(service: Service, images: Path, kind: str = "annotate", **params: Any) -> Job:
    asked = {"images": str(images), "model": "openai/any", "schedule": "single", **params}
    return service.submit(kind, asked, by="ann")


def records(service: Service, job: Job, file: str = "run/annotations.jsonl") -> list[dict[str, Any]]:
    lines = (service.job_folder(job.id) / file).read_bytes().splitlines()
    return [orjson.loads(line) for line in lines]


def some_pictures(root: Path, number: int) -> Path:
    return pictures(root / "in", number)
