"""What the report counts over every image of a run, shown on the page or not: totals, outcomes, histograms.

What was not measured says so: it is never 0.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from uncanny.annotation.report.calls import CallIndex
from uncanny.eval.common.confidence import Sure
from uncanny.eval.common.pages.page import percent
from uncanny.records.run_manifest import RunManifest
from uncanny.schema import KINDS, Annotation, Status
from uncanny.wording import NOT_PRICED, at_least, cost, counted, duration

Number = TypeVar("Number", int, float)
_ORDER: dict[Status, int] = {"failed": 0, "partial": 1, "unreadable": 2, "ok": 3}


@dataclass(slots=True)
class RunCounts:
    """Counts over all records.

    `severities` has one key per severity 0-100, without anomalies that are `unrated`. `per_image` counts
    images by number of anomalies, over `ok` and `partial` records: the others say nothing about how many
    there are. `scores` are probabilities of a detector in whole percent, rounded down. `unpriced` is the
    number of records with calls and without a price. `texts` are the ids of the texts that were asked. Tokens
    and cost are None until one record reports them. Findings that the model is not sure enough of are counted
    in `sure` alone.
    """

    statuses: Counter[Status] = field(default_factory=Counter)
    severities: Counter[int] = field(default_factory=Counter)
    unrated: int = 0
    per_image: Counter[int] = field(default_factory=Counter)
    names: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    scores: Counter[int] = field(default_factory=Counter)
    calls: int = 0
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    unpriced: int = 0
    texts: set[str] = field(default_factory=set)
    sure: Sure = field(default_factory=Sure)

    @property
    def images(self) -> int:
        return self.statuses.total()

    @property
    def anomalies(self) -> int:
        return self.severities.total() + self.unrated

    def add(self, whole: Annotation) -> None:
        record = self.sure.record(whole)
        self.statuses[record.status] += 1
        self.texts.add(record.prompts)
        if record.status in ("ok", "partial"):
            self.per_image[len(record.anomalies)] += 1
        for anomaly in record.anomalies:
            if anomaly.severity_rated:
                self.severities[anomaly.severity] += 1
            self.unrated += not anomaly.severity_rated
            self.names[anomaly.name.casefold()] += 1
            if anomaly.kind is not None:
                self.kinds[anomaly.kind] += 1
        score = (record.model_extra or {}).get("score")
        if isinstance(score, float):
            self.scores[int(100 * score)] += 1
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
    """Which images a page keeps: failed, partial, unreadable, then the least realistic anomaly; images
    without any last."""
    return _ORDER[record.status], _worst(record), record.image


def worst_first(record: Annotation) -> tuple[bool, int, str]:
    """Sort key of the page: the least realistic anomaly first, images that were not examined last."""
    return record.status in ("failed", "unreadable"), _worst(record), record.image


def _worst(record: Annotation) -> int:
    return min((anomaly.severity for anomaly in record.anomalies), default=101)


def select(
    records: Iterable[Annotation], limit: int, min_confidence: float = 0.0
) -> tuple[list[Annotation], RunCounts]:
    """Count all `records` and keep the `limit` that rank first, worst first; only these are in memory.

    Findings below `min_confidence` do not count, and are still in the records.
    """
    counts = RunCounts(sure=Sure(min_confidence))

    def sure(record: Annotation) -> Annotation:
        return Sure(min_confidence).record(record)

    def counted() -> Iterator[Annotation]:
        for record in records:
            counts.add(record)
            yield record

    first = heapq.nsmallest(limit, counted(), key=lambda each: rank(sure(each)))
    return sorted(first, key=lambda each: worst_first(sure(each))), counts


OUTCOMES = {
    "answered": "answered",
    "unparseable": "unparseable answer",
    "refused": "refused by the model",
    "error": "infrastructure error",
}


@dataclass(frozen=True, slots=True)
class Total:
    """One number with what it counts; `notes` are further lines."""

    label: str
    value: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OutcomeShare:
    """One part of a whole; `rate` is 0-1, None when the whole is empty."""

    key: str
    label: str
    count: int
    rate: float | None


def anomalies_lead(counts: RunCounts) -> str:
    """In how many of the images that were examined something is wrong; empty where none was."""
    examined = counts.per_image.total()
    if not examined:
        return ""
    faulty = examined - counts.per_image[0]
    images = f"{examined:,} {'image' if examined == 1 else 'images'}"
    number = f"{counts.anomalies:,} {'anomaly' if counts.anomalies == 1 else 'anomalies'}"
    if faulty:
        return f"{number} in {faulty:,} of {images}"
    least = f" from confidence {counts.sure.least:g}" if counts.sure else ""
    return f"No anomaly{least} in {images}"


def run_totals(
    info: RunManifest, counts: RunCounts, index: CallIndex, *, of_detector: bool = False
) -> list[Total]:
    """A detector finds no anomalies, and makes no calls."""
    if of_detector:
        return [_images(info, counts), _time(info)]
    return [
        _images(info, counts),
        _anomalies(counts),
        _calls(info, counts, index),
        _tokens(info, counts),
        _cost(info, counts),
        _time(info),
    ]


def outcomes(info: RunManifest, index: CallIndex) -> list[OutcomeShare]:
    """Calls by outcome, kept apart; from `run.json`, else from `calls.jsonl`. Empty when neither has any."""
    numbers = dict((info.totals and info.totals.outcomes) or index.outcomes)
    total = sum(numbers.values())
    if not total:
        return []
    known = [(key, label, numbers.pop(key, 0)) for key, label in OUTCOMES.items()]
    others = [(key, key, number) for key, number in sorted(numbers.items())]
    return [OutcomeShare(key, label, number, number / total) for key, label, number in known + others]


def _images(info: RunManifest, counts: RunCounts) -> Total:
    expected = info.totals.images if info.totals else None
    behind = expected is not None and expected > counts.images
    value = f"{counts.images:,} of {expected:,}" if behind else f"{counts.images:,}"
    notes = [", ".join(f"{count:,} {status}" for status, count in counts.statuses.most_common())]
    if info.totals and info.totals.duplicates:
        notes.append(counted(info.totals.duplicates, "duplicate"))
    return Total("images recorded" if behind else "images", value, tuple(filter(None, notes)))


def _anomalies(counts: RunCounts) -> Total:
    judged = counts.per_image.total()
    if not judged:
        return Total("anomalies", f"{counts.anomalies:,}", ("no image judged yet",))
    clean = counts.per_image[0]
    return Total(
        "anomalies",
        f"{counts.anomalies:,}",
        (f"{counts.anomalies / judged:.1f} an image that was judged", f"{clean:,} of {judged:,} without any"),
    )


def _calls(info: RunManifest, counts: RunCounts, index: CallIndex) -> Total:
    totals = info.totals
    calls = totals.calls if totals and totals.calls is not None else index.calls or counts.calls
    replayed = totals.replayed if totals and totals.replayed is not None else index.replayed
    notes = (f"{replayed:,} replayed from the answer cache",) if replayed else ()
    return Total("calls", f"{calls:,}", notes)


def _tokens(info: RunManifest, counts: RunCounts) -> Total:
    totals = info.totals
    whole = True
    if totals is not None:
        tokens_in, cached, tokens_out = (
            totals.least("input_tokens"),
            totals.least("cached_tokens"),
            totals.least("output_tokens"),
        )
        whole = None in (tokens_in, tokens_out) or None not in (totals.input_tokens, totals.output_tokens)
    else:
        tokens_in, cached, tokens_out = counts.input_tokens, counts.cached_tokens, counts.output_tokens
    if tokens_in is None and tokens_out is None:
        return Total("tokens", "not reported")
    into = "input not reported" if tokens_in is None else f"{tokens_in:,} in"
    out = "output not reported" if tokens_out is None else f"{tokens_out:,} out"
    if cached is None or not tokens_in:
        share = "cached share not reported"
    else:
        share = f"{percent(cached / tokens_in)} of input cached"
    total = at_least(f"{(tokens_in or 0) + (tokens_out or 0):,}", whole)
    return Total("tokens", total, (f"{into}, {out}", share))


def _cost(info: RunManifest, counts: RunCounts) -> Total:
    totals = info.totals
    if totals is not None:
        dollars, unpriced = totals.least("cost_usd"), 0
        if dollars is not None and totals.cost_usd is None:
            calls = counted(int(totals.unmeasured.get("cost_usd", 0)), "call")
            return Total("cost", at_least(cost(dollars), False), (f"{calls} did not say what they used",))
    else:
        dollars, unpriced = counts.cost_usd, counts.unpriced
    if dollars is None:
        return Total("cost", NOT_PRICED, ("no price is known for the model",))
    notes = (f"{cost(dollars / counts.images)} an image",) if counts.images else ()
    if unpriced:
        notes = (f"{unpriced:,} images not priced",)
    return Total("cost", at_least(cost(dollars), not unpriced), notes)


def _time(info: RunManifest) -> Total:
    seconds = info.totals.seconds if info.totals else None
    return Total("wall time", "not recorded" if seconds is None else duration(seconds))


HISTOGRAM_WIDTH, HISTOGRAM_HEIGHT = 360.0, 176.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 4.0, 4.0, 18.0, 34.0
_MOST_BARS = 16


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar in SVG units; `label` stands below it, `range` says what it counts."""

    x: float
    y: float
    width: float
    height: float
    label: str
    range: str
    count: int
    shade: int = 0


@dataclass(frozen=True, slots=True)
class Histogram:
    """`low` and `high` name the two ends of the axis. No bars when nothing was counted."""

    title: str
    axis: str
    low: str
    high: str
    bars: tuple[Bar, ...]
    total: int
    width: float = HISTOGRAM_WIDTH
    height: float = HISTOGRAM_HEIGHT

    @property
    def words(self) -> str:
        """The same in words, for those who hear the page."""
        return "; ".join(f"{bar.range}: {bar.count}" for bar in self.bars)


def severity_histogram(severities: Counter[int]) -> Histogram:
    """Ten bars over severity 0-100; 100 counts in the last one."""
    counts, labels = _tens(severities)
    return Histogram(
        title="Realism of anomalies",
        axis="realism",
        low="0 unreal",
        high="100 real",
        bars=_place(counts, labels, shaded=True),
        total=sum(counts),
    )


def score_histogram(scores: Counter[int]) -> Histogram:
    """Ten bars over probabilities of 0-100 percent; 100 counts in the last one."""
    counts, labels = _tens(scores)
    return Histogram(
        title="Probability of being generated",
        axis="percent",
        low="0 real",
        high="100 generated",
        bars=_place(counts, labels, shaded=False),
        total=sum(counts),
    )


def _tens(values: Counter[int]) -> tuple[list[int], list[tuple[str, str]]]:
    counts = [0] * 10
    for value, count in values.items():
        counts[min(value // 10, 9)] += count
    return counts, [(str(10 * i), f"{10 * i}–{100 if i == 9 else 10 * i + 9}") for i in range(10)]


def kind_bars(kinds: Counter[str]) -> list[tuple[str, int]]:
    """Every kind with its count, most frequent first; none where no finding says its kind."""
    return sorted(((kind, kinds[kind]) for kind in KINDS), key=lambda each: -each[1]) if kinds else []


def per_image_histogram(per_image: Counter[int]) -> Histogram:
    """A bar per number of anomalies; the tail is one bar, marked with a plus."""
    most = max(per_image, default=0)
    last = min(most, _MOST_BARS - 1)
    counts = [per_image[number] for number in range(last)]
    counts.append(sum(count for number, count in per_image.items() if number >= last))
    tail = "+" if most > last else ""
    labels = [(str(number), str(number)) for number in range(last)] + [(f"{last}{tail}", f"{last}{tail}")]
    return Histogram(
        title="Anomalies per image",
        axis="anomalies in one image",
        low="",
        high="",
        bars=_place(counts, labels, shaded=False) if per_image else (),
        total=sum(counts),
    )


def _place(counts: list[int], labels: list[tuple[str, str]], *, shaded: bool) -> tuple[Bar, ...]:
    if not any(counts):
        return ()
    slot = (HISTOGRAM_WIDTH - _LEFT - _RIGHT) / len(counts)
    tall = HISTOGRAM_HEIGHT - _TOP - _BOTTOM
    bars = []
    for place, (count, (label, span)) in enumerate(zip(counts, labels, strict=True)):
        height = round(tall * count / max(counts), 2)
        width = min(slot - 3, 40.0)
        x = _LEFT + place * slot + (slot - width) / 2
        shade = place // 2 if shaded else 4
        bars.append(
            Bar(round(x, 2), round(_TOP + tall - height, 2), width, height, label, span, count, shade)
        )
    return tuple(bars)
