"""The queue of jobs: a table, of which workers take rows for a while.

A worker holds a job by a lease that it keeps renewing. When it dies the lease runs out, and another worker
takes the job. Each taking counts `attempt` up, and everything a worker writes names its attempt: one that
was taken for dead, and is not, changes nothing any more and learns so.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import orjson
import psycopg
from sqlalchemy import Connection, Row, and_, bindparam, case, delete, func, insert, null, or_, select, update
from sqlalchemy.sql.elements import ColumnElement

from uncanny.errors import ConflictError, NotFoundError, UsageError, writable
from uncanny.service import ENDED, STATES, Ended, State, is_id, new_id
from uncanny.service.answers import Job, JobPage, JobProgress
from uncanny.service.store.database import Also, Database, nothing
from uncanny.service.store.tables import jobs as J

CHANNEL: Final = "uncanny_jobs"
_ANEW_S: Final = 1.0


class Arrivals:
    """Wakes all threads of this process that wait for jobs."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0

    def set(self) -> None:
        """There may be something new."""
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    def seen(self) -> int:
        """To be asked before looking into the queue, and handed to `wait` when nothing was there."""
        return self._count

    def wait(self, seen: int, timeout_s: float) -> bool:
        """Until something has come since `seen`, at most `timeout_s` seconds. Says whether something has."""
        with self._changed:
            return self._changed.wait_for(lambda: self._count != seen, timeout_s)


class Listener:
    """Sets `arrivals` whenever another process on the same PostgreSQL says that it put something there.

    It has a connection of its own. While the server is away workers look into the queue now and then.
    """

    def __init__(self, database: Database, arrivals: Arrivals) -> None:
        self._address = database.url.set(drivername="postgresql").render_as_string(hide_password=False)
        self._arrivals = arrivals
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="listener", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ending.set()
        self._thread.join()

    def _listen(self) -> None:
        while not self._ending.is_set():
            try:
                with psycopg.connect(self._address, autocommit=True) as connection:
                    connection.execute(f"LISTEN {CHANNEL}".encode())
                    # What came before this moment nobody has told.
                    self._arrivals.set()
                    while not self._ending.is_set():
                        for _ in connection.notifies(timeout=0.5):
                            self._arrivals.set()
            except psycopg.Error:
                self._ending.wait(_ANEW_S)


Lease = Literal["held", "cancel", "lost"]
# A job is given up after so many strikes in a row without getting further. It is to blame for the death of
# its process, and seldom for that of the service: five of the one, twenty of the other.
MOST_STRIKES: Final = 20
_CHILD_DIED, _WORKER_DIED = 4, 1
# A job is put off by so many seconds at most. What is due further ahead, and a lease that ends so much later
# than any worker asks for, was written before the clock was set back: it would hold the job for as long.
LONGEST_DELAY_S: Final = 60.0
_LEASE_SLACK_S: Final = 60.0
MOST_ERROR: Final = 4_000


_SHOWN: Final = tuple(J.c[name] for name in Job.model_fields)
# Built once: making a statement costs as much as running it.
_ONE: Final = select(*_SHOWN).where(J.c.id == bindparam("job"))


class JobStore:
    """Jobs in the database. Every method may be called from any thread and process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # Set whenever a job is put into the queue; by other processes where a `Listener` hears them.
        self.queued = Arrivals()

    def submit(self, kind: str, params: Mapping[str, Any], *, name: str | None = None, by: str) -> Job:
        """Put a job into the queue; `params` have been checked by whoever calls."""
        with self._database.write() as connection:
            job = self.add(connection, kind, params, name=name, by=by)
        self.queued.set()
        return job

    def add(
        self, connection: Connection, kind: str, params: Mapping[str, Any], *, name: str | None, by: str
    ) -> Job:
        """The same within a transaction of the caller's, who sets `queued` when it is committed."""
        now = self._database.now()
        text = orjson.dumps(dict(params)).decode()
        new = insert(J).values(id=new_id("job"), kind=kind, name=name, params=text, created_by=by)
        row = connection.execute(new.values(created_at=now, due_at=now).returning(*_SHOWN)).one()
        self._tell(connection)
        return _job(row)

    def get(self, job_id: str) -> Job:
        """Raises NotFoundError."""
        if not is_id(job_id, "job"):  # nor is it text that every database takes
            raise _not_found(job_id)
        with self._database.read() as connection:
            row = connection.execute(_ONE, {"job": job_id}).one_or_none()
        if row is None:
            raise _not_found(job_id)
        return _job(row)

    def page(
        self,
        *,
        state: State | None = None,
        kind: str | None = None,
        limit: int = 50,
        before: str | None = None,
    ) -> JobPage:
        """Jobs, the newest first. `before` is the id of a job: older ones follow. Raises NotFoundError."""
        wanted: list[ColumnElement[bool]] = []
        if state is not None:
            wanted.append(J.c.state == state)
        if kind is not None:
            wanted.append(J.c.kind == kind)
        with self._database.read() as connection:
            if before is not None:
                if not is_id(before, "job"):
                    raise _not_found(before)
                seq = connection.execute(select(J.c.seq).where(J.c.id == before)).scalar_one_or_none()
                if seq is None:
                    raise _not_found(before)
                wanted.append(J.c.seq < seq)
            rows = connection.execute(
                select(*_SHOWN).where(*wanted).order_by(J.c.seq.desc()).limit(limit + 1)
            ).all()
        jobs = tuple(_job(row) for row in rows[:limit])
        return JobPage(jobs=jobs, next=jobs[-1].id if len(rows) > limit else None)

    def counts(self) -> dict[State, int]:
        with self._database.read() as connection:
            rows = connection.execute(select(J.c.state, func.count()).group_by(J.c.state)).all()
        counts = {state: number for state, number in rows}  # noqa: C416  rows are no tuples for mypy
        return {state: counts.get(state, 0) for state in STATES}

    def known(self, ids: Sequence[str]) -> set[str]:
        with self._database.read() as connection:
            return set(connection.execute(select(J.c.id).where(J.c.id.in_(ids))).scalars())

    # What users do. `also` is done in the same transaction, with what it tells of the change.

    def cancel(self, job_id: str, also: Also = nothing) -> Job:
        """A queued job is cancelled at once, a running one as soon as its worker sees it.

        One that has ended stays as it is. Raises NotFoundError.
        """
        with self._database.write() as connection:
            waiting = J.c.state == "queued"
            connection.execute(
                update(J)
                .where(J.c.id == job_id, J.c.state.in_(("queued", "running")))
                .values(
                    cancel_requested=True,
                    state=case((waiting, "cancelled"), else_=J.c.state),
                    ended_at=case((waiting, self._database.now()), else_=J.c.ended_at),
                )
            )
            row = connection.execute(_ONE, {"job": job_id}).one_or_none()
            if row is None:
                raise _not_found(job_id)
            also(connection)
        return _job(row)

    def retry(self, job_id: str, also: Also = nothing) -> Job:
        """Put a job that has ended into the queue again: its command goes on where it ended.

        Raises NotFoundError, ConflictError where it has not ended.
        """
        with self._database.write() as connection:
            row = connection.execute(
                update(J)
                .where(J.c.id == job_id, J.c.state.in_(ENDED))
                .values(
                    state="queued",
                    due_at=self._database.now(),
                    # How long it takes does not count the time in which nobody was at it.
                    started_at=None,
                    ended_at=None,
                    exit_code=None,
                    error=None,
                    worker=None,
                    cancel_requested=False,
                    strikes=0,
                )
                .returning(*_SHOWN)
            ).one_or_none()
            if row is None:
                raise self._wrong_state(connection, job_id, "It continues by itself.")
            self._tell(connection)
            also(connection)
        self.queued.set()
        return _job(row)

    def change(self, job: Job, params: Mapping[str, Any], also: Also = nothing) -> Job:
        """Give a job that has ended other parameters, checked by whoever calls, for when it is retried.

        Raises NotFoundError, ConflictError where it has not ended or is no longer as `job` has it.
        """
        with self._database.write() as connection:
            row = connection.execute(
                update(J)
                .where(J.c.id == job.id, J.c.state.in_(ENDED), J.c.attempt == job.attempt)
                .values(params=orjson.dumps(dict(params)).decode())
                .returning(*_SHOWN)
            ).one_or_none()
            if row is None:
                raise self._wrong_state(connection, job.id, "Wait for its end, or cancel it.")
            also(connection)
        return _job(row)

    def delete(self, job_id: str, also: Also = nothing) -> None:
        """Forget a job that has ended; its folder is the caller's. Raises NotFoundError, ConflictError."""
        with self._database.write() as connection:
            gone = connection.execute(delete(J).where(J.c.id == job_id, J.c.state.in_(ENDED))).rowcount
            if not gone:
                raise self._wrong_state(connection, job_id, "Cancel it first.")
            also(connection)

    def _wrong_state(self, connection: Connection, job_id: str, remedy: str) -> UsageError:
        row = connection.execute(_ONE, {"job": job_id}).one_or_none()
        if row is None:
            return _not_found(job_id)
        return ConflictError(f"Job {job_id} is {row.state}", remedy=remedy)

    # What workers call.

    def claim(self, worker: str, lease_s: float) -> Job | None:
        """Take a job whose worker died, or that has waited longest; None where there is none.

        All workers on a database ask for about the same `lease_s`, in seconds. A job whose processes died too
        often without getting further is ended as failed.
        """
        while True:
            row = self._take(worker, lease_s)
            if row is None:
                return None
            if row.strikes < MOST_STRIKES:
                return _job(row)
            died = "Given up: its process died again and again without getting further."
            words = died if row.error is None else f"{row.error}\n{died}"
            self.end(_job(row), "failed", exit_code=None, error=words)

    def _take(self, worker: str, lease_s: float) -> Row[Any] | None:
        now = self._database.now()
        # One after the other, as each of them alone is found by an index however long the queue is.
        expired = or_(J.c.lease_until < now, J.c.lease_until > now + lease_s + _LEASE_SLACK_S)
        died = and_(J.c.state == "running", expired)
        overdue = and_(J.c.state == "queued", J.c.due_at > now + LONGEST_DELAY_S)
        waiting = and_(J.c.state == "queued", J.c.due_at <= now)
        same = J.c.strikes
        values = {
            "state": "running",
            "worker": worker,
            "attempt": J.c.attempt + 1,
            "lease_until": now + lease_s,
            "started_at": func.coalesce(J.c.started_at, now),
            "mark_at_claim": J.c.mark,
        }
        with self._database.write() as connection:
            for wanted, strikes in ((died, _strikes(_WORKER_DIED)), (overdue, same), (waiting, same)):
                pick = select(J.c.id).where(wanted).order_by(J.c.due_at, J.c.seq).limit(1)
                row = connection.execute(
                    update(J)
                    .where(J.c.id == pick.with_for_update(skip_locked=True).scalar_subquery())
                    .values(**values, strikes=strikes)
                    .returning(*_SHOWN, J.c.strikes)
                ).one_or_none()
                if row is not None:
                    return row
        return None

    def beat(self, job: Job, lease_s: float, progress: JobProgress | None = None, mark: int = 0) -> Lease:
        """Renew the lease, and keep how far the job is.

        `mark` is any number that grows when something new is done. "lost": another worker has the job, or
        it was deleted; its process has to be ended. "cancel": somebody wants it cancelled.
        """
        values: dict[str, Any] = {"lease_until": self._database.now() + lease_s}
        if progress is not None:
            values["progress"] = progress.model_dump_json()
        if mark:
            values["mark"] = case((J.c.mark < mark, mark), else_=J.c.mark)
        with self._database.write() as connection:
            cancel = connection.execute(
                update(J).where(_held(job)).values(values).returning(J.c.cancel_requested)
            ).scalar_one_or_none()
        if cancel is None:
            return "lost"
        return "cancel" if cancel else "held"

    def end(
        self,
        job: Job,
        state: Ended,
        *,
        exit_code: int | None,
        error: str | None = None,
        progress: JobProgress | None = None,
    ) -> bool:
        """Write how a job ended. False where the lease was lost: then nothing is written."""
        return self._let_go(
            job,
            **({} if progress is None else {"progress": progress.model_dump_json()}),
            state=state,
            exit_code=exit_code,
            error=None if error is None else _kept(error),
            ended_at=self._database.now(),
        )

    def requeue(self, job: Job, *, delay_s: float = 0.0, died: str | None = None) -> bool:
        """Put a running job back into the queue, to be taken after `delay_s` seconds, at most a minute.

        `died` has its last words, where its process ended in a way that counts against it. False where the
        lease was lost.
        """
        counted: dict[str, Any] = {}
        if died is not None:
            counted = {"strikes": _strikes(_CHILD_DIED), "error": _kept(died)}
        return self._let_go(
            job,
            state="queued",
            due_at=self._database.now() + min(delay_s, LONGEST_DELAY_S),
            mark_at_claim=J.c.mark,
            **counted,
        )

    def release_all(self) -> int:
        """Put all running jobs back into the queue, where nobody can be working: on opening SQLite.

        Returns how many. A worker that dies counts against its job as it does in `claim`.
        """
        with self._database.write() as connection:
            return connection.execute(
                update(J)
                .where(J.c.state == "running")
                .values(
                    state="queued",
                    lease_until=null(),
                    strikes=_strikes(_WORKER_DIED),
                    mark_at_claim=J.c.mark,
                )
            ).rowcount

    def _let_go(self, job: Job, **values: Any) -> bool:
        with self._database.write() as connection:
            written = connection.execute(
                update(J).where(_held(job)).values(lease_until=null(), **values)
            ).rowcount
            if written and values["state"] == "queued":
                self._tell(connection)
        if written and values["state"] == "queued":
            self.queued.set()
        return bool(written)

    def _tell(self, connection: Connection) -> None:
        """Wake the workers of other processes once this transaction is committed."""
        if not self._database.is_sqlite:
            connection.execute(select(func.pg_notify(CHANNEL, "")))


def _held(job: Job) -> ColumnElement[bool]:
    return and_(
        J.c.id == job.id, J.c.state == "running", J.c.worker == job.worker, J.c.attempt == job.attempt
    )


def _strikes(more: int) -> ColumnElement[int]:
    """Those that a job has, with some more; none where it has got further since it was last taken."""
    return case((J.c.mark > J.c.mark_at_claim, 0), else_=J.c.strikes + more)


def _job(row: Row[Any]) -> Job:
    """Of a row with `_SHOWN`."""
    texts = {name: row._mapping[name] for name in ("params", "progress") if row._mapping[name] is not None}
    return Job(**{**row._mapping, **{name: orjson.loads(text) for name, text in texts.items()}})


def _kept(words: str) -> str:
    """The end of a text, as every database takes it."""
    return writable(words.replace("\0", "\ufffd"))[-MOST_ERROR:]


def _not_found(job_id: str) -> NotFoundError:
    return NotFoundError(f"There is no job {job_id}", remedy="It may have been deleted.")
