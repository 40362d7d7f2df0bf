"""What is kept of a generator's annotations while they are read: counts, sums, and the worst few.

Intervals of an audit: figures of generators and their differences, from resampled sums."""

from __future__ import annotations

import heapq
from array import array
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import numpy as np

from uncanny.eval.audit.result import SEVERITIES, LeftOut, NameCount, WorstImage
from uncanny.eval.metrics.audit import COLUMNS, Floats, figures_of_sums, sums_by_cluster
from uncanny.eval.metrics.bootstrap import LEVEL, percentile_intervals, resampled_sums
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


# With fewer prompts in common, a difference over them alone rests on too little.
FEWEST_SHARED = 10

Interval = tuple[float, float]
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Compared:
    """A pair's difference in MAI, AF and CAP, with intervals; `shared` prompts or None where not paired."""

    shared: int | None
    values: tuple[float, ...]
    intervals: tuple[Interval | None, ...]


class Resampled:
    """All resamples of all generators, and of the pairs that were asked for.

    Where nothing is paired, each generator's images are resampled by themselves, in a way that depends on
    `seed` and its name alone. Otherwise prompts are resampled, each with its images in all generators.
    """

    def __init__(
        self, tallies: Mapping[str, Tally], pairs: Sequence[Pair], *, paired: bool, resamples: int, seed: int
    ) -> None:
        self._sums = _by_prompt(tallies) if paired else _by_image(tallies)
        self._shared = {pair: self._in_both(pair) for pair in pairs} if paired else {}
        self._drawn: dict[str | tuple[Pair, str], Floats] = {}
        if paired:
            self._draw_together(resamples, seed)
        else:
            for name, sums in self._sums.items():
                rng = np.random.default_rng([seed, *name.encode()])
                self._drawn[name] = figures_of_sums(resampled_sums(sums, rng, resamples=resamples))

    def intervals(self, name: str) -> tuple[Interval | None, ...]:
        """Of MAI, AF, CAP and u_mean; None where fewer than two images or prompts could be drawn from."""
        if np.count_nonzero(self._sums[name][:, 0]) < 2:
            return (None,) * 4
        return tuple(percentile_intervals(self._drawn[name], level=LEVEL))

    def compare(self, pair: Pair) -> Compared:
        """The first minus the second of a pair that was named at the beginning; both have images."""
        shared = self._shared.get(pair)
        sums = [self._sums[name] if shared is None else self._sums[name][shared] for name in pair]
        values = np.subtract(*(figures_of_sums(each.sum(axis=0)) for each in sums))
        intervals: tuple[Interval | None, ...] = (None,) * COLUMNS
        if all(np.count_nonzero(each[:, 0]) > 1 for each in sums):
            first, second = (self._drawn.get((pair, name), self._drawn[name]) for name in pair)
            intervals = tuple(percentile_intervals((first - second)[:, :COLUMNS], level=LEVEL))
        number = None if shared is None else int(np.count_nonzero(shared))
        return Compared(number, tuple(float(value) for value in values[:COLUMNS]), intervals)

    def _in_both(self, pair: Pair) -> np.ndarray[tuple[int], np.dtype[np.bool_]] | None:
        first, second = (self._sums[name][:, 0] > 0 for name in pair)
        shared = first & second
        alike = bool(shared.any()) and bool((first == second).all())
        return shared if alike or np.count_nonzero(shared) >= FEWEST_SHARED else None

    def _draw_together(self, resamples: int, seed: int) -> None:
        """One draw of prompts for everything, so that differences see the same prompts on both sides."""
        columns: dict[str | tuple[Pair, str], Floats] = dict(self._sums.items())
        for pair, shared in self._shared.items():
            for name in pair:
                if shared is not None and (self._sums[name][~shared, 0] > 0).any():
                    columns[pair, name] = self._sums[name] * shared[:, None]
        rng = np.random.default_rng(seed)
        drawn = resampled_sums(np.concatenate(list(columns.values()), axis=1), rng, resamples=resamples)
        for index, key in enumerate(columns):
            self._drawn[key] = figures_of_sums(drawn[:, index * COLUMNS : (index + 1) * COLUMNS])


def _by_image(tallies: Mapping[str, Tally]) -> dict[str, Floats]:
    return {
        name: _sums(tally, np.arange(len(tally.counts)), len(tally.counts)) for name, tally in tallies.items()
    }


def _by_prompt(tallies: Mapping[str, Tally]) -> dict[str, Floats]:
    keys = sorted({key for tally in tallies.values() for key in tally.keys})
    number = {key: index for index, key in enumerate(keys)}
    return {
        name: _sums(tally, np.array([number[key] for key in tally.keys], dtype=np.int64), len(keys))
        for name, tally in tallies.items()
    }


def _sums(tally: Tally, clusters: np.ndarray[tuple[int], np.dtype[np.int64]], size: int) -> Floats:
    counts, severities = (np.asarray(each, dtype=np.int64) for each in (tally.counts, tally.severity_sums))
    return sums_by_cluster(clusters, counts, severities, size)
