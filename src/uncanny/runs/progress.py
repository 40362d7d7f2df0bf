"""What a run has done so far, for people to look at and for `run.json`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from uncanny.providers.call_log import CallRecord

_FIGURES = ("input_tokens", "cached_tokens", "output_tokens", "cost_usd")
_ANSWERED = ("ok", "refused", "undetermined")


@dataclass(slots=True)
class Spending:
    """Calls asked and what they used. `unmeasured` counts answers whose figure no one reported."""

    calls: int = 0
    replayed: int = 0
    sums: dict[str, float] = field(default_factory=lambda: dict.fromkeys(_FIGURES, 0))
    unmeasured: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)

    def add(self, call: CallRecord, *, paid: bool | None = None) -> None:
        """Count a call. `paid` says whether it cost this run something; by default unless it was replayed."""
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
    def recorded(cls, totals: dict[str, Any]) -> Spending:
        """Take up the count of an earlier sitting."""
        spending = cls(calls=totals.get("calls", 0), replayed=totals.get("replayed", 0))
        spending.sums.update(totals.get("sums", {}))
        spending.unmeasured.update(totals.get("unmeasured", {}))
        spending.outcomes.update(totals.get("outcomes", {}))
        return spending


@dataclass(slots=True)
class Progress:
    """Counters of one sitting and of the run as a whole.

    `paid_before` tells of a replayed call whether a killed sitting of this run paid for it, uncounted.
    `unit` is what inputs are called, `kinds` the statuses they can have.
    `total` inputs are in the run, `resumed` of them were finished before this sitting, `statuses` counts the
    finished ones by status. `seconds_before` were spent in earlier sittings.
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
    warnings: list[str] = field(default_factory=list)
    calls_now: int = 0
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

    def add_call(self, call: CallRecord) -> None:
        self.spending.add(call, paid=True if call.replayed and self.paid_before(call) else None)
        self.calls_now += not call.replayed

    def seconds(self) -> float:
        return time.monotonic() - self.began

    def eta_s(self) -> float | None:
        """Seconds to go at this sitting's pace; None before anything was finished in it."""
        now = self.done - self.resumed
        return (self.total - self.done) * self.seconds() / now if now > 0 else None
