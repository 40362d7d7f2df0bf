"""A job on a service, as a client has it: watched, stopped, tried again, and its results brought here."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import httpx2
import orjson
from pydantic import TypeAdapter, ValidationError

from uncanny.errors import ConflictError, ServiceError
from uncanny.protocol import jobs, named
from uncanny.records.reviews import Decision
from uncanny.service import Show, State
from uncanny.service.answers import FilePage, Finding, FindingPage, Job, JobFile, JobProgress, RecordPage
from uncanny.service.client.connection import Connection, part
from uncanny.service.client.downloads import fetch, has, safe_path, take_folder
from uncanny.wording import cost, count, duration, harmless

if TYPE_CHECKING:
    from uncanny.schema import Annotation

_FIRST_S = 10.0
_EVERY_S = 30.0
# The server says something every 15 s.
_QUIET_S: Final = 40.0
_AGAIN_S: Final = 1.0
_LONGEST_AGAIN_S: Final = 10.0
_RECORDS_A_PAGE: Final = 500
_MOST_FILES: Final = 1_000_000
_JSON: Final = TypeAdapter(Any)


@dataclass(frozen=True, slots=True)
class JobEvent:
    """Something new of a job: `name` is `progress`, `state` or `record`, `data` is what the server says."""

    name: str
    data: Mapping[str, Any] = field(repr=False)


class ClientJob:
    """A job on a service, which goes on whoever watches it.

    >>> with uncanny.Client(address) as client:
    ...     job = client.detect("scenes", model="demo", limit=2)
    ...     print(job.wait(progress=True).state, job.progress.done)
    ...     print([record.source for record in job.annotations()])
    finished 2
    ['real', 'real']

    What is known of it is as of the last answer; `refresh` asks again.
    """

    def __init__(self, connection: Connection, record: Job) -> None:
        """Jobs come from a `Client`."""
        self._connection = connection
        self.record = record
        """The job as the server last described it."""

    def __repr__(self) -> str:
        return f"<ClientJob {self.id}: {self.kind}, {self.state}>"

    @property
    def id(self) -> str:
        """What the service calls it, `job_…`."""
        return self.record.id

    @property
    def kind(self) -> str:
        """What it does: `annotate`, `detect`, …"""
        return self.record.kind

    @property
    def state(self) -> State:
        """`queued`, `running`, or how it ended.

        That is `finished`, `incomplete` (some records failed), `over_budget`, `cancelled` or `failed`.
        """
        return self.record.state

    @property
    def progress(self) -> JobProgress:
        """How far it is; None is what is not known."""
        return self.record.progress or JobProgress()

    @property
    def error(self) -> str | None:
        """The last words of a job that failed."""
        return self.record.error

    @property
    def exit_code(self) -> int | None:
        """That of its command; None before its end, and where it had none."""
        return self.record.exit_code

    @property
    def has_ended(self) -> bool:
        """Whether it is neither in the queue nor running, as far as is known."""
        return self.record.has_ended

    @property
    def reference(self) -> str:
        """As an input of another job: its run, or its records."""
        return f"job:{self.id}"

    @property
    def url(self) -> str:
        """Its page, for people with a browser."""
        return f"{self._connection.shown}/jobs/{self.id}"

    def refresh(self) -> ClientJob:
        """Ask the server how it is. Raises NotFoundError where it was deleted."""
        self.record = self._connection.read(f"jobs/{self.id}", Job)
        return self

    def wait(self, *, progress: bool = False, timeout_s: float | None = None) -> ClientJob:
        """Wait until it has ended, or for `timeout_s` seconds: `state` says which.

        `progress` shows how far it is on standard error. Connections that break are made again; the job
        does not mind. Raises ServiceError where the server stays away.
        """
        self.watch(progress=progress, until=None if timeout_s is None else time.monotonic() + timeout_s)
        return self

    def watch(self, *, progress: bool, until: float | None = None) -> None:
        """`wait`, for those who count by `time.monotonic`."""
        with shown_progress(enabled=progress) as show:
            self.refresh()
            show(self.record)
            if not self.has_ended:
                for _ in self._events(until, records=False):
                    show(self.record)

    def events(self) -> Iterator[JobEvent]:
        """What happens, as it happens, until the job has ended; what has ended has none.

        `state` and `progress` of the job are those of the event meanwhile. A connection that breaks is made
        again, where it broke. Raises ServiceError where the server stays away.
        """
        self.refresh()
        if not self.has_ended:
            yield from self._events(None, records=True)

    def cancel(self) -> ClientJob:
        """Stop it: calls in flight come back, what is finished stays. One that has ended stays as it is."""
        return self._change("cancel")

    def retry(self) -> ClientJob:
        """Go on with one that has ended: what failed is asked again, what is finished is not.

        One that has not ended goes on by itself, and stays as it is.
        """
        try:
            return self._change("retry")
        except ConflictError:
            # Where an answer was lost, it is in the queue by the first attempt.
            if self.refresh().has_ended:
                raise
            return self

    def limits(self, **limits: float | None) -> ClientJob:
        """Give one that has ended other limits, and `retry` it then: `max_cost_usd`, `max_tokens_total`, …

        Also `limit` and `concurrency`; None takes a limit away. Raises ConflictError where it has not ended,
        ParamsError.
        """
        return self._change("limits", limits)

    def delete(self) -> None:
        """Delete it with its files. Raises ConflictError where it has not ended."""
        self._connection.write("DELETE", f"jobs/{self.id}", None)

    @property
    def result(self) -> Any:
        """What its command prints with `--json`; paths in it are the server's.

        Raises ConflictError before it has ended, and with the reason where it has failed.
        """
        if not self.has_ended and not self.refresh().has_ended:
            raise ConflictError(f"Job {self.id} is {self.state}", remedy="Wait for it with `wait()`.")
        if self.state == "failed":
            raise ConflictError(
                f"Job {self.id} has failed: {self.record.error or 'the reason is not known'}",
                remedy="Mend that and call `retry()`, or start another job.",
            )
        return self._connection.read(f"jobs/{self.id}/result", _JSON)

    def records(self) -> Iterator[dict[str, Any]]:
        """Its records, as its file has them, asked for page by page as they are wanted.

        Those of a job that is running are the ones there are so far.
        """
        for page in self._connection.pages(f"jobs/{self.id}/records", RecordPage, {"limit": _RECORDS_A_PAGE}):
            yield from page.records
            if not page.records:
                return

    def annotations(self) -> Iterator[Annotation]:
        """The records of a job that annotates or detects; detections are of the class `Detection`.

        `image` names the file as the server has it. Raises ServiceError for a record that is none.
        """
        known = jobs().get(self.kind)
        if known is None or not known.record:
            raise ConflictError(f"{self.id} is a job of {self.kind}, which has no annotations")
        form: type[Annotation] = named(known.record)
        for record in self.records():
            try:
                yield form.model_validate(record)
            except ValidationError as error:
                first = error.errors(include_input=False, include_url=False)[0]
                where = ".".join(map(str, first["loc"]))
                raise ServiceError(
                    f"A record of {self.id} is not a valid {form.__name__}: {where}: {first['msg']}"
                ) from None

    def findings(
        self, *, show: Show = "all", order: Literal["file", "uncertain"] = "file"
    ) -> Iterator[Finding]:
        """What people judge of a job that annotates or detects, page by page.

        `show` is `all`, `todo` for what this token has not judged, `unjudged` by anybody, `ties`, what the
        majority has `accepted`, `rejected` or is `unsure` of, or what people have `changed` or `added`.
        Raises ConflictError for a job that has no findings.
        """
        params = {"show": show, "order": order, "limit": 200}
        for page in self._connection.pages(f"jobs/{self.id}/findings", FindingPage, params):
            yield from page.findings

    def judge(self, finding: Finding, decision: Decision) -> Finding:
        """Say whether a finding is right, in the name of the token; the finding as it is then.

        The last word counts. Raises ConflictError where its text has changed since.
        """
        content = {"finding": finding.id, "text": finding.text, "decision": decision}
        judged = self._connection.write("POST", f"jobs/{self.id}/verdicts", Finding, content=content)
        assert judged is not None
        return judged

    def files(self) -> tuple[JobFile, ...]:
        """Its files: `path` from its folder, `size` in bytes, `sha256`."""
        files: list[JobFile] = []
        for page in self._connection.pages(f"jobs/{self.id}/files", FilePage):
            files += page.files
            if len(files) > _MOST_FILES:
                break
        return tuple(files)

    def download(
        self,
        folder: str | PathLike[str],
        *,
        under: str = "",
        only: Callable[[JobFile], bool] = lambda _: True,
        on_file: Callable[[JobFile, Path], object] = lambda _file, _path: None,
        passing: bool = False,
    ) -> list[Path]:
        """Bring its files into `folder`, which is made. Returns where they are.

        `under` is a folder of the job, such as `run/`, whose files alone are wanted, named from there; `only`
        picks some. Files that are here already, by size and digest, are not asked for again, one that broke
        off goes on, and none is ever half there under its name. `on_file` hears of each when it is whole.
        The folder is this job's from then on, and says so in `.uncanny-job`; not so where it is `passing`,
        and `on_file` takes each file out of it.
        Raises UsageError for a folder of another job or run, a file, and other files in the way;
        ServiceError for names that lead out of the folder, and for what does not arrive as the server has
        it; StorageError where the disk does not take it.
        """
        target = Path(folder)
        wanted = [file for file in self.files() if file.path.startswith(under) and only(file)]
        places = [(file, safe_path(target, file.path.removeprefix(under))) for file in wanted]
        if not passing:
            take_folder(target, self.id, places)
        for file, place in places:
            if not has(place, file):
                fetch(self._connection, f"jobs/{self.id}/files/{part(file.path)}", file, place)
            on_file(file, place)
        return [place for _, place in places]

    def fetch(self, path: str, file: str | PathLike[str]) -> bool:
        """Bring the one file that is called `path` in the job's folder; False where there is none."""
        target = Path(file)
        for each in self.files():
            if each.path == path:
                if not has(target, each):
                    fetch(self._connection, f"jobs/{self.id}/files/{part(path)}", each, target)
                return True
        return False

    def _change(self, what: str, content: object = None) -> ClientJob:
        record = self._connection.write("POST", f"jobs/{self.id}/{what}", Job, content=content)
        assert record is not None
        self.record = record
        return self

    def _events(self, until: float | None, *, records: bool) -> Iterator[JobEvent]:
        last: str | None = None
        again_s = _AGAIN_S
        while not self.has_ended:
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                return
            try:
                read_s = _QUIET_S if left is None else min(_QUIET_S, max(left, 0.1))
                for event_id, event in self._stream(last, read_s, records=records):
                    last, again_s = event_id or last, _AGAIN_S
                    yield event
                    if self.has_ended or (until is not None and time.monotonic() > until):
                        return
            except httpx2.HTTPError:
                pass  # the server is asked for what came after `last`, or stays away for good
            if until is None or time.monotonic() + again_s < until:
                self._connection.wait(again_s)
            again_s = min(2 * again_s, _LONGEST_AGAIN_S)
            self.refresh()

    def _stream(self, last: str | None, read_s: float, *, records: bool) -> Iterator[tuple[str, JobEvent]]:
        headers = {"Accept": "text/event-stream"}
        if last is not None:
            headers["Last-Event-ID"] = last
        with self._connection.stream(
            f"jobs/{self.id}/events", {"records": str(records).lower()}, headers=headers, read_s=read_s
        ) as response:
            for event in httpx2.EventSource(response):
                try:
                    data = orjson.loads(event.data)
                except orjson.JSONDecodeError:
                    continue
                if not isinstance(data, dict):
                    continue
                self._take(event.event, data)
                yield event.id, JobEvent(event.event, data)

    def _take(self, name: str, data: dict[str, Any]) -> None:
        """Enter what an event says into what is known."""
        try:
            if name == "state":
                self.record = Job.model_validate({**self.record.model_dump(), **data})
            elif name == "progress":
                progress = JobProgress.model_validate(data)
                self.record = self.record.model_copy(update={"progress": progress, "state": "running"})
        except ValidationError:
            pass  # of another version; what `refresh` says is checked


# How far it is, on standard error: live on a terminal, now and then in a log file.


@contextmanager
def shown_progress(*, enabled: bool) -> Iterator[Callable[[Job], None]]:
    """A function that is to be called with the job whenever there is something new of it."""
    if not enabled:
        yield lambda _job: None
    elif sys.stderr is not None and sys.stderr.isatty():
        with _live() as show:
            yield show
    else:
        yield _Log()


@contextmanager
def _live() -> Iterator[Callable[[Job], None]]:
    from uncanny.runs.live_line import LineParts, LiveLine

    last: list[Job] = []

    def parts() -> LineParts:
        if not last:
            return LineParts(["queued"])
        job, progress = last[-1], last[-1].progress or JobProgress()
        if progress.total is None:
            return LineParts([job.state])
        done, total = progress.done or 0, progress.total
        heads = _heads(progress)
        lines = [
            (f"{job.state} {done:,}/{total:,}", heads[0]),
            *((f"{done:,}/{total:,}", each) for each in heads),
        ]
        words = [" · ".join(filter(None, line)) for line in lines]
        return LineParts([harmless(each) for each in words], _rest(progress), done / total if total else None)

    def show(job: Job) -> None:
        last[:] = [job]
        line.draw()

    line = LiveLine(parts)
    line.open()
    try:
        yield show
    finally:
        line.close()


class _Log:
    """A line now and then, and one whenever the job is in another state."""

    def __init__(self) -> None:
        self._state: str | None = None
        self._next = time.monotonic() + _FIRST_S

    def __call__(self, job: Job) -> None:
        if job.state == self._state and time.monotonic() < self._next:
            return
        first, self._state = self._state is None, job.state
        self._next = time.monotonic() + (_FIRST_S if first else _EVERY_S)
        progress = job.progress
        line = f"{job.id} {job.state}"
        if progress is not None and progress.total is not None:
            line += f" · {progress.done or 0:,}/{progress.total:,} · {facts(progress)}"
        # Whoever reads the log may have gone; the job does not mind.
        with suppress(OSError, ValueError):
            print(harmless(line), file=sys.stderr, flush=True)


def facts(progress: JobProgress) -> str:
    """Calls a second, time to go, failures, cost, calls and tokens; what is not known is left out."""
    return " · ".join(filter(None, [_heads(progress)[0], *_rest(progress)]))


def _heads(progress: JobProgress) -> list[str]:
    """The rate and the time to go, in ever fewer characters."""
    rate, eta = progress.rate, round(progress.eta_s or 0)
    # What rounds to nothing is no time to wait for.
    left = None if eta < 1 else f"{duration(eta)} to go"
    long, short = (None, None) if rate is None else (f"{rate:.1f} calls/s", f"{rate:.1f}/s")
    return [" · ".join(filter(None, (each, left))) for each in (long, short)]


def _rest(progress: JobProgress) -> list[str]:
    tokens = (progress.input_tokens, progress.output_tokens)
    parts = [
        None if progress.failed is None else f"{progress.failed:,} failed",
        None if progress.cost_usd is None else cost(progress.cost_usd),
        None if progress.calls is None else f"{progress.calls:,} calls",
        None if None in tokens else f"{count(sum(each or 0 for each in tokens))} tokens",
    ]
    return [part for part in parts if part is not None]
