"""A job as its pages show it: figures in words, what can be done with it, and what it wants from people."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from uncanny.errors import NotFoundError
from uncanny.eval.common.pages.page import stamp
from uncanny.service import State, is_id
from uncanny.service.answers import Job, JobProgress
from uncanny.service.jobs.folder import OUT, RUN
from uncanny.service.jobs.kinds import KINDS, title_of
from uncanny.service.jobs.references import job_of, replaced
from uncanny.service.service import Service
from uncanny.wording import NOT_PRICED, cost, count, duration

STATES: Final[Mapping[State, str]] = {
    "queued": "queued",
    "running": "running",
    "finished": "finished",
    "incomplete": "incomplete",
    "over_budget": "over budget",
    "cancelled": "cancelled",
    "failed": "failed",
}
_MOVING: Final = frozenset({"queued", "running"})
_DAY_S: Final = 24 * 3600
_LONGEST_REASON: Final = 160


class Advice(NamedTuple):
    what: str
    do: str


_ADVICE: Final[Mapping[State, Advice]] = {
    "queued": Advice("It waits for its turn.", "It begins as soon as a worker is free."),
    "incomplete": Advice("It finished, but some failed.", "They are listed below and can be asked again."),
    "over_budget": Advice(
        "It stopped at its budget.",
        "What is done stays. Raise the limit to resume.",
    ),
    "cancelled": Advice("It was cancelled.", "What is done stays, and “Go on” takes it up where it stopped."),
    "failed": Advice("It could not be done.", "This is what the command said:"),
}
# Where the records do not say what failed.
IN_PART: Final = Advice("Not everything could be done.", "Its report, its files and its log say what.")
# Of a score, which asks nothing itself.
OF_RUNS: Final = Advice(
    "Some of the records it scores failed, and are in none of its figures.",
    "Ask them again in the jobs they come from, then press “Try again” here.",
)
_RETRY: Final[Mapping[State, str]] = {
    "incomplete": "Ask failed again",
    "cancelled": "Go on",
    "failed": "Try again",
}


class LimitView(NamedTuple):
    """A limit of a job, which may be put up: its parameter, its label in a form, its value."""

    name: str
    label: str
    value: str
    whole: bool


class JobView:
    """A job for templates; everything it says is text that is escaped there."""

    def __init__(self, job: Job, *, now: datetime | None = None) -> None:
        now = now or datetime.now(UTC)
        progress = job.progress or JobProgress()
        self.id, self.kind, self.state, self.error = job.id, job.kind, job.state, job.error
        self.by, self.attempt = job.created_by, job.attempt
        self.title = title_of(job)
        self.moving = job.state in _MOVING
        self.created_iso = job.created_at.isoformat()
        self.created = stamp(self.created_iso)
        self.age = age((now - job.created_at).total_seconds())
        end = job.ended_at or (now if self.moving else None)
        # Less than nothing where the clock was set back meanwhile.
        took = (end - job.started_at).total_seconds() if end and job.started_at else -1.0
        self.took = duration(took) if took >= 0 else ""
        self.total, self.done, self.n_failed = progress.total, progress.done, progress.failed
        # What a bar shows: what failed is not done.
        self.well = None if progress.done is None else max(0, progress.done - (progress.failed or 0))
        # A job that is incomplete has no full bar, also where its figures do not say what is missing.
        self.has_bar = bool(self.total) and not (job.state == "incomplete" and self.well == self.total)
        self.reason = _reason(job.error) if job.state == "failed" else ""
        self.cost = _spent(progress)
        self.cost_to_come = _to_come(progress) if job.state == "running" else ""
        self.calls = "–" if progress.calls is None else f"{progress.calls:,}"
        self.tokens_in = "–" if progress.input_tokens is None else count(progress.input_tokens)
        self.tokens_out = "–" if progress.output_tokens is None else count(progress.output_tokens)
        running = job.state == "running"
        self.rate = f"{progress.rate:.1f} calls/s" if running and progress.rate else ""
        self.eta = "…" if progress.eta_s is None else duration(progress.eta_s)
        self.advice = _ADVICE.get(job.state)
        self.retry_word = _RETRY.get(job.state, "")
        self.retryable = bool(self.retry_word)


def _reason(error: str | None) -> str:
    """Why it failed, in a line: the first that says something."""
    first = next((line.strip() for line in (error or "").splitlines() if line.strip()), "")
    first = first.removeprefix("Error: ")
    return first if len(first) <= _LONGEST_REASON else f"{first[: _LONGEST_REASON - 1]}…"


def age(seconds: float) -> str:
    """`now`, `5 min`, `3 h`, `12 d`."""
    if seconds < 60:
        return "now"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min"
    return f"{seconds // 3600:.0f} h" if seconds < 2 * _DAY_S else f"{seconds // _DAY_S:.0f} d"


def size(number: int) -> str:
    """`512 B`, `34 kB`, `1.2 MB`."""
    for unit, least in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if number >= least:
            return f"{number / least:.1f} {unit}" if number < 10 * least else f"{number / least:.0f} {unit}"
    return f"{number} B"


def _spent(progress: JobProgress) -> str:
    if progress.cost_usd is None:
        return NOT_PRICED if progress.calls else "–"
    return cost(progress.cost_usd)


def _to_come(progress: JobProgress) -> str:
    if not (progress.cost_usd and progress.done and progress.total):
        return ""
    return f"about {cost(progress.cost_usd * progress.total / progress.done)} in all"


def command_line(service: Service, kind: str, params: Mapping[str, Any]) -> str:
    """`uncanny …`, to be copied. What was uploaded is named as it was sent, other jobs by `runs/JOB`."""
    made = KINDS[kind]
    named = replaced(params, lambda text: _name(service, text))
    inputs = _words(named.pop(made.protocol.input.name, []))
    options = [word for name, value in named.items() for word in made.option(name, value)]
    out: list[str] = []
    for name, place in made.outputs.items():
        target = place.upper() if place in (RUN, OUT) else place.rpartition("/")[2]
        out += ["-o", target] if name == "out" else made.option(name, target)
    return shlex.join(["uncanny", *made.protocol.command, *inputs, *out, *options])


def _words(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [f"{key}={each}" for key, each in value.items()]
    return list(map(str, value)) if isinstance(value, list) else [str(value)]


def _name(service: Service, text: str) -> str:
    if (job := job_of(text)) is not None:
        return f"runs/{job}"
    upload = text.removeprefix("upload:")
    try:
        if is_id(upload, "set"):
            return service.uploads.image_set(upload).name or "images/"
        if is_id(upload, "file"):
            return service.uploads.file(upload).name
    except NotFoundError:
        pass
    return text
