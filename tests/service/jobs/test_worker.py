"""Workers, with real children: what becomes of jobs, whatever becomes of their processes."""

from __future__ import annotations

import base64
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import orjson
import psutil  # type: ignore[import-untyped]
import pytest

from tests.models.vllm.processes import title
from tests.runs.e2e import serving
from tests.service.jobs.worker_process import start_worker
from tests.service.jobs.working import PACE, ask, ended, records, some_pictures, submit, until, working
from uncanny.records.run_folder import RunFolder
from uncanny.service.answers import Job
from uncanny.service.jobs import run, worker
from uncanny.service.jobs.run import ChildRun
from uncanny.service.service import Service


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.fixture
def opened(tmp_path: Path, root: Path) -> Iterator[Service]:
    with Service.open(tmp_path / "data", roots=[root]) as service:
        yield service


def child_of(job: Job, service: Service) -> psutil.Process | None:
    """The process that works on a job, found by the folder that it works in."""
    folder = str(service.job_folder(job.id))
    for process in psutil.Process().children(recursive=True):
        try:
            if process.cwd() == folder and "uncanny.service.jobs.child" in process.cmdline():
                return process
        except psutil.Error:
            continue
    return None


@pytest.mark.slow
def test_a_job_is_a_run_as_the_command_makes_it(
    opened: Service, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = some_pictures(root, 3)
    with serving() as server, working(opened):
        ask(monkeypatch, server)
        job = ended(opened, submit(opened, images))
    assert (job.state, job.exit_code, job.error, job.attempt) == ("finished", 0, None, 1)
    assert [each["status"] for each in records(opened, job)] == ["ok"] * 3
    folder = opened.job_folder(job.id)
    assert orjson.loads((folder / "result.json").read_bytes())["totals"]
    assert "annotate openai/any" in (folder / "run" / "report.html").read_text()
    assert job.progress is not None
    assert (job.progress.total, job.progress.done, job.progress.failed) == (3, 3, 0)
    assert job.progress.calls
    assert job.progress.input_tokens


@pytest.mark.slow
def test_failed_records_make_a_job_incomplete_and_a_retry_asks_for_them_again(
    opened: Service, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = some_pictures(root, 2)
    (images / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    with serving() as server, working(opened):
        ask(monkeypatch, server)
        job = ended(opened, submit(opened, images))
        assert (job.state, job.exit_code) == ("incomplete", 1)
        whole = next(each for each in images.iterdir() if each.name != "broken.png")
        (images / "broken.png").write_bytes(whole.read_bytes())
        opened.jobs.retry(job.id)
        job = ended(opened, job)
    assert (job.state, job.attempt) == ("finished", 2)
    assert len(records(opened, job)) == 3


@pytest.mark.slow
def test_a_budget_ends_a_job_which_goes_on_with_its_answers(
    opened: Service, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = some_pictures(root, 4)
    with serving() as server, working(opened):
        ask(monkeypatch, server)
        job = ended(opened, submit(opened, images, max_tokens_total=10, concurrency=1))
    assert (job.state, job.exit_code) == ("over_budget", 3)
    assert "not done" in (job.error or "")


@pytest.mark.slow
def test_what_the_command_complains_of_is_the_error(
    opened: Service, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    images = some_pictures(root, 1)
    with working(opened):
        job = ended(opened, submit(opened, images))
        empty = root / "empty"
        empty.mkdir()
        other = ended(opened, submit(opened, empty, model="demo"))
    assert (job.state, job.exit_code) == ("failed", 2)
    assert "OPENAI_API_KEY" in (job.error or "")
    assert (other.state, other.exit_code) == ("failed", 2)


@pytest.mark.slow
def test_a_cancelled_job_keeps_what_came_back_and_goes_on_when_retried(
    opened: Service, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = some_pictures(root, 6)
    with serving(latency_ms=300) as server, working(opened):
        ask(monkeypatch, server)
        job = submit(opened, images, concurrency=1)
        until(lambda: (p := opened.jobs.get(job.id).progress) is not None and p.done)
        opened.jobs.cancel(job.id)
        job = ended(opened, job)
        assert (job.state, job.exit_code) == ("cancelled", 130)
        assert 0 < len(records(opened, job)) < 6
        before = server.requests()
        opened.jobs.retry(job.id)
        job = ended(opened, job)
        assert job.state == "finished"
        assert before <= server.requests() <= 7
    assert len(records(opened, job)) == 6


@pytest.mark.slow
def test_a_child_that_does_not_stop_is_killed(
    opened: Service, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = some_pictures(root, 1)
    pace = replace(PACE, interrupt_s=0.1, kill_s=0.1)
    with serving(latency_ms=600_000) as server, working(opened, pace=pace):
        ask(monkeypatch, server)
        job = submit(opened, images)
        process = until(lambda: child_of(job, opened))
        until(server.requests)
        process.suspend()
        opened.jobs.cancel(job.id)
        job = ended(opened, job)
    assert (job.state, job.exit_code) == ("cancelled", 137)


@pytest.mark.slow
def test_a_child_that_is_killed_is_started_again_and_repeats_only_calls_in_flight(
    opened: Service, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = some_pictures(root, 6)
    with serving(latency_ms=200) as server, working(opened):
        ask(monkeypatch, server)
        job = submit(opened, images, concurrency=2)
        until(lambda: (p := opened.jobs.get(job.id).progress) is not None and p.done)
        until(lambda: child_of(job, opened)).kill()
        job = ended(opened, job)
        assert server.requests() <= 6 + 2
    assert (job.state, job.attempt) == ("finished", 2)
    assert len(records(opened, job)) == len({each["image"] for each in records(opened, job)}) == 6


@pytest.mark.slow
def test_a_job_whose_lease_is_lost_leaves_no_child(
    opened: Service, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = some_pictures(root, 1)
    with serving(latency_ms=600_000) as server:
        with working(opened, jobs=1):
            ask(monkeypatch, server)
            job = submit(opened, images)
            process = until(lambda: child_of(job, opened))
            until(server.requests)
            with opened.database.write() as connection:
                connection.exec_driver_sql("UPDATE jobs SET attempt = attempt + 1, worker = 'another'")
            until(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE)
        state = opened.jobs.get(job.id)
        assert (state.state, state.worker) == ("running", "another")


@pytest.mark.slow
def test_children_do_not_know_the_password_of_the_database(
    opened: Service, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNCANNY_DATABASE", "postgresql://u:secret@h/d")
    monkeypatch.setenv("UNCANNY_CACHE_DIR", "answers")
    monkeypatch.chdir(root)
    images = some_pictures(root, 1)
    with serving(latency_ms=1000) as server, working(opened):
        ask(monkeypatch, server)
        job = submit(opened, images)
        environment = until(lambda: child_of(job, opened)).environ()
        assert ended(opened, job).state == "finished"
    assert "UNCANNY_DATABASE" not in environment
    assert environment["OPENAI_API_KEY"] == "any-key"
    # A path means in the child what it means here.
    assert environment["UNCANNY_CACHE_DIR"] == str(root / "answers")
    assert (root / "answers").is_dir()


@pytest.mark.slow
def test_a_locked_run_is_queued_until_it_is_free(
    opened: Service, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = some_pictures(root, 1)
    with serving() as server:
        ask(monkeypatch, server)
        job = submit(opened, images)
        run = opened.job_folder(job.id) / "run"
        with working(opened):
            with RunFolder(run).locked():
                until(lambda: opened.jobs.get(job.id).attempt >= 3)
            job = ended(opened, job)
    assert job.state == "finished"


@pytest.mark.slow
def test_a_run_that_is_locked_while_its_child_starts_is_queued_too(
    opened: Service, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uncanny.service.jobs.worker._is_locked", lambda _: False)
    test_a_locked_run_is_queued_until_it_is_free(opened, root, monkeypatch)


@pytest.mark.slow
def test_stopping_interrupts_children_and_a_restart_goes_on_at_once(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch, address: str | None
) -> None:
    images = some_pictures(root, 6)
    with serving(latency_ms=300) as server:
        ask(monkeypatch, server)
        with Service.open(tmp_path / "data", database=address, roots=[root]) as service, working(service):
            job = submit(service, images, concurrency=1)
            until(lambda: (p := service.jobs.get(job.id).progress) is not None and p.done)
        with Service.open(tmp_path / "data", database=address, roots=[root]) as service:
            assert service.jobs.get(job.id).state == "queued"
            with working(service):
                job = ended(service, job)
            assert (job.state, job.attempt) == ("finished", 2)
            assert len(records(service, job)) == 6
        assert server.requests() <= 7


@pytest.mark.slow
def test_several_jobs_run_at_once(opened: Service, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = some_pictures(root, 1)
    with serving(latency_ms=1000) as server, working(opened, jobs=3):
        ask(monkeypatch, server)
        jobs = [submit(opened, images, cache=False) for _ in range(4)]
        until(lambda: opened.jobs.counts()["running"] == 3)
        assert opened.jobs.counts()["queued"] == 1
        assert {ended(opened, job).state for job in jobs} == {"finished"}
        assert server.stats()["max_concurrent"] <= 3


@pytest.mark.slow
def test_the_job_of_a_worker_that_died_is_taken_over(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch, address: str | None
) -> None:
    images = some_pictures(root, 6)
    data = tmp_path / "data"
    with serving(latency_ms=300) as server:
        ask(monkeypatch, server)
        with Service.open(data, database=address, roots=[root]) as service:
            job = submit(service, images, concurrency=1)
        first = start_worker(data, address, root)
        until(lambda: server.requests() >= 2)
        child = until(
            lambda: [
                each
                for each in psutil.Process(first.pid).children()
                if "uncanny.service.jobs.child" in title(each)
            ]
        )[0]
        first.kill()
        first.wait()
        until(lambda: not child.is_running())
        with Service.open(data, database=address, roots=[root]) as service, working(service):
            job = ended(service, job)
            assert (job.state, job.attempt) == ("finished", 2)
            assert len(records(service, job)) == 6
        assert server.requests() <= 7


@pytest.mark.slow
def test_what_was_cancelled_while_its_worker_was_dead_is_not_started_again(service: Service) -> None:
    job = service.jobs.submit("annotate", {"images": ["x"], "model": "demo"}, by="ann")
    assert service.jobs.claim("dead", -1.0) is not None
    service.jobs.cancel(job.id)
    with working(service):
        job = ended(service, job)
    assert (job.state, job.exit_code, job.error) == ("cancelled", None, None)
    assert not service.job_folder(job.id).exists()


def test_a_job_of_a_newer_version_fails_in_words_and_holds_nothing_up(service: Service) -> None:
    job = service.jobs.submit("paint", {"images": ["x"]}, by="ann")
    with working(service, jobs=1):
        job = ended(service, job)
        other = ended(service, service.jobs.submit("annotate", {"model": 3}, by="ann"))
    assert (job.state, job.exit_code) == ("failed", 2)
    assert "no kind of job 'paint'" in (job.error or "")
    assert (other.state, other.exit_code) == ("failed", 2)
    assert "images: is missing" in (other.error or "")


@pytest.mark.slow
def test_processes_on_one_postgresql_share_the_work(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch, postgres_address: str
) -> None:
    images = some_pictures(root, 1)
    data = tmp_path / "data"
    with serving(latency_ms=500) as server:
        ask(monkeypatch, server)
        with Service.open(data, database=postgres_address, roots=[root]) as service:
            workers = [start_worker(data, postgres_address, root) for _ in range(2)]
            jobs = [submit(service, images, cache=False) for _ in range(6)]
            done = [ended(service, job) for job in jobs]
            for worker in workers:
                worker.terminate()
            assert [worker.wait(timeout=60) for worker in workers] == [0, 0]
    assert {(job.state, job.attempt) for job in done} == {("finished", 1)}
    assert len({job.worker for job in done}) == 2


@pytest.mark.slow
def test_children_do_not_ignore_interrupts_where_the_service_does(
    opened: Service, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell that starts the service in the background has it ignore them."""
    images = some_pictures(root, 2)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        pace = replace(PACE, interrupt_s=0.5, kill_s=600.0)
        with serving(latency_ms=600_000) as server, working(opened, pace=pace):
            ask(monkeypatch, server)
            job = submit(opened, images)
            until(server.requests)
            opened.jobs.cancel(job.id)
            assert ended(opened, job).exit_code == 130
    finally:
        signal.signal(signal.SIGINT, before)


def test_keys_are_in_no_log_of_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command repeats what it was called with; a library that does so with a key has it hidden."""
    key, password = "sk-0123456789abcdef", "hunter2-hunter2"
    monkeypatch.setenv("ANTHROPIC_API_KEY", f"{key}\n")
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:{password}@localhost:1")
    packed = base64.b64encode(f"Bearer {key}".encode()).decode()
    told = ((key, "ANTHROPIC_API_KEY"), (packed, "ANTHROPIC_API_KEY"), (password, "HTTPS_PROXY"))
    for secret, name in told:
        child = ChildRun([secret], {}, tmp_path, {})
        assert child.wait() == 2
        assert f"[{name}]" in (child.last_lines() or "")
        assert secret not in (child.last_lines() or "")
    log = (tmp_path / "stderr.log").read_text()
    assert "[HTTPS_PROXY]" in log
    assert key not in log
    assert packed not in log
    assert password not in log


def test_a_command_that_ends_before_it_has_read_its_values_has_its_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What could not be written still waits in the pipe's buffer when that is closed."""

    def late(*_: object) -> bytes:
        time.sleep(0.3)
        return b"{}"

    monkeypatch.setattr(sys, "executable", "/bin/false")
    monkeypatch.setattr(run, "order", late)
    assert ChildRun(["annotate"], {}, tmp_path, {}).wait() == 1


def test_the_same_trouble_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    """A full disk is tried again each second, and the log may lie on it."""
    for number in (1, 1, 2, 1):
        worker._warn(f"The end of job {number} cannot be written", OSError("No space left"))
    assert [each.getMessage() for each in caplog.records] == [
        "The end of job 1 cannot be written: OSError: No space left",
        "The end of job 2 cannot be written: OSError: No space left",
    ]
