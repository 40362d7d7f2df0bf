"""What is counted over every image of a run, shown on the page or not."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from uncanny.schema import Annotation, Status

Number = TypeVar("Number", int, float)
STATUSES: tuple[Status, ...] = ("ok", "partial", "failed", "unreadable")
_ORDER: dict[Status, int] = {"failed": 0, "partial": 1, "unreadable": 2, "ok": 3}


@dataclass(slots=True)
class Tally:
    """Counts over all records.

    `severities` has one key per severity 0-100. `per_image` counts images by number of anomalies, over
    `ok` and `partial` records: the others say nothing about how many there are. `unpriced` is the number
    of records with calls and without a price. Tokens and cost are None until one record reports them.
    """

    statuses: Counter[Status] = field(default_factory=Counter)
    severities: Counter[int] = field(default_factory=Counter)
    per_image: Counter[int] = field(default_factory=Counter)
    names: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    unpriced: int = 0

    @property
    def images(self) -> int:
        return self.statuses.total()

    @property
    def anomalies(self) -> int:
        return self.severities.total()

    def add(self, record: Annotation) -> None:
        self.statuses[record.status] += 1
        if record.status in ("ok", "partial"):
            self.per_image[len(record.anomalies)] += 1
        for anomaly in record.anomalies:
            self.severities[anomaly.severity] += 1
            self.names[anomaly.name.casefold()] += 1
        usage = record.usage
        self.calls += usage.calls
        self.input_tokens = _sum(self.input_tokens, usage.input_tokens)
        self.cached_tokens = _sum(self.cached_tokens, usage.cached_tokens)
        self.output_tokens = _sum(self.output_tokens, usage.output_tokens)
        self.cost_usd = _sum(self.cost_usd, usage.cost_usd)
        self.unpriced += usage.calls > 0 and usage.cost_usd is None


def _sum(so_far: Number | None, more: Number | None) -> Number | None:
    if more is None:
        return so_far
    return more if so_far is None else so_far + more


def rank(record: Annotation) -> tuple[int, int, str]:
    """Sort key of the page: failed, partial, unreadable, then lowest severity; images without any last."""
    worst = min((anomaly.severity for anomaly in record.anomalies), default=101)
    return _ORDER[record.status], worst, record.image


def select(records: Iterable[Annotation], limit: int) -> tuple[list[Annotation], Tally]:
    """Count all `records` and keep the `limit` that rank first, in memory for `limit` records only."""
    tally = Tally()

    def counted() -> Iterator[Annotation]:
        for record in records:
            tally.add(record)
            yield record

    return heapq.nsmallest(limit, counted(), key=rank), tally
