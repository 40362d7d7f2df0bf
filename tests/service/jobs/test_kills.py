"""Killed at random moments under load, the service loses nothing and does nothing twice.

Workers run real children, and jobs keep coming in, while processes are killed with SIGKILL. In the end each
job that was promised has finished, each image has one record, and the model was asked again only for calls
that were in flight when somebody was killed.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.runs.e2e import Server, serving_process
from tests.service.jobs.worker_process import start_worker
from tests.service.jobs.working import ask, records, some_pictures, until
from uncanny.service.service import Service

# Kills of each part; five parts are fifty.
KILLS, PARTS = 10, 5
IMAGES = 10
# Two jobs at once in each process, two calls in flight each.
IN_FLIGHT = 4

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200), pytest.mark.parametrize("part", range(PARTS))]


def test_nothing_is_lost_or_doubled_by_kills_on_sqlite(
    tmp_path: Path, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _kill_and_check(tmp_path, None, 1, part, monkeypatch)


def test_nothing_is_lost_or_doubled_by_kills_on_postgresql(
    tmp_path: Path, postgres_address: str, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _kill_and_check(tmp_path, postgres_address, 2, part, monkeypatch)


def _kill_and_check(
    folder: Path, address: str | None, processes: int, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With so many `processes` at once, of which one after the other is killed and started anew."""
    data, root, log = folder / "data", folder / "root", folder / "promised"
    root.mkdir()
    some_pictures(root, IMAGES)
    moments = random.Random(f"kills {processes} {part}")
    with serving_process("--latency-ms", "300", "--jitter-ms", "200") as server:
        ask(monkeypatch, server)
        workers = [start_worker(data, address, root, "--submit", log) for _ in range(processes)]
        for kill in range(KILLS):
            _some_calls_later(server, moments)
            chosen = kill % processes
            workers[chosen].kill()
            workers[chosen].wait()
            workers[chosen] = start_worker(data, address, root, "--submit", log)
        for worker in workers:
            worker.kill()
            worker.wait()
        assert start_worker(data, address, root, "--drain").wait(timeout=900) == 0
        requests = server.requests()

    promised = log.read_text().split()
    with Service.open(data, database=address, roots=[root]) as service:
        page = service.jobs.page(limit=1000)
        assert page.next is None
        assert len(promised) == len(set(promised)) > 0
        # A kill may come between a job's being kept and its being promised: that one is there besides.
        assert set(promised) <= {job.id for job in page.jobs}
        assert len(page.jobs) <= len(promised) + KILLS + processes
        assert {job.id: (job.state, job.error) for job in page.jobs if job.state != "finished"} == {}
        for job in page.jobs:
            images = Counter(each["image"] for each in records(service, job))
            assert len(images) == IMAGES
            assert set(images.values()) == {1}
            assert {each["status"] for each in records(service, job)} == {"ok"}
    needed = IMAGES * len(page.jobs)
    attempts = sum(job.attempt for job in page.jobs)
    print(f"{len(page.jobs)} jobs, {attempts} attempts, {needed} calls needed, {requests - needed} repeated")
    assert needed <= requests <= needed + (KILLS + processes) * IN_FLIGHT


def _some_calls_later(server: Server, moments: random.Random) -> None:
    """A random moment, counted from calls and not by the clock, which runs faster on a busy machine."""
    before, calls = server.requests(), moments.choice((0, 1, 2, 3, 4, 6))
    until(lambda: server.requests() >= before + calls or calls == 0, "the next call")
    time.sleep(moments.uniform(0, 0.4))
