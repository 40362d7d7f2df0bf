"""A stress table as values: for programs, as JSON, as rows, and as tables to read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from uncanny.eval.common.estimates import Estimate, Share
from uncanny.eval.common.groups import ImageGroups
from uncanny.eval.common.headline import Versus, headline, ranking
from uncanny.eval.common.json_fields import JsonFields, as_json, intervals_json, json_of
from uncanny.eval.common.published import EDITS_CAVEAT, published
from uncanny.eval.common.score_json import about
from uncanny.eval.common.tables.paired import class_table, tests_json
from uncanny.eval.common.tables.table import Cell, Column, RowsResult, Table, explain_intervals
from uncanny.eval.edits.stress.data import AS_GIVEN, Edits, Joined, Predictions
from uncanny.eval.edits.stress.factors import (
    GROUP_COLUMNS,
    Factor,
    Group,
    claims,
    factor_rows,
    group_cells,
    group_row,
    group_table,
)
from uncanny.eval.edits.stress.localize import Localization
from uncanny.eval.metrics.auc import Auc
from uncanny.eval.metrics.detection import SOURCES, Accuracy
from uncanny.eval.metrics.intervals import METHOD
from uncanny.eval.metrics.paired import ImageClass, PairedTest
from uncanny.parameters import path_of
from uncanny.wording import counted, some_of

if TYPE_CHECKING:
    from uncanny.eval.common.pages.pictures import PicturesMode

COLUMNS: Final = (
    *("detector", "condition", "factor", "group", "n", "detected", "recall", "low", "high"),
    *("precision", "f1", "auc", "iou", "p_value"),
)
KEYS: Final = ("detectors", "metadata")
PAGE: Final = "stress.html"
# Images that are in no figure: so many are named in JSON.
MOST_NAMED: Final = 1_000
_PHRASES_SHOWN: Final = 8


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

    `missed` are places of edits taken for real, in the metadata's images and in the predictions. `threshold`
    is from which score on an image is taken for generated.
    """

    accuracy: Accuracy
    classes: Mapping[str, ClassScore]
    auc: Auc
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


@dataclass(frozen=True, slots=True, repr=False)
class StressResult(RowsResult):
    """All detectors side by side, by name; `result[name]` is one of them.

    `edits` and `predictions` are what they were scored from. `tests` compare each two detectors on the images
    as given that both judged, by class. `groups` are the images that intervals and paired tests take as one.
    Intervals are Wilson's for shares, DeLong's for AUC, and else percentile bootstraps with `resamples` and
    `seed`.
    """

    columns: ClassVar = COLUMNS

    detectors: Mapping[str, DetectorScore]
    edits: Edits = field(repr=False, compare=False)
    predictions: Mapping[str, Mapping[str, Predictions]] = field(repr=False, compare=False)
    tests: Mapping[ImageClass, Sequence[PairedTest]]
    groups: ImageGroups | None
    least_edits: int
    resamples: int
    seed: int
    published: bool = False

    def __getitem__(self, name: str) -> DetectorScore:
        return self.detectors[name]

    def to_json(self) -> dict[str, Any]:
        """What `uncanny edits stress --json` writes. Shares are in 0–1, None is what was not measured."""
        return {
            **json_of(self, "detectors"),
            "mcnemar": tests_json((name, test) for name, family in self.tests.items() for test in family),
            "metadata": {
                "tables": list(self.edits.places),
                "rows": self.edits.n_rows,
                "images": len(self.edits.images),
                "without_image": self.edits.without_image,
                "protocol": self.edits.protocol,
            },
            "about": about(
                {"metadata": self.edits.digest(masks=self.is_located)},
                {
                    name: {text for each in conditions.values() for text in each.texts}
                    for name, conditions in self.predictions.items()
                },
                resamples=self.resamples,
                seed=self.seed,
                method=f"DeLong for AUC, {METHOD}",
                groups=self.groups,
            ),
            "least_edits": self.least_edits,
            "intervals": f"DeLong for AUC, {METHOD}",
            "resamples": self.resamples,
            "seed": self.seed,
            **({"published": published("edit_scores")} if self.published else {}),
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """A row a group, with the keys `columns`; classes are the groups of the factor `class`."""
        for name, detector in self.detectors.items():
            for condition, score in detector.conditions.items():
                row = {"detector": name, "condition": condition}
                for each, scores in score.classes.items():
                    low, high = scores.recall.interval or (None, None)
                    yield {
                        **row,
                        "factor": "class",
                        "group": each,
                        "n": scores.n,
                        "detected": scores.recall.counts if isinstance(scores.recall, Share) else None,
                        "recall": scores.recall.value,
                        "low": low,
                        "high": high,
                        "precision": scores.precision.value,
                        "f1": scores.f1.value,
                        "auc": score.auc.value if each == "all" else None,
                        "iou": score.localization.iou.value if each == "all" and score.localization else None,
                    }
                for factor in score.factors.values():
                    for group in factor.groups:
                        yield {**row, "factor": factor.name, **group_row(group)}
                    if factor.unknown.out_of:
                        unknown = Group("(unknown)", factor.unknown, None, None, None)
                        yield {**row, "factor": factor.name, **group_row(unknown)}

    def report(
        self,
        out: str | os.PathLike[str],
        *,
        title: str | None = None,
        pictures: PicturesMode = "link",
    ) -> Path:
        """Write the page to `out` and return its path.

        Pictures of missed edits come from the files that the metadata name; one that cannot be read is left
        out. Full-size `pictures` are linked, or embedded. The file appears whole or not at all. Raises
        OSError where it cannot be written.
        """
        from uncanny.eval.edits.stress.report import write_stress_page

        return write_stress_page(self, path_of("out", out), title=title, pictures=pictures)

    def tables(self) -> tuple[Table, ...]:
        """All detectors and conditions; then what each is blind to; the published ones where wanted."""
        tables = [replace(self.overall(), notes=tuple(self.headlines()))]
        several = len(self.detectors) > 1
        tables += [table] if (table := self.compared()) is not None else []
        if any(detector.paired for detector in self.detectors.values()):
            tables.append(self.paired())
        for name, detector in self.detectors.items():
            factors = [each for each in detector.first.factors.values() if each.kind != "phrases"]
            title = f"Edits that {name} finds" if several else None
            if factors:
                tables.append(group_table(list(factor_rows(factors)), title, factors))
            phrases = detector.first.factors.get("directional")
            if phrases is not None and phrases.groups:
                tables.append(self.phrases(phrases, name if several else None, most=_PHRASES_SHOWN))
        if self.published:
            tables.append(published_table())
        last = tables.pop()
        return explain_intervals(
            (*tables, replace(last, notes=(*last.notes, *self.notes()))), wanted=self.resamples
        )

    def headlines(self) -> Iterator[str]:
        """A sentence a detector, with what its recall hangs on by the tests of the tables; then who leads."""
        for name, detector in self.detectors.items():
            generated, real = (detector.first.classes[each] for each in SOURCES)
            found = generated.recall
            if found.value is None or not isinstance(found, Share):
                yield f"No edit has a prediction of {name}."
                continue
            taken = ""
            if isinstance(real.recall, Share) and real.n:
                taken = f" and takes {real.n - real.recall.counts:,} of {real.n:,} real images for edits"
            said = headline(
                claims(detector.first.factors.values()),
                nothing="No factor and no group of edits makes a significant difference",
                untested="Whether anything known of the edits makes a difference is not tested",
            )
            yield (
                f"{name} finds {100 * found.value:.1f} % of {found.out_of:,} edits{taken}. "
                f"{said[0].upper()}{said[1:]}."
            )
        tests = self.tests.get("all") or self.tests.get("generated") or ()
        pairs = [Versus(each.first, each.second, each.difference, each.adjusted_p) for each in tests]
        shares = {name: self[name].first.accuracy for name in self.ranked()}
        words = {
            name: f"{100 * (each.accuracy or 0.0):.1f} %" for name, each in shares.items() if each.images
        }
        if len(words) > 1:
            yield ranking(words, pairs, what="verdicts that are right", things="detectors")

    @property
    def is_located(self) -> bool:
        """Whether any detector says where edits are."""
        return any(
            score.localization is not None
            for each in self.detectors.values()
            for score in each.conditions.values()
        )

    def overall(self) -> Table:
        """A line a detector and condition; conditions are no rivals, detectors on images as given are."""
        located = self.is_located
        rows: list[tuple[Cell, ...]] = []
        rivals = []
        for name, detector in self.detectors.items():
            for condition, score in detector.conditions.items():
                if condition == AS_GIVEN:
                    rivals.append(len(rows))
                generated, real, both = (score.classes[each] for each in (*SOURCES, "all"))
                iou = [score.localization.iou if score.localization else None] if located else []
                rows.append(
                    (
                        _label(name, condition),
                        *(generated.n, real.n),
                        *(generated.precision, generated.recall, generated.f1),
                        *(real.precision, real.recall, real.f1),
                        *(both.f1, Estimate(score.auc.value, score.auc.interval), *iou),
                    )
                )
        heads = ("precision", "recall", "F1", "prec. real", "rec. real", "F1 real", "F1 both", "AUC")
        figures = (*heads, *(["IoU"] if located else []))
        columns = (Column(head, unit="%", better="higher", key=head == "recall") for head in figures)
        return Table(("", "edits", "real", *columns), tuple(rows), compared=(tuple(rivals),))

    def ranked(self) -> list[str]:
        """The detectors by the share of their verdicts on `first` that are right, best first."""
        return sorted(self.detectors, key=lambda name: -(self[name].first.accuracy.accuracy or 0.0))

    def compared(self) -> Table | None:
        """Each two detectors on the same images; None where fewer than two judged the images as given."""
        classes: dict[ImageClass, str] = {"all": "all images", "generated": "edits", "real": "real images"}
        if "real" not in self.tests:
            del classes["all"]
        return class_table(self.tests, self.ranked(), "detectors", classes)

    def paired(self) -> Table:
        """A line a condition that is compared with the first one of its detector."""
        rows = tuple(
            (
                _label(name, condition),
                *(each.n, each.lost, each.gained),
                each.adjusted_p,
            )
            for name, detector in self.detectors.items()
            for condition, each in detector.paired.items()
        )
        heads = ("", "edits of both", "no longer found", "found only now")
        return Table((*heads, Column("p, McNemar", p_value=True)), rows)

    def phrases(self, factor: Factor, name: str | None, *, most: int) -> Table:
        """Directional edits, those that are missed most first; of many the first and the last ones."""
        groups: Sequence[Group] = factor.groups
        rows = [group_cells(each.name, each) for each in groups[:most]]
        if len(groups) > 2 * most:
            rows.append((f"… {len(groups) - 2 * most:,} more", *("" for _ in GROUP_COLUMNS[1:])))
        rows += [group_cells(each.name, each) for each in groups[most:][-most:]]
        title = "Directional edits, the most missed ones first" + (f": {name}" if name else "")
        return group_table(rows, title, [factor])

    def notes(self) -> Iterator[str]:
        """What is in no figure and what was decided, of every detector and condition, each once."""
        whose: dict[str, list[str]] = {}
        for name, detector in self.detectors.items():
            for condition, score in detector.conditions.items():
                for note in score.notes():
                    whose.setdefault(note, []).append(_label(name, condition))
        n = sum(len(each.conditions) for each in self.detectors.values())
        for note, names in whose.items():
            yield f"{note}." if len(names) == n else f"{', '.join(names)}: {note}."
        if self.edits.without_image:
            yield f"{counted(self.edits.without_image, 'row')} of metadata of no image, left out."
        if self.groups is not None:
            yield (
                f"{self.groups.words()} AUC and the tests between bins, levels and phrases take images as "
                "independent, so their intervals may be too narrow and their p-values too small."
            )
        yield (
            "Percent with 95 % intervals: Wilson's for shares, DeLong's for AUC, else a bootstrap; p-values "
            "corrected by Holm's method."
        )


def _label(detector: str, condition: str) -> str:
    return detector if condition == AS_GIVEN else f"{detector} @ {condition}"


def published_table() -> Table:
    """Semi-Truths, table 3."""
    rows = tuple(
        (
            each["model"],
            *(
                each[f"{name}_{which}"]
                for name in ("precision", "recall")
                for which in ("all", "real", "fake")
            ),
        )
        for each in published("edit_scores")["detectors"]
    )
    heads = (f"{name}.{which}" for name in ("prec", "rec") for which in ("", " real", " gen."))
    columns: tuple[str | Column, ...] = (
        "published",
        *(Column(head, digits=2, better="higher") for head in heads),
    )
    return Table(columns, rows, None, (EDITS_CAVEAT,))


def _class_json(scores: ClassScore) -> dict[str, Any]:
    figures = {name: getattr(scores, name) for name in ("precision", "recall", "f1")}
    return {"n": scores.n, **as_json(figures), "ci": intervals_json(figures)}


def _localization_json(located: Localization) -> dict[str, Any]:
    figures = {"iou": located.iou, "pixel_auc": located.pixel_auc}
    return {
        **json_of(located, "n iou=iou.value pooled_iou pixel_auc=pixel_auc.value n_maps"),
        "ci": intervals_json(figures),
        **json_of(located, "threshold resized map_size"),
        "left_out": dict(list(located.left_out.items())[:MOST_NAMED]),
        "n_left_out": len(located.left_out),
    }
