"""Artifact scores as tables, for the terminal, notebooks and the page: overview, categories, bins.

Cells are percent. Published rows stand below one's own where they are wanted, marked as published.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Final

from uncanny.eval.artifacts.score.result import (
    INSTANCE,
    JUDGED,
    PIXEL,
    AccuracyBin,
    ArtifactScore,
    PredictionScore,
    RegionFigure,
    ScopeScore,
)
from uncanny.eval.common.estimates import percent_words
from uncanny.eval.common.headline import Versus, ranking
from uncanny.eval.common.published import caveat, published, texts_notes
from uncanny.eval.common.tables.paired import class_table
from uncanny.eval.common.tables.table import MISSING, Better, Cell, Column, Table, explain_intervals
from uncanny.eval.metrics.paired import ImageClass
from uncanny.schema import ARTIFACT_CATEGORIES, ArtifactCategory
from uncanny.wording import counted

CATEGORY_NAMES: Final[Mapping[ArtifactCategory, str]] = {
    "textures": "Textures",
    "edges_shapes": "Edges & shapes",
    "symbols": "Symbols",
    "color": "Color",
    "semantics": "Semantics",
    "commonsense": "Commonsense",
    "physics": "Physics",
}
PIXEL_NAMES: Final = ("IoU", "PixP", "PixR", "PixF1")
JUDGED_NAMES: Final = ("Acc", "P", "R", "F1")
PUBLISHED: Final = "published"
REGION_NAMES: Final[Mapping[RegionFigure, str]] = {
    "pixel_f1": "PixF1",
    "pixel_iou": "IoU",
    "instance_f1": "instance F1",
}
_ALIGNMENT_TITLES: Final[Mapping[str, str]] = {
    "alignment": "Published: attention alignment, full fine-tuning (table 4)",
    "alignment_masks": "Published: attention alignment, LoRA (table 14)",
}
_JUDGED_KEYS: Final = ("acc", "p", "r", "f1")
_PIXEL_KEYS: Final = ("iou", "pix_p", "pix_r", "pix_f1")
# Those of table 3.
_PIXELS: Final[Mapping[str, str]] = {"PixP": "pix_p", "PixR": "pix_r"}


def tables(score: ArtifactScore) -> tuple[Table, ...]:
    """The overview of all predictions, then what each has by category, generator and bin."""
    several = len(score.predictions) > 1
    each: list[Table] = []
    for name, prediction in score.predictions.items():
        of = f"{name}: " if several else ""
        if prediction.has_categories and any(scope.images for scope in prediction.scopes.values()):
            each += [category_table(prediction, of), instance_table(prediction, score, of)]
        if prediction.by_generator and prediction.aj.images:
            each.append(generator_table(prediction, of))
        if prediction.bins:
            each.append(bin_table(prediction, score, of))
    own = explain_intervals(
        (overview(score), *pair_tables(score), *each), wanted=score.settings.resamples, groups=score.groups
    )
    return (*own, *(published_tables() if score.published else ()))


def overview(score: ArtifactScore) -> Table:
    """Authenticity and category-agnostic pixel figures, a line a set, as in the paper's table 2."""
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            *(each.aj.figures[figure] for figure in JUDGED),
            *(each.agnostic.pixel[figure] for figure in PIXEL),
        )
        for name, each in score.predictions.items()
    ]
    if score.published:
        rows += [
            (f"{row['model']} ({PUBLISHED})", *(_share(row[key]) for key in (*_JUDGED_KEYS, *_PIXEL_KEYS)))
            for row in published("artifact_scores")["authenticity_and_category_agnostic"]
        ]
    notes = (*_overview_notes(score), *([caveat("artifact_scores", score.texts)] if score.published else []))
    return Table(
        ("Predictions", *_percents(*JUDGED_NAMES, *PIXEL_NAMES, better="higher")),
        tuple(rows),
        title="Authenticity (Acc, P, R, F1), all artifacts together (IoU, PixP, PixR, PixF1)",
        notes=notes,
        compared=len(score.predictions),
    )


def headline(score: ArtifactScore) -> str:
    """Whose regions fit best by F1 of pixels, by the tests of the tables; empty where no set has any."""
    pixels = {name: each.agnostic.pixel for name, each in score.predictions.items()}
    ranked = sorted(
        (name for name in pixels if pixels[name]["f1"].value is not None),
        key=lambda name: -(pixels[name]["f1"].value or 0.0),
    )
    words = {name: percent_words(pixels[name]["f1"]) for name in ranked}
    tests = [
        Versus(each.first, each.second, each.estimate, each.adjusted_p)
        for each in score.differences
        if each.figure == "pixel_f1"
    ]
    what = "PixF1, all artifacts together"
    return ranking(words, tests, what=what, things="sets of predictions")


def pair_tables(score: ArtifactScore) -> Iterator[Table]:
    """Each two sets of predictions on the same images: verdicts, and regions; of one set there is nothing."""
    classes: dict[ImageClass, str] = {"all": "all images", "generated": "generated", "real": "real"}
    ranked = sorted(
        score.predictions, key=lambda name: -(score[name].aj.figures["balanced_accuracy"].value or 0.0)
    )
    if (verdicts := class_table(score.tests, ranked, "sets of predictions", classes)) is not None:
        yield verdicts
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            f"{each.first} − {each.second}, {REGION_NAMES[each.figure]}",
            *(each.images, each.estimate, each.p_value, each.adjusted_p),
        )
        for each in score.differences
        if each.estimate.value is not None
    )
    if rows:
        yield Table(
            (
                *("", "images", Column("difference", unit="points", signed=True)),
                *(Column("p", p_value=True), Column("p, Holm", p_value=True)),
            ),
            rows,
            "Two sets of predictions on the same images: all artifacts together",
            (
                "Over the images measured in both: 95 % intervals of a paired bootstrap over images, and a "
                "t test on it, corrected by Holm for all pairs with the same figure.",
            ),
        )


def category_table(prediction: PredictionScore, of: str = "") -> Table:
    """A line a category: pixels and presence."""
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            *(each.pixel[figure] for figure in PIXEL),
            *(each.presence, each.presence_by_chance),
            f"{each.with_true:,} / {each.with_predicted:,}" if each.images else MISSING,
        )
        for name, each in _scopes(prediction)
    ]
    return Table(
        ("Category", *_percents(*PIXEL_NAMES, "Presence", "by chance"), "images"),
        tuple(rows),
        title=f"{of}Pixels by category",
        notes=(
            "Pixels are summed over images; the means over images are in the JSON. Presence: F1 of images "
            "that have the category at all, and by chance for a coin. Images with the category: true / "
            "predicted.",
        ),
    )


def instance_table(prediction: PredictionScore, score: ArtifactScore, of: str = "") -> Table:
    """A line a category: instances."""
    t = f"@{score.settings.t:g}"
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            *(each.instance[figure] for figure in INSTANCE),
            f"{each.regions['true']:,.4g} / {each.regions['predicted']:,.4g}" if each.images else MISSING,
        )
        for name, each in _scopes(prediction)
    ]
    return Table(
        ("Category", *_percents(f"P{t}", f"R{t}", f"F1{t}"), "regions"),
        tuple(rows),
        title=f"{of}Instances by category, protocol {score.settings.protocol}",
        notes=("Regions: true / predicted, as the protocol counts them.",),
    )


def _scopes(prediction: PredictionScore) -> Iterator[tuple[str, ScopeScore]]:
    for name, each in prediction.categories.items():
        yield CATEGORY_NAMES[name], each
    yield "All together", prediction.agnostic


def generator_table(prediction: PredictionScore, of: str = "") -> Table:
    """A line a generator: its images beside all real ones that belong to no other."""
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, sum(each.counts["generated"].values()), *(each.figures[figure] for figure in JUDGED))
        for name, each in prediction.by_generator.items()
    )
    return Table(
        ("Generator", "images", *_percents(*JUDGED_NAMES, key=JUDGED_NAMES[0])),
        rows,
        title=f"{of}Authenticity by generator",
        notes=("R is the share of the generator's images that were recognised.",),
    )


def bin_table(prediction: PredictionScore, score: ArtifactScore, of: str = "") -> Table:
    """A line a bin: how many generated images in it were taken for generated."""
    by = bins_name(score)
    return Table(
        (by, "images", *_percents("accuracy", key="accuracy")),
        tuple((bin_words(each), each.n, each.accuracy) for each in prediction.bins),
        title=f"{of}Accuracy on generated images, by {by}",
    )


def bin_words(each: AccuracyBin) -> str:
    """From where to where a bin goes."""
    return f"{each.lo:.4g}" if each.lo == each.hi else f"{each.lo:.4g} to {each.hi:.4g}"


def bins_name(score: ArtifactScore) -> str:
    """What the bins are of, in words."""
    return "artifact ratio (PAR)" if score.settings.bins == "par" else score.settings.bins


def published_tables() -> tuple[Table, ...]:
    """What the paper has by category, of interpretations, and of attention alignment on four datasets."""
    rows = published("artifact_scores")
    by_category = [
        Table(
            ("Model (published)", *_percents(*CATEGORY_NAMES.values(), better="higher")),
            tuple((row["model"], *(_share(row[name]) for name in ARTIFACT_CATEGORIES)) for row in rows[key]),
            title=title,
            notes=(rows["source"],),
        )
        for key, title in (
            ("vlm_presence_f1", "Published: presence F1 (table 9)"),
            ("vlm_instance_f1_at_0.5", "Published: instance F1@0.5 (table 12)"),
        )
    ]
    cells = list(product(ARTIFACT_CATEGORIES, _PIXELS))
    heads = (f"{CATEGORY_NAMES[category]} {name}" for category, name in cells)
    pixels = Table(
        ("Model (published)", *_percents(*heads, better="higher")),
        tuple(
            (row["model"], *(_share(row[category][_PIXELS[name]]) for category, name in cells))
            for row in rows["pixels_by_category"]
        ),
        title="Published: pixels by category (table 3)",
    )
    interpretations = Table(
        ("Heat map of (published)", *_percents(*PIXEL_NAMES, better="higher")),
        tuple(
            (f"{row['backbone']}, {row['model']}", *(_share(row[key]) for key in _PIXEL_KEYS))
            for row in rows["interpretations"]
        ),
        title="Published: interpretations of models (table 13)",
    )
    return (pixels, *by_category, interpretations, *map(_alignment_table, ("alignment", "alignment_masks")))


def _alignment_table(key: str) -> Table:
    """A line a mask that attention is aligned with, and two columns a dataset."""
    rows = published("artifact_scores")[key]
    names = [name for name in rows[0] if name != "mask"]
    return Table(
        ("Mask (published)", *_percents(*(f"{name} {of}" for name in names for of in ("Acc", "F1")))),
        tuple(
            (row["mask"], *(_share(row[name][of]) for name in names for of in ("acc", "f1"))) for row in rows
        ),
        title=_ALIGNMENT_TITLES[key],
    )


def _overview_notes(score: ArtifactScore) -> Iterator[str]:
    if said := headline(score):
        yield said
    for name, prediction in score.predictions.items():
        for reason, images in left_out_lists(prediction):
            yield f"{name}: {counted(len(images), 'image')} {reason}."
        if prediction.aj.without_verdict:
            number = counted(prediction.aj.without_verdict, "prediction")
            yield f"{name}: {number} without a verdict or score, not counted for authenticity."
        for note, count in prediction.notes.items():
            yield f"{name}: {count:,} × {note}."
        if prediction.unfinished:
            yield f"{name}: {prediction.unfinished}."
    for note, count in score.truth.notes.items():
        yield f"truth: {count:,} × {note}."
    yield from texts_notes(score.texts)
    yield "Percent, in brackets 95 % intervals." if score.settings.resamples else "Percent."


def left_out_lists(prediction: PredictionScore) -> Iterator[tuple[str, Sequence[str]]]:
    """Why images are in no figure or not in all, and which."""
    left = prediction.left_out
    reasons: Sequence[tuple[str, Sequence[str]]] = (
        ("of the truth without a prediction, not counted", left.only_truth),
        ("that the truth does not have, not counted", left.only_predictions),
        ("whose prediction failed or is partial, not counted for regions", left.unfinished),
        ("of the truth without annotated regions, not counted for regions", left.not_annotated),
        ("whose prediction says nothing of regions, not counted for regions", left.not_located),
        ("that are real, not counted for regions", left.real),
        ("without a value, in no bin", left.without_value),
        (
            "of which the truth does not say whether they are generated, not counted for authenticity",
            left.without_source,
        ),
    )
    yield from ((reason, images) for reason, images in reasons if images)
    alike: dict[tuple[str, ...], list[str]] = {}
    for category, images in left.unmeasured.items():
        alike.setdefault(images, []).append(CATEGORY_NAMES[category])
    for same, names in alike.items():
        yield f"not measured for {', '.join(names)}: not counted for these or for all together", same


def _percents(*headings: str, better: Better | None = None, key: str | None = None) -> list[Column]:
    return [Column(heading, unit="%", better=better, key=heading == key) for heading in headings]


def _share(points: float | None) -> float | None:
    return None if points is None else points / 100
