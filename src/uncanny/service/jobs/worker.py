"""Takes jobs from the queue and runs each as a child process, several at once.

A worker keeps renewing the lease of each job it runs. Is the lease lost, the child is killed: another worker
has the job. A job whose child was killed goes back into the queue, and so do all when the service stops.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout
from sqlalchemy.exc import SQLAlchemyError

from uncanny.client.telemetry import Watch, telemetry
from uncanny.errors import UncannyError, text_of
from uncanny.records.run_folder import LOCK, LOCKED
from uncanny.service import Ended
from uncanny.service.answers import Job
from uncanny.service.jobs.folder import RUN
from uncanny.service.jobs.kinds import KINDS, title_of, values_of
from uncanny.service.jobs.run import ChildRun
from uncanny.service.service import Service
from uncanny.service.store.jobs import Lease, Listener
from uncanny.wording import rendered

JOBS: Final = 2
_LOG: Final = logging.getLogger("uncanny.service")
_FINISHED, _FAILURES, _USAGE, _BUDGET = 0, 1, 2, 3
_TICK_S: Final = 0.1
_WARN_AGAIN_S: Final = 60.0
_MOST_WARNED: Final = 1000


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds: how long a lease lasts, how often it is renewed, how long a child may take to stop.

    `poll_s` is how often the queue is looked into without being told that there is something: for leases that
    ran out and jobs that were put off. A child that is to stop is interrupted, after `interrupt_s` once more,
    which does not wait for calls in flight, and after `kill_s` killed. A job whose run folder is locked, or
    whose child died, is put off by `again_s`.
    """

    lease_s: float = 5.0
    beat_s: float = 1.0
    poll_s: float = 1.0
    interrupt_s: float = 10.0
    kill_s: float = 5.0
    again_s: float = 1.0


class Worker:
    """Works on `jobs` jobs at once, in threads of this process, from `start` to `stop`."""

    def __init__(self, service: Service, *, jobs: int = JOBS, pace: Pace | None = None) -> None:
        self.name = f"{socket.gethostname()[:60]}:{os.getpid()}:{secrets.token_hex(4)}"
        self._service, self._pace = service, pace or Pace()
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, name=f"job-{number}", daemon=True) for number in range(jobs)
        ]
        database = service.database
        self._listener = None if database.is_sqlite else Listener(database, service.jobs.queued)

    def start(self) -> None:
        self._service.sweep()
        if self._listener is not None:
            self._listener.start()
        for thread in self._threads:
            thread.start()

    @property
    def alive(self) -> bool:
        """Whether all its threads work."""
        return all(thread.is_alive() for thread in self._threads)

    def stop(self) -> None:
        """Interrupt the children, put their jobs back into the queue, and wait for that."""
        self._stopping.set()
        self._service.jobs.queued.set()
        for thread in self._threads:
            thread.join()
        if self._listener is not None:
            self._listener.stop()

    def _work(self) -> None:
        jobs = self._service.jobs
        while not self._stopping.is_set():
            seen = jobs.queued.seen()
            try:
                job = jobs.claim(self.name, self._pace.lease_s)
                if job is None:
                    jobs.queued.wait(seen, self._pace.poll_s)
                else:
                    with telemetry().job(job.kind) as watch:
                        _Attempt(self._service, job, self._pace, self._stopping, watch).run()
            except SQLAlchemyError as error:
                _warn("The queue cannot be read", error)
                self._stopping.wait(self._pace.poll_s)
            except Exception:
                # One that ended would be missed by nobody until no job is taken any more.
                _LOG.exception("A worker goes on after a defect")
                self._stopping.wait(self._pace.poll_s)


class _Attempt:
    """One job, from its being taken to its end or its way back into the queue."""

    def __init__(
        self, service: Service, job: Job, pace: Pace, stopping: threading.Event, watch: Watch
    ) -> None:
        self._service, self._jobs, self._job = service, service.jobs, job
        self._pace, self._stopping, self._watch = pace, stopping, watch
        self._folder = service.job_folder(job.id)
        self._lease: Lease = "held"
        self._child: ChildRun | None = None

    def run(self) -> None:
        try:
            self._beat()
            if self._lease == "lost":
                return
            if self._lease == "cancel":
                self._end("cancelled", None)
                return
            values = values_of(self._service, self._job, self._folder)
            protocol = KINDS[self._job.kind].protocol
            (self._folder / "out").mkdir(parents=True, exist_ok=True)
            if _is_locked(self._folder / "run" / LOCK):
                self._requeue(self._pace.again_s)
                return
            self._child = ChildRun(
                protocol.command, values, self._folder, self._settings(), shown=self._shown
            )
            self._attend(self._child)
            code = self._child.wait()
            if code in (_FINISHED, _FAILURES, _BUDGET):
                self._follow(protocol.then)
            self._judge(self._child, code)
        except UncannyError as error:
            self._end("failed", _USAGE, rendered(error.text, "service"))
        except Exception as error:
            _LOG.exception("Job %s", self._job.id)
            self._end("failed", None, text_of(error))
        finally:
            if self._child is not None and not self._child.ended.is_set():
                self._child.kill()
                self._child.wait()

    def _shown(self, words: str) -> str:
        return self._service.without_paths(words, self._folder)

    def _settings(self) -> dict[str, str]:
        named = {"UNCANNY_RUN_NAME": title_of(self._job)}
        return self._service.child_settings() | named | telemetry().carrier()

    def _follow(self, command: Sequence[str]) -> None:
        """Have the page made; a job stays what it is where there is none."""
        if command and self._lease == "held" and not self._stopping.is_set():
            values = {"run": RUN}
            child = ChildRun(command, values, self._folder, self._settings(), result=None, shown=self._shown)
            self._attend(child)
            child.wait()

    def _attend(self, child: ChildRun) -> None:
        """Renew the lease until the child has ended, and interrupt or kill it where that is wanted."""
        beat_at = time.monotonic() + self._pace.beat_s
        steps: list[tuple[float, Callable[[], None]]] | None = None
        while not child.ended.wait(_TICK_S):
            now = time.monotonic()
            if now >= beat_at:
                self._beat()
                beat_at = now + self._pace.beat_s
            if self._lease == "lost":
                child.kill()
            elif steps is None and (self._lease == "cancel" or self._stopping.is_set()):
                again = now + self._pace.interrupt_s
                steps = [
                    (now, child.interrupt),
                    (again, child.interrupt),
                    (again + self._pace.kill_s, child.kill),
                ]
            while steps and now >= steps[0][0]:
                steps.pop(0)[1]()

    def _judge(self, child: ChildRun, code: int) -> None:
        """By the exit code, and not by what was wanted: a child may finish while it is asked to stop."""
        if self._lease == "lost":
            return
        printed, words = child.keep_result(), child.last_lines()
        if code == _FINISHED:
            self._end("finished", code)
        elif code == _FAILURES and printed:
            self._end("incomplete", code, words)
        elif code == _BUDGET:
            self._end("over_budget", code, words)
        elif code == _USAGE and words is not None and LOCKED in words:
            self._requeue(self._pace.again_s)
        elif code in (_FAILURES, _USAGE):
            self._end("failed", code, words)
        elif self._lease == "cancel":
            self._end("cancelled", code)
        elif self._stopping.is_set():
            self._requeue()
        else:
            _LOG.warning("The process of job %s ended with %d", self._job.id, code)
            self._requeue(self._pace.again_s, died=words or f"It ended with exit code {code}.")

    def _beat(self) -> None:
        """Where the database is away the child goes on: its run folder is locked against a second one."""
        progress, mark = (None, 0) if self._child is None else (self._child.progress, self._child.mark)
        try:
            self._lease = self._jobs.beat(self._job, self._pace.lease_s, progress, mark)
        except SQLAlchemyError as error:
            _warn(f"Job {self._job.id} cannot be kept up to date", error)

    def _end(self, state: Ended, code: int | None, error: str | None = None) -> None:
        self._watch.ended(state, well=state == "finished")
        progress = None if self._child is None else self._child.progress
        error = None if error is None else self._shown(error)
        self._write(lambda: self._jobs.end(self._job, state, exit_code=code, error=error, progress=progress))

    def _requeue(self, delay_s: float = 0.0, *, died: str | None = None) -> None:
        self._watch.ended("queued", well=died is None)
        self._beat()
        self._write(lambda: self._jobs.requeue(self._job, delay_s=delay_s, died=died))

    def _write(self, write: Callable[[], object]) -> None:
        """Until it is written. When the service stops, once: then the lease runs out, and the job goes on."""
        while True:
            try:
                write()
                return
            except SQLAlchemyError as error:
                _warn(f"The end of job {self._job.id} cannot be written", error)
            if self._stopping.wait(self._pace.poll_s):
                return


def _is_locked(lock: Path) -> bool:
    """Whether a process works in a run folder; the child of a worker that died needs a moment to end."""
    if not lock.exists():
        return False
    try:
        with FileLock(lock).acquire(blocking=False):
            return False
    except Timeout:
        return True


# When what was warned of last: a full disk is tried again each second, and its log may lie on it.
_warned: dict[str, float] = {}


def _warn(what: str, error: Exception) -> None:
    """Write it to the log, the same no more than once in `_WARN_AGAIN_S`."""
    line, now = f"{what}: {text_of(error).partition(chr(10))[0]}", time.monotonic()
    if now - _warned.get(line, -_WARN_AGAIN_S) >= _WARN_AGAIN_S:
        if len(_warned) >= _MOST_WARNED:
            _warned.clear()
        _warned[line] = now
        _LOG.warning("%s", line)
