"""The queue against a model of it, through any order of what users, workers and deaths do to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import select

from uncanny.errors import ConflictError, NotFoundError
from uncanny.service import ENDED, STATES, Ended, State
from uncanny.service.answers import Job
from uncanny.service.service import Service
from uncanny.service.store.jobs import MOST_STRIKES
from uncanny.service.store.tables import jobs

LONG_S, OVER_S = 50.0, -1.0


@dataclass
class Expected:
    """A job as it should be. `expired`: its lease has run out."""

    state: State = "queued"
    attempt: int = 0
    expired: bool = False
    cancel: bool = False
    strikes: int = 0
    mark: int = 0
    mark_at_claim: int = 0

    def strike(self, more: int) -> None:
        self.strikes = 0 if self.mark > self.mark_at_claim else self.strikes + more


class Queue(RuleBasedStateMachine):
    """Claims are kept for ever, so that workers taken for dead come back at any time."""

    service: Service
    ids = Bundle("ids")
    claims = Bundle("claims")

    def __init__(self) -> None:
        super().__init__()
        self.expected: dict[str, Expected] = {}
        # Queued jobs, in the order in which they are taken.
        self.order: list[str] = []
        with self.service.database.write() as connection:
            connection.execute(jobs.delete())

    @rule(target=ids)
    def submit(self) -> str:
        job = self.service.jobs.submit("annotate", {}, by="ann")
        self.expected[job.id] = Expected()
        self.order.append(job.id)
        return job.id

    @rule(target=claims, dies=st.booleans())
    def claim(self, dies: bool) -> object:
        candidates = [*self._dead(), *self.order]
        job = self.service.jobs.claim("w", OVER_S if dies else LONG_S)
        for job_id in candidates:
            expected = self.expected[job_id]
            if expected.state == "running":
                expected.strike(1)
            else:
                self.order.remove(job_id)
            expected.attempt += 1
            expected.mark_at_claim = expected.mark
            expected.state, expected.expired = "running", dies
            if expected.strikes < MOST_STRIKES:
                assert job is not None
                assert (job.id, job.attempt, job.state) == (job_id, expected.attempt, "running")
                return job
            expected.state, expected.expired = "failed", False
        assert job is None
        return multiple()

    @rule(job=claims, further=st.integers(0, 3), dies=st.booleans())
    def beat(self, job: Job, further: int, dies: bool) -> None:
        answer = self.service.jobs.beat(job, OVER_S if dies else LONG_S, mark=further)
        if not self._holds(job):
            assert answer == "lost"
            return
        expected = self.expected[job.id]
        assert answer == ("cancel" if expected.cancel else "held")
        expected.mark = max(expected.mark, further)
        expected.expired = dies

    @rule(job=claims, state=st.sampled_from(ENDED))
    def end(self, job: Job, state: Ended) -> None:
        assert self.service.jobs.end(job, state, exit_code=0) == self._holds(job)
        if self._holds(job):
            self.expected[job.id].state = state
            self.expected[job.id].expired = False

    @rule(job=claims, died=st.sampled_from([None, "words"]))
    def requeue(self, job: Job, died: str | None) -> None:
        assert self.service.jobs.requeue(job, died=died) == self._holds(job)
        if self._holds(job):
            expected = self.expected[job.id]
            if died is not None:
                expected.strike(4)
            expected.mark_at_claim = expected.mark
            expected.state, expected.expired = "queued", False
            self.order.append(job.id)

    @rule(job_id=ids)
    def cancel(self, job_id: str) -> None:
        if job_id not in self.expected:
            with pytest.raises(NotFoundError):
                self.service.jobs.cancel(job_id)
            return
        self.service.jobs.cancel(job_id)
        expected = self.expected[job_id]
        if expected.state in ("queued", "running"):
            expected.cancel = True
        if expected.state == "queued":
            expected.state = "cancelled"
            self.order.remove(job_id)

    @rule(job_id=ids)
    def retry(self, job_id: str) -> None:
        expected = self.expected.get(job_id)
        if expected is None or expected.state not in ENDED:
            with pytest.raises(NotFoundError if expected is None else ConflictError):
                self.service.jobs.retry(job_id)
            return
        self.service.jobs.retry(job_id)
        expected.state, expected.cancel, expected.strikes = "queued", False, 0
        self.order.append(job_id)

    @rule(job_id=ids)
    def delete(self, job_id: str) -> None:
        expected = self.expected.get(job_id)
        if expected is None or expected.state not in ENDED:
            with pytest.raises(NotFoundError if expected is None else ConflictError):
                self.service.jobs.delete(job_id)
            return
        self.service.jobs.delete(job_id)
        del self.expected[job_id]

    @invariant()
    def nothing_is_lost_or_doubled(self) -> None:
        found = self.service.jobs.page(limit=1000)
        assert found.next is None
        assert {job.id: (job.state, job.attempt) for job in found.jobs} == {
            job_id: (each.state, each.attempt) for job_id, each in self.expected.items()
        }
        assert len(found.jobs) == len({job.id for job in found.jobs})
        counts = self.service.jobs.counts()
        assert counts == {state: sum(job.state == state for job in found.jobs) for state in STATES}

    def _holds(self, job: Job) -> bool:
        expected = self.expected.get(job.id)
        return expected is not None and (expected.state, expected.attempt) == ("running", job.attempt)

    def _dead(self) -> list[str]:
        """Running jobs whose leases have run out, in the order in which they were put into the queue."""
        with self.service.database.read() as connection:
            rows = connection.execute(select(jobs.c.id).order_by(jobs.c.due_at, jobs.c.seq)).all()
        return [job_id for (job_id,) in rows if self.expected[job_id].expired]


@pytest.fixture
def queue(tmp_path: Path, address: str | None) -> Iterator[type[Queue]]:
    with Service.open(tmp_path, database=address) as opened:
        yield type("QueueHere", (Queue,), {"service": opened})


@pytest.mark.parametrize(
    "address", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)], indirect=True
)
def test_the_queue_does_as_its_model(queue: type[Queue]) -> None:
    run_state_machine_as_test(queue, settings=settings(stateful_step_count=40, deadline=None))
