"""The HTML page of comparisons: one file that asks nothing of the network.

The comparison in a sentence, what changed and by how much, then image by image: the picture with the boxes of
both runs, what both found side by side, and what only one did. Images are filtered by change, kind and words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment

from uncanny.eval.common.anomalies.read import ScoredAnomaly
from uncanny.eval.common.pages.page import score_page, write_rendered
from uncanny.eval.common.pages.pictures import Layer, Mark, PageViews, PicturesMode, Shot, Shown, View
from uncanny.eval.compare.data import RunImage
from uncanny.eval.compare.score.match import Match
from uncanny.eval.compare.score.result import CompareResult, Comparison, Group, ImageChange
from uncanny.eval.compare.score.tables import (
    CHANGE_WORDS,
    figures_table,
    mark,
    matching_words,
    more_tables,
    signed,
    signed_ends,
)
from uncanny.eval.compare.score.truth import UNKNOWN
from uncanny.eval.metrics.intervals import LEVEL
from uncanny.schema import Box

# Larger copies in the page, for when the files are elsewhere.
COPY_BYTES = 8_000_000


def write_compare_page(
    result: CompareResult,
    path: Path,
    *,
    title: str | None = None,
    max_images: int = 300,
    pictures: PicturesMode = "link",
) -> Path:
    """Write the page to `path`, whole or not at all, and return it; see `CompareResult.report`."""
    views = PageViews(path, pictures, copies=COPY_BYTES)
    return write_rendered(
        _environment(),
        "compare.html.j2",
        path,
        title=title or "Comparison",
        result=result,
        parts=[_part(comparison, views, max_images) for comparison in result.comparisons],
        page_views=views,
    )


@cache
def _environment() -> Environment:
    filters: dict[str, Callable[..., str]] = {"signed": signed, "ends": signed_ends, "mark": mark}
    environment = score_page("uncanny.eval.compare", ("compare.css",), filters, scripts=("compare.js",))
    environment.globals |= {
        "change_words": CHANGE_WORDS,
        "matching_words": matching_words,
        "level": f"{100 * LEVEL:.10g} %",
    }
    return environment


@dataclass(frozen=True, slots=True)
class Bar:
    """A part of a whole, in percent of the width; `name` is also the name of its colour."""

    name: str
    words: str
    number: int
    start: float
    width: float


@dataclass(frozen=True, slots=True)
class Strip:
    """A difference with its interval on a scale that all rows share, zero in the middle, in percent."""

    at: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Card:
    """One image. `shown` has its pictures: one, or by prompt that of A and that of B."""

    image: ImageChange
    shown: tuple[Shown, ...]
    boxes: tuple[tuple[tuple[str, Box], ...], ...]
    sizes: tuple[tuple[int, int] | None, ...]
    common: tuple[tuple[Match, ScoredAnomaly, ScoredAnomaly], ...]
    only_a: tuple[ScoredAnomaly, ...]
    only_b: tuple[ScoredAnomaly, ...]

    @property
    def _both(self) -> tuple[ScoredAnomaly, ...]:
        return (*self.image.pair.a.anomalies, *self.image.pair.b.anomalies)

    @property
    def kinds(self) -> str:
        """For the filter: every kind in either run."""
        return " ".join(sorted({each.kind or UNKNOWN for each in self._both}))

    @property
    def has(self) -> str:
        """For the filter: which of the three sorts of anomalies the image has."""
        sorts = (("common", self.common), ("a", self.only_a), ("b", self.only_b))
        return " ".join(name for name, anomalies in sorts if anomalies)

    @property
    def words(self) -> str:
        """For the search: all that is said of the image, in lower case."""
        texts = [text for each in self._both for text in (each.name, each.phenomenon, each.reasoning)]
        return "\n".join([self.image.pair.a.image, self.image.pair.b.image, *texts]).casefold()


def _part(comparison: Comparison, views: PageViews, max_images: int) -> dict[str, Any]:
    """One comparison, as the template names its parts; `left_out` images count and have no card."""
    # Of images that differ in nothing the page needs the fewest.
    ranked = sorted(comparison.images, key=lambda image: not (image.only_a or image.only_b))
    cards = _cards(comparison, ranked[:max_images], views)
    a, b = comparison.names
    changed = comparison.images_changed
    found = (
        ("only-a", f"only {a}", comparison.only_a),
        ("common", "in common", comparison.in_common),
        ("only-b", f"only {b}", comparison.only_b),
    )
    return {
        "comparison": comparison,
        "figures": figures_table(comparison),
        "tables": list(more_tables(comparison)),
        "changed": list(_bars([(change, words, changed[change]) for change, words in CHANGE_WORDS.items()])),
        "anomalies": list(_bars(found)),
        "groups": (
            ("kind", _strips(comparison.by_kind)),
            ("realism", _strips(comparison.by_severity)),
        ),
        "cards": cards,
        "kinds": sorted({kind for card in cards for kind in card.kinds.split()}),
        "changes": [each for each in CHANGE_WORDS if any(card.image.change == each for card in cards)],
        "left_out": len(comparison.images) - len(cards),
    }


def _bars(parts: Sequence[tuple[str, str, int]]) -> Iterator[Bar]:
    """Side by side on one line; of nothing no bar has a width."""
    whole = sum(number for *_, number in parts)
    start = 0.0
    for name, words, number in parts:
        width = 100 * number / whole if whole else 0.0
        yield Bar(name, words, number, round(start, 3), round(width, 3))
        start += width


def _strips(groups: Mapping[str, Group]) -> tuple[tuple[str, Group, Strip | None], ...]:
    ends = [abs(end) for group in groups.values() for end in group.difference.interval or ()]
    ends += [abs(group.difference.value or 0) for group in groups.values()]
    most = max(ends, default=0) or 1

    def place(value: float) -> float:
        return round(50 + 46 * value / most, 2)

    rows = []
    for name, group in groups.items():
        value, interval = group.difference.value, group.difference.interval
        low, high = map(place, interval) if interval else (None, None)
        rows.append((name, group, None if value is None else Strip(place(value), low, high)))
    return tuple(rows)


def _cards(comparison: Comparison, images: Sequence[ImageChange], views: PageViews) -> tuple[Card, ...]:
    made = [_views(comparison, image) for image in images]
    shown = iter(views.add([view for of_image, _ in made for view in of_image]))
    cards = []
    for image, (of_image, boxes) in zip(images, made, strict=True):
        ours, theirs = image.pair.a.anomalies, image.pair.b.anomalies
        cards.append(
            Card(
                image,
                tuple(next(shown) for _ in of_image),
                boxes,
                tuple(view.size for view in of_image),
                tuple((match, ours[match.a], theirs[match.b]) for match in image.matches),
                tuple(ours[number] for number in image.only_a),
                tuple(theirs[number] for number in image.only_b),
            )
        )
    return tuple(cards)


def _views(
    comparison: Comparison, image: ImageChange
) -> tuple[list[View], tuple[tuple[tuple[str, Box], ...], ...]]:
    """The pictures to show, and the boxes to draw on the thumbnail of each, with their side."""
    groups = comparison.names
    a, b = image.pair.a, image.pair.b
    marks_a = _marks(a, groups[0], {match.a: match for match in image.matches}, groups[1])
    marks_b = _marks(b, groups[1], {match.b: match for match in image.matches}, groups[0])
    if image.pair.prompt is None:
        size = _size(a) or _size(b)
        # The same picture: where one run's files are gone those of the other may be there.
        source = a if a.path.exists() else b
        views = [
            View(
                a.image,
                (Layer("image", Shot(source.path, source.digest)),),
                (*marks_a, *marks_b),
                size,
                (),
                groups,
            )
        ]
        return views, ((*_boxes(a, "a"), *_boxes(b, "b")),)
    views = []
    for name, side, marks in zip(groups, (a, b), (marks_a, marks_b), strict=True):
        layer = Layer(name, Shot(side.path, side.digest))
        views.append(View(f"{name}: {side.image}", (layer,), marks, _size(side), (), groups))
    return views, (_boxes(a, "a"), _boxes(b, "b"))


def _size(image: RunImage) -> tuple[int, int] | None:
    return (image.width, image.height) if image.width and image.height else None


def _boxes(image: RunImage, side: str) -> tuple[tuple[str, Box], ...]:
    return tuple((side, each.box) for each in image.anomalies if each.box is not None)


def _marks(image: RunImage, group: str, matches: Mapping[int, Match], other: str) -> tuple[Mark, ...]:
    def said(number: int, anomaly: ScoredAnomaly) -> str:
        whose = f"{other} has it too" if number in matches else f"{other} has not"
        return f"{anomaly.phenomenon} ({whose})"

    return tuple(
        Mark(each.name, each.box, each.severity, said(number, each), group)
        for number, each in enumerate(image.anomalies)
    )
