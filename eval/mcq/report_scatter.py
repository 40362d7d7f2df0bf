"""Recall against specificity, placed for an SVG of fixed size that scales with the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from uncanny.eval.mcq.baselines import is_baseline
from uncanny.eval.mcq.result import ModelScore

WIDTH, HEIGHT = 420.0, 400.0
LEFT, RIGHT, TOP, BOTTOM = 46.0, 14.0, 12.0, 42.0
TICKS = (0, 25, 50, 75, 100)
_LETTER, _SMALL, _LINE, _MOST_LETTERS = 6.9, 5.2, 12.0, 24
_NEAR, _FAR = (6.0, 11.0), (18.0, 27.0, 38.0, 50.0, 64.0)

Kind = Literal["own", "baseline", "published"]
Rect = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Point:
    """A model at `x`, `y` in SVG units. `across` and `up` are its intervals, None without.

    `leader` is where a line from the point to a label that stands far off ends.
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
    """Own models by name and with their intervals, published ones (percentages) by number."""
    points, left_out = [], []
    for name, score in models.items():
        point = _own(name, score)
        if point is None:
            left_out.append(name)
        else:
            points.append(point)
    known = [row for row in published if _has_both(row)]
    points += [_published(row, number) for number, row in enumerate(known, start=1)]
    return Scatter(tuple(_labelled(points)), tuple(left_out))


def _own(name: str, score: ModelScore) -> Point | None:
    recall, specificity = (score.splits.get(split, {}).get("q1") for split in ("artifact", "ref_real"))
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
        label=name if len(name) <= _MOST_LETTERS else name[: _MOST_LETTERS - 1] + "…",
    )


def _has_both(row: Mapping[str, Any]) -> bool:
    return row.get("artifact_q1") is not None and row.get("ref_real_q1") is not None


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
    """Labels where they hide least: other labels before all, then points. A published model has its name
    where that hides nothing."""
    dots = [(point.x - 4, point.y - 4, point.x + 4, point.y + 4) for point in points]
    taken: list[Rect] = []

    def hidden(spot: Rect) -> tuple[float, float]:
        labels, places = (sum(_shared(spot, one) for one in ones) for ones in (taken, dots))
        return labels, places

    for point in points:
        text = point.label
        if point.kind == "published":
            named = [spot for spot in _spots(point, _SMALL * len(point.name), _NEAR) if _inside(spot)]
            free = next((spot for spot in named if hidden(spot) == (0, 0)), None)
            text = point.name if free else text
        else:
            free = None
        spots = [spot for spot in _spots(point, _LETTER * len(text), _NEAR + _FAR) if _inside(spot)]
        best = free or min(spots, key=hidden)
        taken.append(best)
        yield _with_label(point, text, best)


def _with_label(point: Point, text: str, spot: Rect) -> Point:
    end = (min(max(point.x, spot[0]), spot[2]), min(max(point.y, spot[1]), spot[3]))
    away = max(abs(end[0] - point.x), abs(end[1] - point.y))
    return replace(
        point,
        label=text,
        label_x=round((spot[0] + spot[2]) / 2, 1),
        label_y=round(spot[3] - 3, 1),
        leader=(round(end[0], 1), round(end[1], 1)) if away > _NEAR[-1] else None,
    )


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


def _shared(one: Rect, other: Rect) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(0.0, width) * max(0.0, height)
