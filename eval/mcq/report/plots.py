"""The plots of the MCQ report, placed for SVGs of fixed size that scale with the page.

Bars show patterns, first failures and answer bias; a scatter shows recall against specificity among the
published models.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from uncanny.eval.common.estimates import Share
from uncanny.eval.mcq.score.controls import is_baseline
from uncanny.eval.mcq.score.result import ModelScore

HIERARCHY = {
    "q1_miss": "artifact missed (Q1 wrong)",
    "evidence_failure": "seen, wrong evidence (Q4 wrong)",
    "localization_failure": "wrong place (Q2 or Q3 wrong)",
    "full_success": "all four right",
}
PATTERN_WIDTH, PATTERN_ROW, PATTERN_LEFT, PATTERN_RIGHT = 300.0, 15.0, 62.0, 98.0
BIAS_WIDTH, BIAS_TALL, BIAS_TOP = 372.0, 84.0, 12.0
_SLOT, _GAP = 18.0, 16.0


@dataclass(frozen=True, slots=True)
class PatternBar:
    """How many artifact images have one right/wrong pattern, of guessing the expected number.

    `share` is 0-1, None of no images.
    """

    pattern: str
    count: float
    share: float | None
    y: float
    width: float

    @property
    def words(self) -> str:
        """The number, an expected one to a tenth."""
        return f"{self.count:,.0f}" if self.count == round(self.count) else f"{self.count:,.1f}"


@dataclass(frozen=True, slots=True)
class Segment:
    """One part of a stacked bar, in percent of its width."""

    key: str
    x: float
    width: float
    value: float


@dataclass(frozen=True, slots=True)
class BiasBar:
    """How often one option is given, as a bar, and how often it is right, as a mark; both 0-1."""

    option: str
    given: float
    right: float
    x: float
    y: float
    height: float
    right_y: float


@dataclass(frozen=True, slots=True)
class BiasGroup:
    """The options of one question; no bars where none of its answers is there."""

    question: str
    x: float
    width: float
    bars: tuple[BiasBar, ...]


def most_frequent(models: Iterable[ModelScore]) -> float:
    """The share of the most frequent pattern of any model; 0 without an image that counts."""
    counts = [each.patterns.values() for each in models]
    return max((max(each) / sum(each) for each in counts if sum(each)), default=0.0)


def pattern_bars(score: ModelScore, most: float) -> list[PatternBar]:
    """All sixteen, from all right to all wrong; a share of `most` has the whole width, whatever the model."""
    total = sum(score.patterns.values())
    room = PATTERN_WIDTH - PATTERN_LEFT - PATTERN_RIGHT
    bars = []
    for place, pattern in enumerate(sorted(score.patterns, reverse=True)):
        share = score.patterns[pattern] / total if total else None
        width = room * share / most if share and most else 0.0
        bars.append(PatternBar(pattern, score.patterns[pattern], share, place * PATTERN_ROW, round(width, 2)))
    return bars


def hierarchy_bar(shares: Mapping[str, Share]) -> list[Segment]:
    """The four outcomes side by side; empty where no artifact image has all its answers."""
    return _stacked({name: share.value if (share := shares.get(name)) else None for name in HIERARCHY})


def published_hierarchy(row: Mapping[str, Any]) -> list[Segment]:
    """The same of a published model, given as percentages."""
    return _stacked({name: row[name] / 100 if row.get(name) is not None else None for name in HIERARCHY})


def bias_groups(score: ModelScore) -> list[BiasGroup]:
    """Given against right for each option of each question, on one scale from 0 to 100 %."""
    groups, x = [], 4.0
    for question, options in score.answer_bias.items():
        bars = []
        for place, (option, bias) in enumerate(options.items()):
            if bias.given is None or bias.right is None:
                continue
            bars.append(
                BiasBar(
                    option,
                    bias.given,
                    bias.right,
                    x + place * _SLOT,
                    round(BIAS_TOP + BIAS_TALL * (1 - bias.given), 2),
                    round(BIAS_TALL * bias.given, 2),
                    round(BIAS_TOP + BIAS_TALL * (1 - bias.right), 2),
                )
            )
        width = len(options) * _SLOT
        groups.append(BiasGroup(question.upper(), x, width, tuple(bars)))
        x += width + _GAP
    return groups


def _stacked(values: Mapping[str, float | None]) -> list[Segment]:
    segments, x = [], 0.0
    for name, value in values.items():
        if value is None:
            return []
        segments.append(Segment(name, round(100 * x, 3), round(100 * value, 3), value))
        x += value
    return segments


WIDTH, HEIGHT = 420.0, 400.0
LEFT, RIGHT, TOP, BOTTOM = 46.0, 14.0, 12.0, 42.0
TICKS = (0, 25, 50, 75, 100)
_LETTER, _SMALL, _LINE, _MOST_LETTERS = 6.9, 5.2, 12.0, 24
# Names of more models would hide the points.
MOST_NAMED = 6
_NEAR, _FAR = (6.0, 11.0), (18.0, 27.0, 38.0, 50.0, 64.0, 80.0, 98.0, 120.0, 145.0, 175.0)
_AIR = 1.5

Kind = Literal["own", "baseline", "published"]
Rect = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Point:
    """A model at `x`, `y` in SVG units. `across` and `up` are its intervals, None without.

    `leader` is where a line from the point to a label that stands far off ends. `lettered` says that `label`
    is a letter, which the names beside the plot explain.
    """

    name: str
    kind: Kind
    recall: float
    specificity: float
    x: float
    y: float
    across: tuple[float, float] | None = None
    up: tuple[float, float] | None = None
    number: int | None = None
    label: str = ""
    label_x: float = 0.0
    label_y: float = 0.0
    leader: tuple[float, float] | None = None
    lettered: bool = False


@dataclass(frozen=True, slots=True)
class Scatter:
    """`left_out` names the models without one of the two figures."""

    points: tuple[Point, ...]
    left_out: tuple[str, ...]

    @property
    def words(self) -> str:
        """The same in words, for those who hear the page."""
        return "; ".join(
            f"{point.name}: recall {point.recall:.1%}, specificity {point.specificity:.1%}"
            for point in self.points
        )


def at_x(specificity: float) -> float:
    return round(LEFT + specificity * (WIDTH - LEFT - RIGHT), 1)


def at_y(recall: float) -> float:
    return round(HEIGHT - BOTTOM - recall * (HEIGHT - TOP - BOTTOM), 1)


def scatter(models: Mapping[str, ModelScore], published: Sequence[Mapping[str, Any]]) -> Scatter:
    """Own models with their intervals, published ones (percentages) by number.

    Of up to `MOST_NAMED` own models the names stand in the plot, of more letters, with the names beside it.
    """
    points, left_out = [], []
    for place, (name, score) in enumerate(models.items()):
        point = _own(name, score, letters(place) if len(models) > MOST_NAMED else None)
        if point is None:
            left_out.append(name)
        else:
            points.append(point)
    known = [row for row in published if None not in (row.get("artifact_q1"), row.get("ref_real_q1"))]
    points += [_published(row, number) for number, row in enumerate(known, start=1)]
    return Scatter(tuple(_labelled(points)), tuple(left_out))


def letters(place: int) -> str:
    """A, B, … Z, AA, AB, … for places from 0."""
    text = ""
    while place >= 0:
        text = chr(65 + place % 26) + text
        place = place // 26 - 1
    return text


def _own(name: str, score: ModelScore, letter: str | None) -> Point | None:
    recall, specificity = (score.share(split, "q1") for split in ("artifact", "ref_real"))
    if recall is None or recall.value is None or specificity is None or specificity.value is None:
        return None
    across, up = specificity.interval, recall.interval
    return Point(
        name,
        "baseline" if is_baseline(name) else "own",
        recall.value,
        specificity.value,
        at_x(specificity.value),
        at_y(recall.value),
        (at_x(across[0]), at_x(across[1])) if across else None,
        (at_y(up[0]), at_y(up[1])) if up else None,
        label=letter or (name if len(name) <= _MOST_LETTERS else name[: _MOST_LETTERS - 1] + "…"),
        lettered=letter is not None,
    )


def _published(row: Mapping[str, Any], number: int) -> Point:
    recall, specificity = row["artifact_q1"] / 100, row["ref_real_q1"] / 100
    return Point(
        row["model"],
        "published",
        recall,
        specificity,
        at_x(specificity),
        at_y(recall),
        number=number,
        label=str(number),
    )


def _labelled(points: Sequence[Point]) -> Iterator[Point]:
    """Labels where they hide least: other labels before all, then points, then intervals. A published model
    has its name where that hides nothing."""
    dots = [(point.x - 4, point.y - 4, point.x + 4, point.y + 4) for point in points]
    lines = [line for point in points for line in _intervals(point)]
    taken: list[Rect] = []

    def hidden(spot: Rect) -> tuple[float, float, float]:
        labels, places, crossed = (
            sum(_shared(spot, rect) for rect in rects) for rects in (taken, dots, lines)
        )
        return labels, places, crossed

    for point in points:
        text = point.label
        if point.kind == "published":
            named = [spot for spot in _spots(point, _SMALL * len(point.name), _NEAR) if _inside(spot)]
            free = next((spot for spot in named if hidden(spot) == (0, 0, 0)), None)
            text = point.name if free else text
        else:
            free = None
        spots = [spot for spot in _spots(point, _LETTER * len(text), _NEAR + _FAR) if _inside(spot)]
        clear = (spot for spot in spots if not hidden(spot)[0])
        best = free or min(clear, key=hidden, default=None)
        if best is None and point.kind == "published":
            # Its name and figures are beside the plot.
            yield replace(point, label="")
            continue
        best = best or min(spots, key=hidden)
        taken.append((best[0] - _AIR, best[1] - _AIR, best[2] + _AIR, best[3] + _AIR))
        end = (min(max(point.x, best[0]), best[2]), min(max(point.y, best[1]), best[3]))
        away = max(abs(end[0] - point.x), abs(end[1] - point.y))
        yield replace(
            point,
            label=text,
            label_x=round((best[0] + best[2]) / 2, 1),
            label_y=round(best[3] - 3, 1),
            leader=(round(end[0], 1), round(end[1], 1)) if away > _NEAR[-1] else None,
        )


def _intervals(point: Point) -> Iterator[Rect]:
    if point.across:
        yield point.across[0], point.y - 1, point.across[1], point.y + 1
    if point.up:
        yield point.x - 1, min(point.up), point.x + 1, max(point.up)


def _spots(point: Point, wide: float, distances: Sequence[float]) -> Iterator[Rect]:
    for away in distances:
        for left, top in (
            (point.x + away, point.y - _LINE / 2),
            (point.x - away - wide, point.y - _LINE / 2),
            (point.x - wide / 2, point.y - away - _LINE),
            (point.x - wide / 2, point.y + away),
            (point.x + away * 0.7, point.y - away * 0.7 - _LINE),
            (point.x + away * 0.7, point.y + away * 0.7),
            (point.x - away * 0.7 - wide, point.y - away * 0.7 - _LINE),
            (point.x - away * 0.7 - wide, point.y + away * 0.7),
        ):
            yield left, top, left + wide, top + _LINE


def _inside(spot: Rect) -> bool:
    return spot[0] >= LEFT and spot[2] <= WIDTH and spot[1] >= 0 and spot[3] <= HEIGHT - BOTTOM + 8


def _shared(first: Rect, second: Rect) -> float:
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    return max(0.0, width) * max(0.0, height)
