"""What is kept of a generator's annotations while they are read: counts, sums, and the worst few."""

from __future__ import annotations

import heapq
from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from uncanny.eval.audit.result import SEVERITIES, LeftOut, NameCount, WorstImage
from uncanny.schema import Annotation

MOST_NAMES = 20
MOST_WORST = 12
# Changes beyond what a file's format or colours ask for: these a policy decides.
_CHOSEN_CHANGES = frozenset({"downscale", "jpeg-quality"})


@dataclass(slots=True)
class Tally:
    """One generator's records, added one by one; memory grows by a few numbers and a key an image.

    `key` gives what a record is paired by, None where nothing is paired; `place` says where its file is.
    `of_run` says that they are a run's records, whose pictures have a digest.
    """

    place: Callable[[str], Path]
    key: Callable[[Annotation], str] | None = None
    most_worst: int = MOST_WORST
    of_run: bool = False
    counts: array[int] = field(default_factory=lambda: array("q"))
    severity_sums: array[int] = field(default_factory=lambda: array("q"))
    keys: list[str] = field(default_factory=list)
    severities: list[int] = field(default_factory=lambda: [0] * SEVERITIES)
    models: set[str] = field(default_factory=set)
    prompts: set[str] = field(default_factory=set)
    changes: set[str] | None = None
    _left_out: Counter[str] = field(default_factory=Counter)
    _names: dict[str, _Name] = field(default_factory=dict)
    _worst: list[_Candidate] = field(default_factory=list)

    def add(self, record: Annotation) -> None:
        """Count one record; in figures are those with status `ok`, and a verdict where one was asked for."""
        if record.status != "ok":
            self._left_out[record.status] += 1
            return
        if (record.model_extra or {}).get("source", "not asked") is None:
            self._left_out["unclear"] += 1
            return
        total = sum(anomaly.severity for anomaly in record.anomalies)
        self.counts.append(len(record.anomalies))
        self.severity_sums.append(total)
        if self.key is not None:
            self.keys.append(self.key(record))
        self._note_origin(record)
        if record.anomalies:
            self._note_anomalies(record, 100 * len(record.anomalies) - total)

    @property
    def left_out(self) -> LeftOut:
        return LeftOut(**self._left_out)

    @property
    def names(self) -> tuple[NameCount, ...]:
        """The most frequent names, most anomalies first."""
        ranked = sorted(self._names.items(), key=lambda item: (-item[1].anomalies, item[0]))
        return tuple(name.counted() for _, name in ranked[:MOST_NAMES])

    @property
    def worst(self) -> tuple[WorstImage, ...]:
        """The images with the highest summed implausibility, worst first; never one without anomalies."""
        return tuple(self._shown(each.record) for each in sorted(self._worst, reverse=True))

    def _note_origin(self, record: Annotation) -> None:
        extra = record.model_extra or {}
        models = extra.get("models")
        self.models.update(models if isinstance(models, dict) and models else [record.model])
        self.prompts.add(record.prompts)
        if record.pixels is not None:
            kinds = {change.partition(":")[0] for change in record.pixels.changes}
            self.changes = (self.changes or set()) | (kinds & _CHOSEN_CHANGES)

    def _note_anomalies(self, record: Annotation, unreal: int) -> None:
        seen = set()
        for anomaly in record.anomalies:
            self.severities[anomaly.severity] += 1
            folded = " ".join(anomaly.name.casefold().split())
            name = self._names.setdefault(folded, _Name())
            name.note(anomaly.name, anomaly.severity, first=folded not in seen)
            seen.add(folded)
        candidate = _Candidate(unreal, record)
        if len(self._worst) < self.most_worst:
            heapq.heappush(self._worst, candidate)
        elif self.most_worst:
            heapq.heappushpop(self._worst, candidate)

    def _shown(self, record: Annotation) -> WorstImage:
        return WorstImage(
            image=record.image,
            path=self.place(record.image),
            sha256=record.sha256 or ("" if self.of_run else None),
            width=record.width,
            height=record.height,
            u=sum(100 - anomaly.severity for anomaly in record.anomalies) / 100,
            anomalies=tuple(sorted(record.anomalies, key=lambda anomaly: anomaly.severity)),
            prompt=None if self.key is None else self.key(record),
        )


@dataclass(slots=True)
class _Name:
    anomalies: int = 0
    images: int = 0
    severity_sum: int = 0
    written: Counter[str] | None = None
    usual: str = ""

    def note(self, name: str, severity: int, *, first: bool) -> None:
        self.anomalies += 1
        self.images += first
        self.severity_sum += severity
        # Most names are written in one way only, and there may be a million of them.
        if not self.usual:
            self.usual = name
        elif self.written is not None or name != self.usual:
            if self.written is None:
                self.written = Counter({self.usual: self.anomalies - 1})
            self.written[name] += 1

    def counted(self) -> NameCount:
        usual = self.usual
        if self.written is not None:
            usual = min(self.written.items(), key=lambda item: (-item[1], item[0]))[0]
        u_mean = 1 - self.severity_sum / self.anomalies / 100
        return NameCount(usual, self.anomalies, self.images, u_mean)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """`unreal` is a hundred times the summed implausibility; a later name in the alphabet is less bad."""

    unreal: int
    record: Annotation

    def __lt__(self, other: _Candidate) -> bool:
        if self.unreal != other.unreal:
            return self.unreal < other.unreal
        return self.record.image > other.record.image


def pairing(pair_by: str | None) -> Callable[[Annotation], str] | None:
    """What records are paired by: the image's file name without extension, or a column of the record.

    The function raises ValueError for a record without that column.
    """
    if pair_by is None:
        return None
    if pair_by == "stem":
        return lambda record: PurePosixPath(record.image).stem
    return lambda record: _column(record, pair_by)


def _column(record: Annotation, column: str) -> str:
    value = (record.model_extra or {}).get(column)
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise ValueError(f"{'is missing' if value is None else 'is no text and no whole number'}")
    return str(value)
