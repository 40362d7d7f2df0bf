"""What a run has spent that `run.json` does not count yet, from what is on disk."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from io import FileIO
from pathlib import Path
from typing import Annotated

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

from uncanny.errors import StorageError
from uncanny.providers.base import MOST_TOKENS, Outcome
from uncanny.providers.call_log import CallRecord
from uncanny.records.jsonl import append_whole, is_deleted, open_to_append, open_to_read
from uncanny.records.run_folder import RunFolder
from uncanny.records.run_manifest import RunManifest
from uncanny.runs.options import RunOptions
from uncanny.runs.progress import Served, Spending
from uncanny.schema import as_count, as_dollars

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
    """`spending.jsonl`: each call as it comes back, until `run.json` counts it.

    A kill between two writes of `run.json` would lose what the calls since then cost. Lines are numbered as
    `run.json` counts calls, so what it counts already is told from what it does not.
    """

    def __init__(self, path: Path) -> None:
        """Opens nothing yet."""
        self.path = path
        self._file: FileIO | None = None

    def open(self) -> None:
        """Raises UsageError."""
        self._file = open_to_append(self.path)

    def uncounted(self, counted: int) -> Iterator[PaidCall]:
        """Calls of an earlier sitting beyond the first `counted` of the run. Raises UsageError."""
        return (call for call in read_paid(self.path) if call.number > counted)

    def append(self, call: CallRecord, number: int) -> None:
        """Raises StorageError where it cannot be written, and where the file was deleted."""
        assert self._file is not None
        if is_deleted(self._file):
            raise StorageError(
                f"{self.path.parent} was deleted while the run was going on",
                remedy="The same command goes on with what is there.",
            )
        line = {
            "number": number,
            "started": call.started,
            "model": call.model,
            "served_model": call.served_model,
            "outcome": call.outcome,
            "input_tokens": call.input_tokens,
            "cached_tokens": call.cached_tokens,
            "output_tokens": call.output_tokens,
            "cost_usd": call.cost_usd,
        }
        append_whole(self._file, orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))

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


def spent(folder: RunFolder) -> Spending:
    """What a run has spent by what its files say, whether or not it goes on. Raises UsageError."""
    spending = Spending.recorded(folder.read_manifest() or RunManifest())
    for call in SpendingFile(folder.spending).uncounted(spending.calls):
        spending.add(call)
    return spending


def what_is_left(options: RunOptions, others: Sequence[RunFolder]) -> RunOptions:
    """The same options with what runs in the folders `others` have left of limits that hold for all together.

    Raises UsageError.
    """
    usd, tokens = options.max_cost_usd, options.max_tokens_total
    if usd is None and tokens is None:
        return options
    sums = [spent(each).sums for each in others]
    if usd is not None:
        usd = max(usd - sum(each["cost_usd"] for each in sums), _NOTHING_LEFT_USD)
    if tokens is not None:
        taken = sum(each["input_tokens"] + each["output_tokens"] for each in sums)
        tokens = max(tokens - int(taken), _NOTHING_LEFT_TOKENS)
    return replace(options, max_cost_usd=usd, max_tokens_total=tokens)


class Recount:
    """Counts the calls of a run without a `run.json`, and of one killed under version 0.1.0.

    Those of finished images stand in `calls.jsonl`. Those of unfinished ones come back from the run's own
    answer cache as replays; they were paid for by this run, so each is counted once, by the moment it
    started. With a cache shared between runs a replay may be another run's expense and counts as none.
    `served` is what `run.json` knew of who answered. `first` is when the first call started, in seconds since
    the epoch, None where there is none. `unread` counts lines of `calls.jsonl` that are no calls.
    """

    def __init__(
        self, calls: Path, spending: Path, *, since: float = 0.0, own_cache: bool, served: Served
    ) -> None:
        """`since`, in seconds since the epoch, is when the run began. Raises UsageError."""
        self.spending = Spending(served=served)
        self.first: float | None = None
        self.unread = 0
        self._since, self._own_cache = since, own_cache
        self._seen: set[float] = set()
        for call in read_paid(calls, self._note_unread):
            self._count(call)
        for call in read_paid(spending):
            self._count(call)

    def paid_here(self, call: CallRecord) -> bool:
        """Whether a replayed call is this run's own expense, not counted yet; says so once."""
        return self._first_time(call.started.timestamp())

    def _note_unread(self) -> None:
        self.unread += 1

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
        if not self._own_cache or moment < self._since or moment in self._seen:
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
