"""Bars of a histogram, placed for an SVG of fixed size that scales with the page."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

WIDTH, HEIGHT = 360.0, 176.0
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
    width: float = WIDTH
    height: float = HEIGHT

    @property
    def words(self) -> str:
        """The same in words, for those who hear the page."""
        return "; ".join(f"{bar.range}: {bar.count}" for bar in self.bars)


def severity_histogram(severities: Counter[int]) -> Histogram:
    """Ten bars over severity 0-100; 100 counts in the last one."""
    counts = [0] * 10
    for severity, count in severities.items():
        counts[min(severity // 10, 9)] += count
    labels = [(str(10 * i), f"{10 * i}–{100 if i == 9 else 10 * i + 9}") for i in range(10)]
    return Histogram(
        title="Severity of anomalies",
        axis="severity",
        low="0 unreal",
        high="100 real",
        bars=_place(counts, labels, shaded=True),
        total=sum(counts),
    )


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
    slot = (WIDTH - _LEFT - _RIGHT) / len(counts)
    tall = HEIGHT - _TOP - _BOTTOM
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
