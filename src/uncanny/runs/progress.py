"""What a run has done so far, for people to look at and for `run.json`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from uncanny.images import SkippedInputs
from uncanny.providers.base import Outcome
from uncanny.providers.call_log import CallRecord
from uncanny.records.run_manifest import RunManifest, Totals

_FIGURES = ("input_tokens", "cached_tokens", "output_tokens", "cost_usd")
_ANSWERED = ("ok", "refused", "undetermined")
MOST_NAMES = 20


class CallCost(Protocol):
    """Of a call what counts as spent, and who answered."""

    @property
    def model(self) -> str: ...
    @property
    def served_model(self) -> str | None: ...
    @property
    def outcome(self) -> Outcome: ...
    @property
    def replayed(self) -> bool: ...
    @property
    def input_tokens(self) -> int | None: ...
    @property
    def cached_tokens(self) -> int | None: ...
    @property
    def output_tokens(self) -> int | None: ...
    @property
    def cost_usd(self) -> float | None: ...


@dataclass(slots=True)
class Served:
    """Under which names each model answered: a name such as `gpt-4o` stands for one snapshot after another.

    `names` has them by the model as the user wrote it, in order of their first answers, `MOST_NAMES` at most.
    `unnamed` are models of which some answers bear no name.
    """

    names: dict[str, list[str]] = field(default_factory=dict)
    unnamed: set[str] = field(default_factory=set)

    def add(self, call: CallCost) -> None:
        if call.outcome == "error":
            return
        if call.served_model is None:
            self.unnamed.add(call.model)
            return
        names = self.names.setdefault(call.model, [])
        if call.served_model not in names and len(names) < MOST_NAMES:
            names.append(call.served_model)

    def as_recorded(self) -> dict[str, Any]:
        return {"served_as": dict(sorted(self.names.items())), "served_unnamed": sorted(self.unnamed)}

    @classmethod
    def recorded(cls, manifest: RunManifest) -> Served:
        """Take up what `run.json` says of earlier sittings; version 0.1.0 did not say it."""
        if "served_as" not in manifest.model_fields_set:
            outcomes = (manifest.totals and manifest.totals.outcomes) or {}
            answers = any(number for outcome, number in outcomes.items() if outcome != "error")
            return cls(unnamed={manifest.model} if answers and manifest.model else set())
        names = {model: list(served) for model, served in manifest.served_as.items()}
        return cls(names, set(manifest.served_unnamed))


@dataclass(slots=True)
class Spending:
    """Calls asked, what they used and who answered.

    `unmeasured` counts answers whose figure no one reported.
    """

    calls: int = 0
    replayed: int = 0
    sums: dict[str, float] = field(default_factory=lambda: dict.fromkeys(_FIGURES, 0))
    unmeasured: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    served: Served = field(default_factory=Served)

    def add(self, call: CallCost, *, paid: bool | None = None) -> None:
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

    def figure(self, name: str) -> float | None:
        """A sum, None while a single answer left it unmeasured."""
        return None if self.unmeasured[name] else self.sums[name]

    def as_recorded(self) -> dict[str, Any]:
        return {
            "calls": self.calls,
            "replayed": self.replayed,
            **{name: self.figure(name) for name in _FIGURES},
            "unmeasured": dict(self.unmeasured),
            "outcomes": {key: self.outcomes[key] for key in ("answered", "unparseable", "refused", "error")},
            "sums": self.sums,
        }

    @classmethod
    def recorded(cls, manifest: RunManifest) -> Spending:
        """Take up the count of earlier sittings from `run.json`."""
        totals = manifest.totals or Totals()
        spending = cls(calls=totals.calls or 0, replayed=totals.replayed or 0)
        spending.unmeasured.update(totals.unmeasured)
        for name in _FIGURES:
            value = getattr(totals.sums, name)
            spending.sums[name] = value or 0
            if value is None:
                spending.unmeasured[name] += 1
        spending.outcomes.update(totals.outcomes or {})
        spending.served = Served.recorded(manifest)
        return spending


@dataclass(slots=True)
class Progress:
    """Counters of one sitting and of the run as a whole.

    `paid_before` tells of a replayed call whether a killed sitting of this run paid for it, uncounted.
    `unit` is what inputs are called, `kinds` the statuses they can have.
    `total` inputs are in the run, `resumed` of them were finished before this sitting, `statuses` counts the
    finished ones by status. `seconds_before` were spent in earlier sittings. `calls_expected` are
    about what this sitting takes, as far as can be told before. `skipped` is what lay in the folders given
    and is no input; None where a task looks into no folders.
    """

    unit: str = "images"
    kinds: tuple[str, ...] = ("ok", "partial", "failed", "unreadable")
    total: int = 0
    resumed: int = 0
    duplicates: int = 0
    items_found: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    spending: Spending = field(default_factory=Spending)
    pixel_changes: Counter[str] = field(default_factory=Counter)
    skipped: SkippedInputs | None = None
    warnings: list[str] = field(default_factory=list)
    calls_now: int = 0
    calls_expected: int = 0
    seconds_before: float = 0.0
    began: float = field(default_factory=time.monotonic)
    paid_before: Callable[[CallRecord], bool] = lambda _call: False

    @property
    def done(self) -> int:
        return self.statuses.total()

    @property
    def failures(self) -> int:
        """Inputs that are not as they should be. A refusal is an answer, and so is one without a verdict."""
        return self.done - sum(self.statuses[name] for name in _ANSWERED)

    @property
    def missing_folders(self) -> int:
        """Folders that could not be read, so that inputs may be missing."""
        return self.skipped.unreadable_folders if self.skipped else 0

    def add_call(self, call: CallRecord) -> None:
        self.spending.add(call, paid=True if call.replayed and self.paid_before(call) else None)
        self.calls_now += not call.replayed

    def seconds(self) -> float:
        return time.monotonic() - self.began

    def eta_s(self) -> float | None:
        """Seconds to go at this sitting's pace; None before anything was finished in it."""
        now = self.done - self.resumed
        return (self.total - self.done) * self.seconds() / now if now > 0 else None
