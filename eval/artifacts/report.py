"""The HTML page of artifact scores: one file that needs nothing else and asks nothing of the network.

Beside the figures it shows pictures with their true and predicted regions drawn and named, those that fit
worst first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jinja2 import Environment
from markupsafe import Markup

from uncanny.eval.artifacts.data.pixels import Drawing, DrawnRegion
from uncanny.eval.artifacts.data.records import ArtifactImage
from uncanny.eval.artifacts.score.result import (
    INSTANCE,
    JUDGED,
    PIXEL,
    ArtifactScore,
    Example,
    PredictionScore,
)
from uncanny.eval.artifacts.score.tables import (
    CATEGORY_NAMES,
    JUDGED_NAMES,
    PIXEL_NAMES,
    bin_table,
    bin_words,
    bins_name,
    generator_table,
    headline,
    left_out_lists,
    pair_tables,
    published_tables,
)
from uncanny.eval.common.estimates import interval_words
from uncanny.eval.common.pages.page import score_page, write_rendered
from uncanny.eval.common.pages.pictures import (
    Layer,
    Mark,
    Outline,
    PageViews,
    PicturesMode,
    Shot,
    Shown,
    View,
)
from uncanny.eval.common.pages.plots import (
    NARROW,
    WIDE,
    bare_axes,
    colour,
    pixel_axes,
    plain_label,
    plot_twice,
)
from uncanny.eval.common.pixels.crops import Crop
from uncanny.eval.common.published import caveat, published, texts_notes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# In the order of their colours.
GROUPS: Final = ("true", "predicted")
# Above this side a mask is traced on every second pixel or fewer.
_TRACED_SIDE: Final = 400
_MOST_RINGS: Final = 200
_MOST_LINES: Final = 6
_POINT: Final = 4


@dataclass(frozen=True, slots=True)
class Picture:
    """An example on the page: how it is opened, what is drawn over its thumbnail, and what is said of it."""

    example: Example
    shown: Shown
    marks: tuple[Mark, ...]

    @property
    def title(self) -> str:
        return self.example.true.image

    def drawn(self, group: str) -> str:
        """The outlines of a group as the path of an SVG; boxes have none of their own."""
        return "".join(
            "M" + "L".join(f"{x:g} {y:g}" for x, y in ring) + "Z"
            for mark in self.marks
            if mark.group == group
            for ring in mark.outline or _ring(mark)
        )

    def names(self, group: str) -> list[tuple[str, int]]:
        """The categories of a group, with how many regions each has."""
        names = [mark.name for mark in self.marks if mark.group == group]
        return [(name, names.count(name)) for name in dict.fromkeys(names)]


def write_artifacts_page(score: ArtifactScore, path: Path, *, pictures: PicturesMode = "link") -> Path:
    """Write the page to `path` and return it. Raises OSError; the file appears whole or not at all."""
    views = PageViews(path, pictures)
    predictions = score.predictions
    return write_rendered(
        _environment(),
        "artifacts.html.j2",
        path,
        title="Artifacts",
        score=score,
        predictions=predictions,
        headline=headline(score),
        settings=score.settings,
        pictures={name: _pictures(each, score, views) for name, each in predictions.items()},
        page_views=views,
        compared=list(pair_tables(score)),
        plot=bins_plot(score),
        bins=[(name, bin_table(each, score)) for name, each in predictions.items() if each.bins],
        bins_name=bins_name(score),
        generators=[
            (name, generator_table(each))
            for name, each in predictions.items()
            if each.by_generator and each.aj.images
        ],
        left_out={name: list(left_out_lists(each)) for name, each in predictions.items()},
        other_texts=list(texts_notes(score.texts)),
        published=published("artifact_scores") if score.published else None,
        published_tables=published_tables() if score.published else (),
        caveat=caveat("artifact_scores", score.texts),
    )


@cache
def _environment() -> Environment:
    filters: dict[str, Callable[..., Any]] = {
        "amount": lambda estimate: "–" if estimate.value is None else f"{100 * estimate.value:.1f}",
        "points": lambda value: "–" if value is None else f"{value:.1f}",
        "ends": interval_words,
    }
    environment = score_page("uncanny.eval.artifacts", ("artifacts.css",), filters)
    environment.globals |= {
        "category_names": CATEGORY_NAMES,
        "pixel": _key_first(PIXEL, PIXEL_NAMES, "f1"),
        "judged": _key_first(JUDGED, JUDGED_NAMES, "balanced_accuracy"),
        "instance": _key_first(INSTANCE, ("P", "R", "F1"), "f1"),
        "groups": GROUPS,
        "plain": lambda value: f"{value:,.4g}",
    }
    return environment


def _key_first(figures: Sequence[str], names: Sequence[str], key: str) -> Mapping[str, str]:
    """Names by figure, beginning with the one that a page leads with."""
    return dict(sorted(zip(figures, names, strict=True), key=lambda pair: pair[0] != key))


def _pictures(prediction: PredictionScore, score: ArtifactScore, views: PageViews) -> list[Picture]:
    marks = [
        (*_marks(example.true, example, "true"), *_marks(example.predicted, example, "predicted"))
        for example in prediction.examples
    ]
    shown = views.add(
        [
            View(
                example.true.image,
                (Layer("image", _shot(example, prediction, score)),),
                each,
                example.size,
                groups=GROUPS,
            )
            for example, each in zip(prediction.examples, marks, strict=True)
        ]
    )
    return [
        Picture(example, view, each)
        for example, view, each in zip(prediction.examples, shown, marks, strict=True)
    ]


def _shot(example: Example, prediction: PredictionScore, score: ArtifactScore) -> Shot | None:
    """The first of both sets whose file is there."""
    for image, pictures, origin in (
        (example.true, score.truth.pictures, score.truth.path),
        (example.predicted, prediction.pictures, prediction.path),
    ):
        path = pictures / image.image
        if path.is_file():
            return Shot(path, image.sha256 or ("" if _is_run(origin) else None))
    return None


def _is_run(origin: str) -> bool:
    """Whether the set is of a run: its records may come from somebody else, and name any file."""
    path = Path(origin)
    return ((path if path.is_dir() else path.parent) / "run.json").is_file()


def _marks(image: ArtifactImage, example: Example, group: str) -> Iterator[Mark]:
    for drawn in Drawing().regions(image, example.size):
        if not drawn.pixels.pixels.size:
            continue
        region = drawn.region
        name = "artifact" if region.category is None else CATEGORY_NAMES[region.category]
        note = region.note or ""
        if region.confidence is not None:
            note = f"{note} Confidence {region.confidence:g}.".strip()
        yield Mark(name, _box(drawn), None, note, group, _outline(drawn))


def _box(drawn: DrawnRegion) -> tuple[float, float, float, float]:
    x0, y0, x1, y1 = drawn.pixels.box
    if drawn.region.point is None:
        return x0, y0, x1, y1
    return x0 - _POINT, y0 - _POINT, x1 + _POINT, y1 + _POINT


def _outline(drawn: DrawnRegion) -> Outline:
    """Of a polygon its corners, of other shapes their edges; a box and a point are drawn as boxes."""
    if drawn.region.polygon is not None:
        return (tuple((round(x, 1), round(y, 1)) for x, y in drawn.region.polygon),)
    return () if drawn.region.kind in ("box", "point") else _traced(drawn.pixels)


def _traced(pixels: Crop) -> Outline:
    """The edges of a mask, between its pixels and those around them; of a large one less exactly."""
    import contourpy

    step = max(1, -(-max(pixels.pixels.shape) // _TRACED_SIDE))
    mask = np.pad(pixels.pixels[::step, ::step].astype(np.float64), 1)
    rings = contourpy.contour_generator(z=mask).lines(0.5)
    return tuple(
        tuple(
            (round(pixels.x + (float(x) - 0.5) * step, 1), round(pixels.y + (float(y) - 0.5) * step, 1))
            for x, y in np.asarray(ring)
        )
        for ring in sorted(map(np.asarray, rings), key=len, reverse=True)[:_MOST_RINGS]
    )


def _ring(mark: Mark) -> Outline:
    if mark.box is None:
        return ()
    x0, y0, x1, y1 = mark.box
    return (((x0, y0), (x1, y0), (x1, y1), (x0, y1)),)


def bins_plot(score: ArtifactScore) -> Markup:
    """Accuracy on generated images by bins, a line a set of predictions; empty without any bin."""
    sets = {name: each.bins for name, each in score.predictions.items() if each.bins}
    sets = dict(list(sets.items())[:_MOST_LINES])
    if not sets:
        return Markup("")
    by = bins_name(score)
    words = "; ".join(
        f"{name}, {by} {bin_words(each)}: {100 * (each.accuracy.value or 0):.1f} % of {each.n}"
        for name, bins in sets.items()
        for each in bins
    )
    legend = 0.0 if len(sets) == 1 else 22.0 * len(sets)
    return plot_twice(
        partial(_draw_bins, sets, by),
        (WIDE, 300.0 + legend),
        (NARROW, 260.0 + legend),
        key="bins",
        title=f"Accuracy on generated images by {by}",
        words=words,
    )


def _draw_bins(sets: Mapping[str, Sequence[Any]], by: str, figure: Figure) -> Mapping[str, str]:
    width, height = figure.get_size_inches() * figure.dpi
    top = 12.0 if len(sets) == 1 else 12.0 + 22.0 * len(sets)
    axes = bare_axes(pixel_axes(figure, 52, top, width - 72, height - top - 58), grid="y")
    axes.set_ylim(0, 100)
    axes.set_yticks(range(0, 101, 25))
    axes.set_ylabel("accuracy, %")
    axes.set_xlabel(by)
    tips: dict[str, str] = {}
    most = max(len(bins) for bins in sets.values())
    # Of one set the bins are named; of several each set has its own, and places stand for low to high.
    (first, *others) = sets.values()
    shared = all(
        [(each.lo, each.hi) for each in bins] == [(each.lo, each.hi) for each in first] for bins in others
    )
    narrow = width < 600
    words = (
        [_short(each, narrow) for each in first] if shared else [f"bin {place + 1}" for place in range(most)]
    )
    axes.set_xticks(range(most), words)
    axes.set_xlim(-0.5, most - 0.5)
    step = 0.5 / len(sets)
    for number, (name, bins) in enumerate(sets.items()):
        ink = colour(f"a{number % 6}")
        for place, each in enumerate(bins):
            x = place + (number - (len(sets) - 1) / 2) * step
            share = each.accuracy
            if share.interval:
                axes.plot(
                    [x, x],
                    [100 * end for end in share.interval],
                    color=ink,
                    linewidth=2,
                    alpha=0.5,
                    clip_on=False,
                )
            (dot,) = axes.plot(
                [x], [100 * (share.value or 0)], marker="o", markersize=7, color=ink, clip_on=False
            )
            dot.set_gid(f"bin-{number}-{place}")
            tips[f"bin-{number}-{place}"] = f"{name}, {bin_words(each)}: {share.counts} of {each.n}"
        if len(sets) > 1:
            y = 14.0 + 22.0 * number
            figure.text(66 / width, 1 - y / height, plain_label(name, 40 if narrow else 80), va="center")
            figure.text(52 / width, 1 - y / height, "●", color=ink, va="center", ha="center")
    return tips


def _short(each: Any, narrow: bool) -> str:
    if each.lo == each.hi:
        return f"{each.lo:.2g}"
    return f"{each.lo:.2g}–\n{each.hi:.2g}" if narrow else f"{each.lo:.3g}–{each.hi:.3g}"
