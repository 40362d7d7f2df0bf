"""One detector on one set of files: its figures, what they are out of, and how conditions compare."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from uncanny.eval.common.estimates import Estimate, Share, share_of
from uncanny.eval.common.json_fields import JsonFields, as_json, intervals_json, json_of
from uncanny.eval.edits.stress.data import GENERATED, REAL, UNCLEAR, Joined, Predictions
from uncanny.eval.edits.stress.data import SOURCES as TRUTHS
from uncanny.eval.edits.stress.factors import Factor
from uncanny.eval.edits.stress.localize import Localization
from uncanny.eval.metrics.auc import Auc, AveragePrecision
from uncanny.eval.metrics.detection import SOURCES, Accuracy, Judged
from uncanny.eval.metrics.intervals import (
    Bools,
    Codes,
    Floats,
    percentile_intervals,
    resampled_sums,
    sums_by_group,
    units,
)
from uncanny.wording import counted, some_of

# Images that are in no figure: so many are named in JSON.
MOST_NAMED: Final = 1_000


@dataclass(frozen=True, slots=True)
class ClassScore:
    """One class: `generated` or `real`, or for `all` the mean of both. Shares and F1 are in 0–1.

    `n` are the images of the class. Precision is out of the images taken for it, None where there are none;
    recall is out of its images, those without a clear answer included.
    """

    n: int
    precision: Share | Estimate
    recall: Share | Estimate
    f1: Estimate


@dataclass(frozen=True, slots=True)
class Coverage:
    """What is in the figures of one condition, and what is not, by name; nothing is left out in silence."""

    images: int
    left_by_balance: int
    with_score: int
    by_score: int
    contradicted: int
    only_predicted: tuple[str, ...]
    only_known: tuple[str, ...]
    unpredicted_originals: tuple[str, ...]
    unknown_class: tuple[str, ...]
    unanswered: tuple[str, ...]

    @classmethod
    def of(cls, predictions: Predictions, joined: Joined) -> Coverage:
        return cls(
            len(joined.predicted),
            joined.left_by_balance,
            int((~np.isnan(predictions.scores[joined.predicted])).sum()),
            predictions.by_score,
            predictions.contradicted,
            joined.only_predicted,
            joined.only_known,
            joined.unpredicted_originals,
            joined.unknown_class,
            joined.unanswered,
        )

    def notes(self, threshold: float) -> Iterator[str]:
        """In words: what is in no figure, and what was decided about the rest."""
        for names, what in (
            (self.only_predicted, "of the predictions without metadata"),
            (self.only_known, "of the metadata without a prediction"),
            (self.unpredicted_originals, "named as originals without a prediction"),
            (self.unknown_class, "that no table calls real or edited"),
            (self.unanswered, "without a verdict"),
        ):
            if names:
                yield f"{counted(len(names), 'image')} {what}, not counted: {some_of(names)}"
        if self.left_by_balance:
            left = counted(self.left_by_balance, "image")
            yield f"{left} of the larger class left out by a draw, so that both are equally many"
        if 0 < self.with_score < self.images:
            without = self.images - self.with_score
            yield f"{without:,} of {self.images:,} verdicts come without a score and are not in AUC"
        if self.by_score:
            yield f"{self.by_score:,} verdicts made from scores alone, at {threshold:g}"
        if self.contradicted:
            yield (
                f"{self.contradicted:,} verdicts do not agree with their score at {threshold:g}: it says "
                "how likely an image is generated, whatever the verdict"
            )

    def to_json(self) -> dict[str, Any]:
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            name: {"n": len(each), "images": list(each[:MOST_NAMED])} if isinstance(each, tuple) else each
            for name, each in values.items()
        }


@dataclass(frozen=True, slots=True)
class ConditionScore:
    """A detector's scores on one set of files: the images as given, or compressed copies.

    `precision_recall` is the curve of the scores with its area. `missed` are places of edits taken for real,
    in the metadata's images and in the predictions. `threshold` is from which score on an image is taken for
    generated.
    """

    accuracy: Accuracy
    classes: Mapping[str, ClassScore]
    auc: Auc
    precision_recall: AveragePrecision
    localization: Localization | None
    factors: Mapping[str, Factor]
    coverage: Coverage
    threshold: float
    missed: NDArray[np.int64] = field(repr=False, compare=False)

    def notes(self) -> Iterator[str]:
        """What is in no figure, and what was decided, in words without a full stop."""
        yield from self.coverage.notes(self.threshold)
        if self.localization is not None and self.localization.left_out:
            image, why = next(iter(self.localization.left_out.items()))
            n = len(self.localization.left_out)
            yield f"{counted(n, 'edit')} with a map in no IoU: {image} ({why}){', …' if n > 1 else ''}"
        if self.localization is not None and self.localization.map_size is not None:
            yield f"pixel AUC of maps and masks scaled to {self.localization.map_size:,} pixels square"
        if not self.classes["real"].n:
            yield "no real image has a prediction: precision has no meaning, and AUC cannot be computed"

    def to_json(self) -> dict[str, Any]:
        accuracy = {"value": self.accuracy.accuracy, "ci": intervals_json(self.accuracy.interval())}
        return {
            **json_of(self, "images=accuracy.images threshold"),
            "classes": {name: _class_json(each) for name, each in self.classes.items()},
            "accuracy": {**accuracy, "unparseable": self.accuracy.unparseable},
            "auc": json_of(self.auc, "value ci=interval generated=positives real=negatives"),
            "average_precision": _curve_json(self.precision_recall),
            "localization": None if self.localization is None else _localization_json(self.localization),
            **json_of(self, "by=factors coverage"),
        }


@dataclass(frozen=True, slots=True)
class Paired:
    """The edits that both conditions have a verdict on: `lost` were found before and are missed now,
    `gained` the other way round; McNemar's exact test, corrected by Holm for the number of conditions."""

    n: int
    lost: int
    gained: int
    p_value: float | None
    adjusted_p: float | None


@dataclass(frozen=True, slots=True)
class DetectorScore(JsonFields):
    """One detector: its conditions, the first of which the others are compared with (`paired`)."""

    json_keys: ClassVar = "conditions paired"

    name: str
    conditions: Mapping[str, ConditionScore]
    paired: Mapping[str, Paired]

    @property
    def first(self) -> ConditionScore:
        """The images as given, or where there are no predictions on them the first condition."""
        return next(iter(self.conditions.values()))

    def __getitem__(self, condition: str) -> ConditionScore:
        return self.conditions[condition]

    def factor(self, name: str) -> Factor:
        """One factor of `first`. Raises KeyError."""
        return self.first.factors[name]


def _class_json(scores: ClassScore) -> dict[str, Any]:
    figures = {name: getattr(scores, name) for name in ("precision", "recall", "f1")}
    return {"n": scores.n, **as_json(figures), "ci": intervals_json(figures)}


def _curve_json(area: AveragePrecision) -> dict[str, Any]:
    curve = area.curve.thinned()._asdict()
    return {
        **json_of(area, "value ci=interval guessing"),
        "curve": {name: values.tolist() for name, values in curve.items()},
    }


def _localization_json(located: Localization) -> dict[str, Any]:
    figures = {"iou": located.iou, "pixel_auc": located.pixel_auc}
    return {
        **json_of(located, "n iou=iou.value pooled_iou pixel_auc=pixel_auc.value n_maps"),
        "ci": intervals_json(figures),
        **json_of(located, "threshold resized map_size"),
        "left_out": dict(list(located.left_out.items())[:MOST_NAMED]),
        "n_left_out": len(located.left_out),
    }


CODES: Final[Mapping[int, Judged]] = {GENERATED: "generated", REAL: "real", UNCLEAR: "unparseable"}


def class_scores(
    accuracy: Accuracy,
    truth: NDArray[np.int64],
    verdicts: NDArray[np.int64],
    groups: Codes | None,
    resamples: int,
    seed: int,
) -> dict[str, ClassScore]:
    """By class, and as `all` the mean of both; None where a class has none.

    `truth` and `verdicts` are codes, an entry an image, and `groups` the images that belong together.
    """

    def share(hits: Bools, of: Bools) -> Share:
        return share_of(hits[of], None if groups is None else groups[of])

    drawn = _drawn(accuracy, truth, verdicts, groups, resamples, seed)
    scores: dict[str, ClassScore] = {}
    for source in SOURCES:
        code = TRUTHS[source]
        true, judged, right = truth == code, verdicts == code, truth == verdicts
        # F1 of a class without images has no value, whatever is taken for it.
        f1 = Estimate(accuracy.f1(source), drawn.get((source, "f1"))) if true.any() else Estimate(None)
        scores[source] = ClassScore(int(true.sum()), share(right, judged), share(right, true), f1)

    def mean(name: str) -> Estimate:
        values = [getattr(accuracy, name)(source) for source in SOURCES]
        if None in values:
            return Estimate(None)
        return Estimate(sum(values) / len(values), drawn.get(("all", name)))

    scores["all"] = ClassScore(accuracy.images, mean("precision"), mean("recall"), mean("f1"))
    return scores


def _drawn(
    accuracy: Accuracy,
    truth: NDArray[np.int64],
    verdicts: NDArray[np.int64],
    groups: Codes | None,
    resamples: int,
    seed: int,
) -> dict[tuple[str, str], tuple[float, float] | None]:
    """Percentile intervals by a bootstrap over images, which are as many kinds as the table has cells.

    Images that come in groups are drawn by the group.
    """
    images = accuracy.images
    if not images or not resamples:
        return {}
    cells = [(true, judged) for true in SOURCES for judged in CODES.values()]
    rng = np.random.default_rng(seed)
    if groups is None:
        chances = np.array([accuracy.counts[cell] for cell in cells]) / images
        counts = rng.multinomial(images, chances, size=resamples).astype(np.float64)
    else:
        in_cell = ((truth == TRUTHS[true]) & (verdicts == code) for true in SOURCES for code in CODES)
        table = np.stack([sums_by_group(each, groups) for each in in_cell], axis=1)
        counts = resampled_sums(table[table.any(axis=1)], rng, resamples=resamples)
    column = {cell: counts[:, place] for place, cell in enumerate(cells)}
    values: dict[tuple[str, str], Floats] = {}
    # How many images, or groups of them, each is of.
    sizes: dict[tuple[str, str], int] = {}
    with np.errstate(invalid="ignore", divide="ignore"):
        for source in SOURCES:
            hits = column[source, source]
            true = sum(column[source, judged] for judged in CODES.values())
            judged = sum(column[each, source] for each in SOURCES)
            values[source, "precision"], values[source, "recall"] = hits / judged, hits / true
            values[source, "f1"] = 2 * hits / (true + judged)
            is_true, is_judged = truth == TRUTHS[source], verdicts == TRUTHS[source]
            sizes[source, "precision"] = units(is_judged, groups)
            sizes[source, "recall"] = units(is_true, groups)
            sizes[source, "f1"] = units(is_true | is_judged, groups)
        for name in ("precision", "recall", "f1"):
            values["all", name] = (values["generated", name] + values["real", name]) / 2
            # The rarer class says how much is known of both.
            sizes["all", name] = min(sizes[source, name] for source in SOURCES)
    ends = percentile_intervals(
        np.stack(list(values.values()), axis=1), images=[sizes[place] for place in values]
    )
    return dict(zip(values, ends, strict=True))
