"""What a run has done so far, for people to look at and for `run.json`.

What a run has spent that `run.json` does not count yet, from what is on disk."""

from __future__ import annotations

import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import FileIO
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import orjson
from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from uncanny.client.calls import CallRecord
from uncanny.errors import StorageError
from uncanny.images.discover import SkippedInputs
from uncanny.models.base import MOST_TOKENS, Outcome
from uncanny.records.jsonl import append_whole, is_deleted, open_to_append, open_to_read
from uncanny.records.run_folder import RunFolder
from uncanny.records.run_manifest import RunManifest, Totals
from uncanny.runs.parameters import RunOptions
from uncanny.schema import STATUSES, as_count, as_dollars
from uncanny.wording import Words

log = logging.getLogger("uncanny")

_FIGURES = ("input_tokens", "cached_tokens", "output_tokens", "cost_usd")
MOST_NAMES = 20


@dataclass(slots=True)
class Served:
    """Under which names each model answered: a name such as `gpt-4o` stands for one snapshot after another.

    `names` has them by the model as the user wrote it, in order of their first answers, `MOST_NAMES` at most.
    `unnamed` are models of which some answers bear no name.
    """

    names: dict[str, list[str]] = field(default_factory=dict)
    unnamed: set[str] = field(default_factory=set)

    def add(self, call: CallRecord | PaidCall) -> None:
        if call.outcome == "error":
            return
        if call.served_model is None:
            self.unnamed.add(call.model)
            return
        names = self.names.setdefault(call.model, [])
        if call.served_model not in names and len(names) < MOST_NAMES:
            names.append(call.served_model)

    def as_recorded(self) -> dict[str, Any]:
        names = {model: tuple(served) for model, served in sorted(self.names.items())}
        return {"served_as": names, "served_unnamed": tuple(sorted(self.unnamed))}

    @classmethod
    def recorded(cls, manifest: RunManifest) -> Served:
        """Take up what `run.json` says of earlier sessions."""
        names = {model: list(served) for model, served in manifest.served_as.items()}
        return cls(names, set(manifest.served_unnamed))


@dataclass(slots=True)
class Spending:
    """Calls asked, what they used and who answered.

    `unmeasured` counts answers whose figure no one reported; `estimated_tokens` and `estimated_usd` are what
    a budget booked for them, the most they can have used.
    """

    calls: int = 0
    replayed: int = 0
    sums: dict[str, float] = field(default_factory=lambda: dict.fromkeys(_FIGURES, 0))
    unmeasured: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    served: Served = field(default_factory=Served)
    estimated_tokens: float = 0
    estimated_usd: float = 0.0

    def estimate(self, tokens: float, cost_usd: float) -> None:
        """Book these for an answer that came without usage, beside what of it was measured."""
        self.estimated_tokens += tokens
        self.estimated_usd += cost_usd

    def booked(self) -> tuple[float, float]:
        """Tokens and US dollars as a limit counts them: estimates where nothing was measured."""
        tokens = self.sums["input_tokens"] + self.sums["output_tokens"]
        return tokens + self.estimated_tokens, self.sums["cost_usd"] + self.estimated_usd

    def add(self, call: CallRecord | PaidCall, *, paid: bool | None = None) -> None:
        """Count a call. `paid` says whether it cost this run something; by default unless it was replayed."""
        self.served.add(call)
        if not (not call.replayed if paid is None else paid):
            self.replayed += 1
            return
        self.calls += 1
        self.outcomes[call.outcome] += 1
        if call.outcome == "error":
            return
        for name in _FIGURES:
            value = getattr(call, name)
            if value is None:
                self.unmeasured[name] += 1
            else:
                self.sums[name] += value

    def take_up(self, calls: Iterable[PaidCall]) -> None:
        """Count calls of a session that was killed before `run.json` did.

        What a budget booked for those without usage is nowhere: as much again as for the others, on average.
        """
        unmeasured = max(self.unmeasured["input_tokens"], self.unmeasured["output_tokens"])
        tokens, cost_usd = self.estimated_tokens, self.estimated_usd
        for call in calls:
            self.add(call)
            if unmeasured and call.outcome != "error" and None in (call.input_tokens, call.output_tokens):
                self.estimate(tokens / unmeasured, cost_usd / unmeasured)

    def figure(self, name: str) -> float | None:
        """A sum, None while a single answer left it unmeasured."""
        return None if self.unmeasured[name] else self.sums[name]

    def least(self, name: str) -> float | None:
        """A sum of what was measured, which a figure is at least; None where nothing was."""
        return self.figure(name) if self.figure(name) is not None else self.sums[name] or None

    def as_recorded(self) -> dict[str, Any]:
        return {
            "calls": self.calls,
            "replayed": self.replayed,
            **{name: self.figure(name) for name in _FIGURES},
            "unmeasured": dict(self.unmeasured),
            "outcomes": {key: self.outcomes[key] for key in ("answered", "unparseable", "refused", "error")},
            "sums": self.sums,
            **(
                {"estimated": {"tokens": self.estimated_tokens, "cost_usd": self.estimated_usd}}
                if self.estimated_tokens or self.estimated_usd
                else {}
            ),
        }

    @classmethod
    def recorded(cls, manifest: RunManifest) -> Spending:
        """Take up the count of earlier sessions from `run.json`."""
        totals = manifest.totals or Totals()
        spending = cls(calls=totals.calls or 0, replayed=totals.replayed or 0)
        spending.unmeasured.update(totals.unmeasured)
        for name in _FIGURES:
            value = getattr(totals.sums, name)
            spending.sums[name] = value or 0
            if value is None:
                spending.unmeasured[name] += 1
        spending.outcomes.update(totals.outcomes or {})
        if totals.estimated is not None:
            spending.estimate(totals.estimated.tokens or 0, totals.estimated.cost_usd or 0)
        spending.served = Served.recorded(manifest)
        return spending


@dataclass(slots=True)
class Progress:
    """Counters of one session and of the run as a whole.

    `paid_before` tells of a replayed call whether a killed session of this run paid for it, uncounted.
    `unit` is what inputs are called, `kinds` the statuses they can have, `answered` those of
    them that are no failure.
    `items` is what is counted as found in images; empty where nothing is.
    `total` inputs are in the run, `resumed` of them were finished before this session, `statuses` counts the
    finished ones by status; `without_objects` of the images that are `ok` name neither an object nor an
    anomaly. `objects` were examined in images that are `ok` or `partial`; in those `without_findings` no
    agent found anything wrong. `seconds_before` were spent in earlier sessions. `calls_expected` are about
    what this session takes, as far as can be told before. `gone` are the keys of records whose inputs are no
    longer there; they do not belong to the run. `skipped` is what lay in the folders given and is
    no input; None where a task looks into no folders. `awaited` says in words what the run waits for before
    it goes on or ends; None while it works. `starting` says how far servers are that have to start
    before anything can be asked; None where all calls find one. `latest` names what was finished last, where
    that is shown. The last moments at which an input was finished and a call came back, and the end of the
    session, are on the clock of `began`; None where there was none. Those of the `warnings` that were `said`
    when the session began need not be said when it ends.
    """

    unit: str = "images"
    kinds: tuple[str, ...] = STATUSES
    answered: tuple[str, ...] = ("ok",)
    total: int = 0
    resumed: int = 0
    duplicates: int = 0
    without_objects: int = 0
    items: str = ""
    items_found: int = 0
    objects: int = 0
    without_findings: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    spending: Spending = field(default_factory=Spending)
    pixel_changes: Counter[str] = field(default_factory=Counter)
    gone: tuple[str, ...] = ()
    skipped: SkippedInputs | None = None
    warnings: list[str] = field(default_factory=list)
    said: set[str] = field(default_factory=set)
    calls_now: int = 0
    calls_expected: int = 0
    seconds_before: float = 0.0
    began: float = field(default_factory=time.monotonic)
    paid_before: Callable[[CallRecord], bool] = lambda _call: False
    awaited: Callable[[], str] | None = None
    starting: Callable[[], str | None] = lambda: None
    latest: str = ""
    finished_at: float | None = None
    answered_at: float | None = None
    ended_at: float | None = None

    def warn_now(self, words: str) -> None:
        """Warn of what is better known before a model is asked; `words` have no full stop."""
        log.warning(Words(f"Warning: {words}"))
        self.warnings.append(words)
        self.said.add(words)

    @property
    def done(self) -> int:
        return self.statuses.total()

    @property
    def failures(self) -> int:
        """Finished inputs with a status that is not among those `answered`."""
        return self.done - sum(self.statuses[name] for name in self.answered)

    @property
    def missing_folders(self) -> int:
        """Folders that could not be read, so that inputs may be missing."""
        return self.skipped.unreadable_folders if self.skipped else 0

    def add_call(self, call: CallRecord) -> None:
        self.spending.add(call, paid=True if call.replayed and self.paid_before(call) else None)
        self.calls_now += not call.replayed
        self.answered_at = time.monotonic()

    def note_finished(self) -> None:
        """To be called when `statuses` count an input more."""
        self.finished_at = time.monotonic()

    def end(self) -> None:
        """From now on the session takes no more time: what is said of it later all says the same."""
        self.ended_at = time.monotonic()

    def seconds(self) -> float:
        """Of this session, up to its end."""
        return (time.monotonic() if self.ended_at is None else self.ended_at) - self.began

    def silent_s(self) -> float:
        """Seconds since a call came back, or since the start."""
        return time.monotonic() - (self.began if self.answered_at is None else self.answered_at)

    def eta_s(self) -> float | None:
        """Seconds to go at the pace up to the input that was finished last.

        None before anything was finished in this session, and where what is left takes longer than it should
        at that pace: so a call that hangs does not make it grow.
        """
        now = self.done - self.resumed
        if now <= 0 or self.finished_at is None:
            return None
        if self.done >= self.total:
            return 0.0
        pace = (self.finished_at - self.began) / now
        left = (self.total - self.done) * pace - (time.monotonic() - self.finished_at)
        return left if left > 0 else None


# A limit that is used up still lets a run that needs nothing more find that out.
_NOTHING_LEFT_USD = 1e-12
_NOTHING_LEFT_TOKENS = 1
_Tokens = Annotated[int | None, BeforeValidator(lambda value: as_count(value, MOST_TOKENS))]


class PaidCall(BaseModel):
    """What a call cost, out of a line of `calls.jsonl` or `spending.jsonl`; None is what was not measured.

    `number` counts the calls of the run from 1; only `spending.jsonl` has it.
    """

    model_config = ConfigDict(frozen=True)

    started: AwareDatetime
    model: str
    served_model: str | None = None
    outcome: Outcome
    number: int = 0
    replayed: bool = False
    input_tokens: _Tokens = None
    cached_tokens: _Tokens = None
    output_tokens: _Tokens = None
    cost_usd: Annotated[float | None, BeforeValidator(as_dollars)] = None

    @field_validator("cost_usd")
    @classmethod
    def _of_known_tokens(cls, cost: float | None, info: ValidationInfo) -> float | None:
        """A cost was counted from the tokens: where they cannot be true, neither can it."""
        unknown = None in (info.data.get("input_tokens"), info.data.get("output_tokens"))
        return None if cost and unknown else cost


class SpendingFile:
    """`spending.jsonl`: each call that came back, until `run.json` counts it.

    A kill between two writes of `run.json` would lose what the calls since then cost. The answer cache has
    most of them, but no refusals, no answers that could not be read, and nothing at all where it is switched
    off. A call is written before its answer is kept: an answer that is replayed later was counted. Lines are
    numbered as `run.json` counts calls, so what it counts already is told from what it does not.
    """

    def __init__(self, path: Path) -> None:
        """Opens nothing yet."""
        self.path = path
        self._file: FileIO | None = None
        self._on_failure: Callable[[StorageError], None]

    def open(self, on_failure: Callable[[StorageError], None]) -> None:
        """`on_failure` is told where calls cannot be written, or the file was deleted. Raises UsageError."""
        self._file = open_to_append(self.path)
        self._on_failure = on_failure

    def uncounted(self, counted: int) -> Iterator[PaidCall]:
        """Calls of an earlier session beyond the first `counted` of the run. Raises UsageError."""
        return (call for call in read_paid(self.path) if call.number > counted)

    def append(self, call: CallRecord, number: int) -> None:
        """Write one call down; where that fails, `on_failure` is told."""
        if self._file is None:
            return
        names = ("started", "model", "served_model", "outcome", *_FIGURES)
        line = {"number": number} | {name: getattr(call, name) for name in names}
        try:
            if is_deleted(self._file):
                raise StorageError(
                    f"{self.path.parent} was deleted during the run",
                    remedy="Run the same again to resume with what is left.",
                )
            append_whole(self._file, orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
        except StorageError as error:
            self._on_failure(error)

    def clear(self) -> None:
        """`run.json` counts them all."""
        if self._file is not None:
            self._file.truncate(0)

    def close(self, *, counted: bool) -> None:
        """Removes the file where `run.json` counts all that is in it."""
        if self._file is not None:
            self._file.close()
            self._file = None
        if counted:
            with contextlib.suppress(OSError):  # what `run.json` counts is not counted again
                self.path.unlink()


def spent(folder: RunFolder, manifest: RunManifest | None = None) -> Spending:
    """What a run has spent by what its files say, whether or not it goes on. Raises UsageError.

    `manifest` is its `run.json` where that was read already.
    """
    spending = Spending.recorded(manifest or folder.read_manifest() or RunManifest())
    spending.take_up(SpendingFile(folder.spending).uncounted(spending.calls))
    return spending


def read_run(folder: RunFolder) -> RunManifest | None:
    """`run.json`, and of a run that goes on or was killed what it has spent since that was written.

    None where there is none. Raises UsageError.
    """
    manifest = folder.read_manifest()
    if manifest is None or manifest.state != "running" or not folder.spending.is_file():
        return manifest
    known = {} if manifest.totals is None else manifest.totals.model_dump(exclude_unset=True)
    totals = Totals.model_validate(known | spent(folder, manifest).as_recorded())
    return manifest.model_copy(update={"totals": totals})


def what_is_left(options: RunOptions, others: Sequence[RunFolder]) -> RunOptions:
    """The same options with what runs in the folders `others` have left of limits that hold for all together.

    Raises UsageError.
    """
    usd, tokens = options.max_cost_usd, options.max_tokens_total
    if usd is None and tokens is None:
        return options
    booked = [spent(each).booked() for each in others]
    if usd is not None:
        usd = max(usd - sum(dollars for _, dollars in booked), _NOTHING_LEFT_USD)
    if tokens is not None:
        tokens = max(tokens - int(sum(taken for taken, _ in booked)), _NOTHING_LEFT_TOKENS)
    return options.within(usd, tokens)


class Recount:
    """Counts the calls of a run without a `run.json`.

    Those of finished images stand in `calls.jsonl`. Those of unfinished ones come back from the run's own
    answer cache as replays; they were paid for by this run, so each is counted once, by the moment it
    started. A replay of what was asked after this object was made was counted when it was asked. With a
    cache shared between runs a replay may be another run's expense and counts as none.
    `first` is when the first call started, in seconds since the epoch, None where there is none. `unread`
    counts lines of `calls.jsonl` that are no calls.
    """

    def __init__(self, calls: Path, spending: Path, *, own_cache: bool) -> None:
        """Raises UsageError."""
        self.spending = Spending()
        self.first: float | None = None
        self.unread = 0
        self._until, self._own_cache = time.time(), own_cache
        self._seen: set[float] = set()

        def note_unread() -> None:
            self.unread += 1

        for call in chain(read_paid(calls, note_unread), read_paid(spending)):
            self._count(call)

    def paid_here(self, call: CallRecord) -> bool:
        """Whether a replayed call is this run's own expense, not counted yet; says so once."""
        return self._first_time(call.started.timestamp())

    def _count(self, call: PaidCall) -> None:
        moment = call.started.timestamp()
        self.first = moment if self.first is None else min(self.first, moment)
        if call.number and moment in self._seen:
            return  # of an image that is in `calls.jsonl` already
        self.spending.served.add(call)
        if call.replayed and not self._first_time(moment):
            return
        self._seen.add(moment)
        self.spending.add(call, paid=True)

    def _first_time(self, moment: float) -> bool:
        if not self._own_cache or moment >= self._until or moment in self._seen:
            return False
        self._seen.add(moment)
        return True


def read_paid(path: Path, wrong: Callable[[], None] = lambda: None) -> Iterator[PaidCall]:
    """The calls in a file; `wrong` is called for each whole line that is none. Raises UsageError."""
    reader = open_to_read(path)
    if reader is None:
        return
    with reader:
        for line in reader:
            try:
                yield PaidCall.model_validate_json(line)
            except ValidationError:
                if line.endswith(b"\n") and line.strip():
                    wrong()
