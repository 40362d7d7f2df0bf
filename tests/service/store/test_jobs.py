"""The queue of jobs, on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import update

from uncanny.errors import ConflictError, NotFoundError
from uncanny.service.answers import Job, JobPage, JobProgress
from uncanny.service.service import Service
from uncanny.service.store.jobs import MOST_STRIKES
from uncanny.service.store.tables import jobs

LONG_S, SHORT_S = 50.0, -1.0


def submit(service: Service, name: str | None = None) -> Job:
    return service.jobs.submit("annotate", {"images": "upload:x", "n": [1, 2.5, None]}, name=name, by="ann")


def claim(service: Service, lease_s: float = LONG_S, worker: str = "w") -> Job:
    job = service.jobs.claim(worker, lease_s)
    assert job is not None
    return job


def test_a_job_from_the_queue_to_its_end(service: Service) -> None:
    queued = submit(service, "Füße")
    assert (queued.state, queued.attempt, queued.name, queued.created_by) == ("queued", 0, "Füße", "ann")
    assert queued.params == {"images": "upload:x", "n": [1, 2.5, None]}
    assert service.jobs.get(queued.id) == queued
    taken = claim(service)
    assert (taken.id, taken.state, taken.attempt, taken.worker) == (queued.id, "running", 1, "w")
    assert service.jobs.claim("other", LONG_S) is None
    assert service.jobs.beat(taken, LONG_S, JobProgress(total=3, done=1, cost_usd=0.5), mark=1) == "held"
    assert service.jobs.get(queued.id).progress == JobProgress(total=3, done=1, cost_usd=0.5)
    assert service.jobs.end(taken, "finished", exit_code=0)
    ended = service.jobs.get(queued.id)
    assert (ended.state, ended.exit_code, ended.error) == ("finished", 0, None)
    assert ended.started_at is not None
    assert ended.ended_at is not None
    assert ended.created_at <= ended.started_at <= ended.ended_at
    assert service.jobs.counts()["finished"] == 1


def test_jobs_are_taken_in_their_order(service: Service) -> None:
    ids = [submit(service).id for _ in range(5)]
    assert [claim(service).id for _ in ids] == ids


def test_a_worker_whose_lease_ran_out_changes_nothing_any_more(service: Service) -> None:
    submit(service)
    first = claim(service, SHORT_S, "one")
    second = claim(service, LONG_S, "two")
    assert (second.id, second.attempt) == (first.id, 2)
    assert service.jobs.beat(first, LONG_S, JobProgress(done=9)) == "lost"
    assert not service.jobs.end(first, "failed", exit_code=2, error="late")
    assert not service.jobs.requeue(first)
    assert service.jobs.get(first.id) == second
    assert service.jobs.beat(second, LONG_S) == "held"


def test_a_queued_job_is_cancelled_at_once_and_a_running_one_by_its_worker(service: Service) -> None:
    waiting, running = submit(service), submit(service)
    assert service.jobs.cancel(waiting.id).state == "cancelled"
    taken = claim(service)
    assert taken.id == running.id
    assert service.jobs.cancel(running.id).state == "running"
    assert service.jobs.beat(taken, LONG_S) == "cancel"
    assert service.jobs.end(taken, "cancelled", exit_code=130)
    assert service.jobs.cancel(running.id).state == "cancelled"
    assert service.jobs.claim("w", LONG_S) is None


def test_an_ended_job_goes_on_when_it_is_retried(service: Service) -> None:
    job = submit(service)
    with pytest.raises(ConflictError, match="is queued"):
        service.jobs.retry(job.id)
    service.jobs.end(claim(service), "incomplete", exit_code=1, error="2 of 3 failed")
    again = service.jobs.retry(job.id)
    assert again.started_at is None
    assert (again.state, again.error, again.exit_code, again.ended_at) == ("queued", None, None, None)
    assert claim(service).attempt == 2


def test_a_cancelled_job_is_not_cancelled_once_more_when_retried(service: Service) -> None:
    job = submit(service)
    service.jobs.cancel(job.id)
    service.jobs.retry(job.id)
    assert service.jobs.beat(claim(service), LONG_S) == "held"


def test_only_what_has_ended_is_deleted(service: Service) -> None:
    job = submit(service)
    with pytest.raises(ConflictError, match="Cancel it first"):
        service.delete_job(job.id)
    service.jobs.end(claim(service), "finished", exit_code=0)
    service.job_folder(job.id).mkdir()
    service.delete_job(job.id)
    assert not service.job_folder(job.id).exists()
    for call in (service.jobs.get, service.jobs.cancel, service.jobs.retry, service.jobs.delete):
        with pytest.raises(NotFoundError):
            call(job.id)


def test_a_job_whose_process_dies_five_times_is_given_up(service: Service) -> None:
    job = submit(service)
    for _ in range(5):
        assert service.jobs.requeue(claim(service), died="MemoryError")
    assert service.jobs.claim("w", LONG_S) is None
    ended = service.jobs.get(job.id)
    assert (ended.state, ended.exit_code, ended.attempt) == ("failed", None, 6)
    assert (ended.error or "").startswith("MemoryError\nGiven up")
    service.jobs.retry(job.id)
    assert claim(service).id == job.id


def test_a_job_that_ends_the_service_again_and_again_is_given_up_later(service: Service) -> None:
    job = submit(service)
    for _ in range(MOST_STRIKES):
        claim(service, SHORT_S)
    assert service.jobs.claim("w", LONG_S) is None
    assert service.jobs.get(job.id).state == "failed"


def test_a_job_that_gets_further_each_time_is_not_given_up(service: Service) -> None:
    submit(service)
    for done in range(2 * MOST_STRIKES):
        taken = claim(service, LONG_S)
        assert service.jobs.beat(taken, SHORT_S, mark=done + 1) == "held"
    assert claim(service).attempt == 2 * MOST_STRIKES + 1


def test_waiting_does_not_count_against_a_job(service: Service) -> None:
    submit(service)
    for _ in range(2 * MOST_STRIKES):
        assert service.jobs.requeue(claim(service))
    assert claim(service).state == "running"


def test_a_job_put_back_is_taken_again_when_it_is_due(service: Service) -> None:
    submit(service)
    assert service.jobs.requeue(claim(service), delay_s=60)
    assert service.jobs.claim("w", LONG_S) is None
    other = submit(service)
    assert service.jobs.requeue(claim(service))
    assert claim(service).id == other.id


def set_clock_back(service: Service, seconds: float) -> None:
    """To a database a clock that is set back is one in which all it has written lies further ahead."""
    with service.database.write() as connection:
        connection.execute(
            update(jobs).values(due_at=jobs.c.due_at + seconds, lease_until=jobs.c.lease_until + seconds)
        )


@pytest.mark.parametrize("back_s", [3600.0, 10 * 365 * 86_400.0])
def test_a_clock_that_is_set_back_holds_no_job(service: Service, back_s: float) -> None:
    leased, waiting = submit(service), submit(service)
    assert claim(service, 5.0, "dead").id == leased.id
    set_clock_back(service, back_s)
    later = submit(service)
    taken = [claim(service) for _ in range(3)]
    # In their old order, those from before the change first.
    assert [job.id for job in taken] == [leased.id, waiting.id, later.id]
    assert taken[0].attempt == 2
    assert service.jobs.claim("w", LONG_S) is None


def test_a_clock_that_is_set_back_holds_no_job_past_a_restart(open_service: Callable[[], Service]) -> None:
    service = open_service()
    ids = [submit(service).id for _ in range(2)]
    claim(service, 5.0, "dead")
    set_clock_back(service, 3600.0)
    service.close()
    again = open_service()
    assert sorted(claim(again).id for _ in ids) == sorted(ids)


def test_a_clock_that_is_set_back_a_little_takes_no_job_from_its_worker(service: Service) -> None:
    submit(service)
    claim(service, 5.0)
    set_clock_back(service, 30.0)
    assert service.jobs.claim("other", 5.0) is None


def test_pages_go_from_new_to_old_and_miss_none(service: Service) -> None:
    ids = [submit(service).id for _ in range(7)]
    service.jobs.cancel(ids[3])
    pages: list[str] = []
    before: str | None = None
    while True:
        page = service.jobs.page(limit=3, before=before)
        pages, before = [*pages, *(job.id for job in page.jobs)], page.next
        if before is None:
            break
    assert pages == ids[::-1]
    cancelled = service.jobs.page(state="cancelled", kind="annotate")
    assert ([job.id for job in cancelled.jobs], cancelled.next) == ([ids[3]], None)
    assert service.jobs.page(kind="detect") == JobPage(jobs=())
    with pytest.raises(NotFoundError):
        service.jobs.page(before="job_" + "a" * 20)


def test_what_is_no_id_is_no_job(service: Service) -> None:
    for odd in ("", "job_\0", "\0" * 24, "job_" + "A" * 20):
        with pytest.raises(NotFoundError):
            service.jobs.get(odd)
        with pytest.raises(NotFoundError):
            service.jobs.page(before=odd)


def test_threads_never_take_the_same_job(service: Service) -> None:
    ids = {submit(service).id for _ in range(40)}

    def work(name: int) -> list[str]:
        taken = []
        while (job := service.jobs.claim(f"w{name}", LONG_S)) is not None:
            taken.append(job.id)
            assert service.jobs.end(job, "finished", exit_code=0)
        return taken

    with ThreadPoolExecutor(8) as pool:
        done = [job for taken in pool.map(work, range(8)) for job in taken]
    assert sorted(done) == sorted(ids)
