"""A stress table as values: for programs, as JSON, as rows, and as tables to read."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from uncanny.errors import UsageError
from uncanny.eval.common.estimates import Estimate, Share, interval_json, interval_words, p_words
from uncanny.eval.common.published import CAVEATS, published
from uncanny.eval.common.tables import MISSING, Table, TableResult, data_frame
from uncanny.eval.edits.stress.data import AS_GIVEN, SIMILARITIES, Edits, Joined, Predictions
from uncanny.eval.edits.stress.localize import Localization
from uncanny.eval.metrics.association import Association
from uncanny.eval.metrics.auc import Auc
from uncanny.eval.metrics.detection import SOURCES, Accuracy
from uncanny.eval.metrics.edits import Cutoffs
from uncanny.parameters import check_parameters
from uncanny.wording import counted

if TYPE_CHECKING:
    from pandas import DataFrame

    from uncanny.eval.common.pictures import PicturesMode

FactorKind = Literal["bins", "levels", "phrases"]

COLUMNS: Final = (
    *("detector", "condition", "factor", "group", "n", "detected", "recall", "low", "high"),
    *("precision", "f1", "auc", "iou", "p_value"),
)
KEYS: Final = ("detectors", "metadata")
PAGE: Final = "stress.html"
# Images that are in no figure: so many are named in JSON.
MOST_NAMED: Final = 1_000
_PHRASES_SHOWN: Final = 8
_NAMES_SHOWN: Final = 3


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
class Group:
    """The edits of one bin, level or phrase: how many of them are taken for generated.

    `auc` is that of these edits against all real images: it does not depend on a threshold, and a group that
    is low in it cannot be found by moving the threshold. None without scores or real images. `iou` is the
    mean of those with a map, None where none has one. `p_value` is that of its recall against that of all
    other edits of the factor, corrected by Holm for their number; None for a group of nothing, or of
    everything.
    """

    name: str
    recall: Share
    auc: float | None
    iou: Estimate | None
    p_value: float | None


@dataclass(frozen=True, slots=True)
class PairTest:
    """Two bins against each other; `adjusted_p` is corrected by Holm for the pairs of the metric."""

    first: str
    second: str
    test: Association
    adjusted_p: float | None


@dataclass(frozen=True, slots=True)
class Factor:
    """Edits by one thing that is known of them.

    `test` is whether recall differs at all between the groups, `adjusted_p` its p-value corrected by Holm
    for the number of factors; both are None for phrases, and for very many groups, which are compared with
    the rest one by one. `unknown` are edits for which it is not known: in no group and no test. Phrases are
    sorted, the blindest spot first, and `rare` counts edits whose phrase too few share.
    """

    name: str
    kind: FactorKind
    groups: tuple[Group, ...]
    cutoffs: Cutoffs | None
    test: Association | None
    adjusted_p: float | None
    pairs: tuple[PairTest, ...]
    unknown: Share
    rare: int

    def __getitem__(self, name: str) -> Group:
        """A group by its name. Raises KeyError."""
        for group in self.groups:
            if group.name == name:
                return group
        raise KeyError(name)

    def with_adjusted(self, p_value: float | None) -> Factor:
        return replace(self, adjusted_p=p_value)

    def label(self, group: Group) -> str:
        """A bin with its ends, another group by its name."""
        if self.cutoffs is None:
            return group.name
        low, high = (f"{end:.4g}" for end in self.cutoffs)
        ends = {"small": f"< {low}", "medium": f"{low} to {high}", "large": f"> {high}"}
        return f"{group.name}, {ends[group.name]}"

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "cutoffs": None if self.cutoffs is None else list(self.cutoffs),
            "groups": {each.name: _group_json(each) for each in self.groups},
            "unknown": {"n": self.unknown.out_of, "recall": self.unknown.value},
            "rare": self.rare,
            "test": _test_json(self.test, self.adjusted_p),
            "pairs": [
                {"bins": [each.first, each.second], **(_test_json(each.test, each.adjusted_p) or {})}
                for each in self.pairs
            ],
        }


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
                some = ", ".join(names[:_NAMES_SHOWN]) + (", …" if len(names) > _NAMES_SHOWN else "")
                yield f"{counted(len(names), 'image')} {what}, in no figure: {some}"
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
        lists = {
            "only_predicted": self.only_predicted,
            "only_known": self.only_known,
            "unpredicted_originals": self.unpredicted_originals,
            "unknown_class": self.unknown_class,
            "unanswered": self.unanswered,
        }
        counts = {
            "images": self.images,
            "with_score": self.with_score,
            "by_score": self.by_score,
            "contradicted": self.contradicted,
        }
        named = {name: {"n": len(each), "images": list(each[:MOST_NAMED])} for name, each in lists.items()}
        return {**counts, **named}


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
        if not self.classes["real"].n:
            yield "no real image has a prediction: precision says nothing, and there is no AUC"

    def to_json(self) -> dict[str, Any]:
        ends = self.accuracy.interval()
        return {
            "images": self.accuracy.images,
            "threshold": self.threshold,
            "classes": {name: _class_json(each) for name, each in self.classes.items()},
            "accuracy": {
                "value": self.accuracy.accuracy,
                "ci": None if ends is None else list(ends),
                "unparseable": self.accuracy.unparseable,
            },
            "auc": {
                "value": self.auc.value,
                "ci": None if self.auc.interval is None else list(self.auc.interval),
                "generated": self.auc.positives,
                "real": self.auc.negatives,
            },
            "localization": None if self.localization is None else _localization_json(self.localization),
            "by": {name: each.to_json() for name, each in self.factors.items()},
            "coverage": self.coverage.to_json(),
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
class DetectorScore:
    """One detector: its conditions, the first of which the others are compared with (`paired`)."""

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

    def to_json(self) -> dict[str, Any]:
        return {
            "conditions": {name: each.to_json() for name, each in self.conditions.items()},
            "paired": {
                name: {
                    "n": each.n,
                    "lost": each.lost,
                    "gained": each.gained,
                    "p_value": each.p_value,
                    "adjusted_p": each.adjusted_p,
                }
                for name, each in self.paired.items()
            },
        }


@dataclass(frozen=True, slots=True, repr=False)
class StressResult(TableResult):
    """All detectors side by side, by name; `result[name]` is one of them.

    `edits` and `predictions` are what they were scored from. Intervals are Wilson's for shares, DeLong's for
    AUC, and else percentile bootstraps with `resamples` and `seed`.
    """

    detectors: Mapping[str, DetectorScore]
    edits: Edits = field(repr=False, compare=False)
    predictions: Mapping[str, Mapping[str, Predictions]] = field(repr=False, compare=False)
    min_edits: int
    resamples: int
    seed: int
    published: bool = False

    def __getitem__(self, name: str) -> DetectorScore:
        return self.detectors[name]

    def to_json(self) -> dict[str, Any]:
        """What `uncanny edits stress --json` writes. Shares are in 0–1, None is what was not measured."""
        return {
            "detectors": {name: each.to_json() for name, each in self.detectors.items()},
            "metadata": {
                "tables": list(self.edits.places),
                "rows": self.edits.n_rows,
                "images": len(self.edits.images),
                "without_image": self.edits.without_image,
            },
            "min_edits": self.min_edits,
            "intervals": "Wilson for shares, DeLong for AUC, else percentile bootstrap over images",
            "resamples": self.resamples,
            "seed": self.seed,
            **({"published": published("edit_scores")} if self.published else {}),
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """A row a group, with the keys `COLUMNS`; classes are the groups of the factor `class`."""
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
                        yield {**row, "factor": factor.name, **_group_row(group)}
                    if factor.unknown.out_of:
                        unknown = Group("(unknown)", factor.unknown, None, None, None)
                        yield {**row, "factor": factor.name, **_group_row(unknown)}

    def to_csv(self) -> str:
        """The rows, as `uncanny edits stress --csv` writes them; what was not measured is empty."""
        out = io.StringIO()
        writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows())
        return out.getvalue()

    def to_pandas(self) -> DataFrame:
        """The rows as a data frame. Raises UsageError where pandas is not installed."""
        return data_frame(COLUMNS, self.rows())

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

        check_parameters(out=out)
        if out is None:
            raise UsageError("The page has no place", remedy="Say where it goes.")
        return write_stress_page(self, Path(out), title=title, pictures=pictures)

    def tables(self) -> tuple[Table, ...]:
        """All detectors and conditions; then what each is blind to; the published ones where wanted."""
        tables = [self.overall()]
        several = len(self.detectors) > 1
        if any(detector.paired for detector in self.detectors.values()):
            tables.append(self.paired())
        for name, detector in self.detectors.items():
            factors = [each for each in detector.first.factors.values() if each.kind != "phrases"]
            title = f"Edits that {name} finds" if several else None
            if factors:
                tables.append(_group_table(list(_factor_rows(factors)), title, factors))
            phrases = detector.first.factors.get("directional")
            if phrases is not None and phrases.groups:
                tables.append(self.phrases(phrases, name if several else None, most=_PHRASES_SHOWN))
        if self.published:
            tables.append(published_table())
        last = tables.pop()
        return (*tables, replace(last, notes=(*last.notes, *self.notes())))

    def overall(self) -> Table:
        """A line a detector and condition."""
        located = any(
            score.localization is not None
            for each in self.detectors.values()
            for score in each.conditions.values()
        )
        rows = []
        for name, detector in self.detectors.items():
            for condition, score in detector.conditions.items():
                generated, real, both = (score.classes[each] for each in (*SOURCES, "all"))
                rows.append(
                    (
                        _label(name, condition),
                        f"{generated.n:,}",
                        f"{real.n:,}",
                        *(
                            percent(each.value)
                            for each in (generated.precision, generated.recall, generated.f1)
                        ),
                        *(percent(each.value) for each in (real.precision, real.recall, real.f1)),
                        percent(both.f1.value),
                        percent(score.auc.value),
                        *(
                            [percent(score.localization.iou.value if score.localization else None)]
                            if located
                            else ()
                        ),
                    )
                )
        head = ("", "edits", "real", "precision", "recall", "F1", "prec. real", "rec. real", "F1 real")
        return Table((*head, "F1 both", "AUC", *(["IoU"] if located else [])), tuple(rows))

    def paired(self) -> Table:
        """A line a condition that is compared with the first one of its detector."""
        rows = tuple(
            (
                _label(name, condition),
                *(f"{number:,}" for number in (each.n, each.lost, each.gained)),
                p_words(each.adjusted_p),
            )
            for name, detector in self.detectors.items()
            for condition, each in detector.paired.items()
        )
        return Table(("", "edits of both", "no longer found", "found only now", "McNemar"), rows)

    def phrases(self, factor: Factor, name: str | None, *, most: int) -> Table:
        """Directional edits, those that are missed most first; of many the first and the last ones."""
        groups: Sequence[Group] = factor.groups
        rows = [_group_cells(each.name, each) for each in groups[:most]]
        if len(groups) > 2 * most:
            rows.append((f"… {len(groups) - 2 * most:,} more", *("" for _ in _GROUP_HEAD[1:])))
        rows += [_group_cells(each.name, each) for each in groups[most:][-most:]]
        title = "Directional edits, the most missed ones first" + (f": {name}" if name else "")
        return _group_table(rows, title, [factor])

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
        yield "Percent. Recall with 95 % intervals (Wilson); p-values corrected by Holm's method."


def _label(detector: str, condition: str) -> str:
    return detector if condition == AS_GIVEN else f"{detector} @ {condition}"


def percent(share: float | None) -> str:
    return MISSING if share is None else f"{100 * share:.1f}"


_GROUP_HEAD: Final = ("", "edits", "found", "recall", "interval", "AUC", "IoU", "against the rest")
_OPTIONAL: Final = (5, 6)


def _group_cells(name: str, group: Group) -> tuple[str, ...]:
    return (
        name,
        f"{group.recall.out_of:,}",
        f"{group.recall.counts:,}",
        percent(group.recall.value),
        interval_words(group.recall) or MISSING,
        percent(group.auc),
        percent(None if group.iou is None else group.iou.value),
        MISSING if group.p_value is None else p_words(group.p_value),
    )


def _group_table(rows: Sequence[tuple[str, ...]], title: str | None, factors: Sequence[Factor]) -> Table:
    """Without the columns of AUC and IoU where nothing was measured."""
    groups = [group for factor in factors for group in factor.groups]
    empty = (
        all(group.auc is None for group in groups),
        all(group.iou is None for group in groups),
    )
    left_out = {column for column, nothing in zip(_OPTIONAL, empty, strict=True) if nothing}
    cells = [
        [cell for place, cell in enumerate(row) if place not in left_out] for row in (_GROUP_HEAD, *rows)
    ]
    head, *lines = map(tuple, cells)
    return Table(head, tuple(lines), title, tuple(_hints(factors)))


def _factor_rows(factors: Sequence[Factor]) -> Iterator[tuple[str, ...]]:
    for factor in factors:
        test = factor.test
        says = "" if factor.adjusted_p is None else p_words(factor.adjusted_p)
        v = "" if test is None or test.cramers_v is None else f"V {test.cramers_v:.2f}"
        yield (factor.name, "", "", "", v, "", "", says)
        for group in factor.groups:
            yield _group_cells(f"  {factor.label(group)}", group)
        if factor.unknown.out_of:
            yield _group_cells("  unknown", Group("", factor.unknown, None, None, None))


def _hints(factors: Sequence[Factor]) -> Iterator[str]:
    similar = [each.name for each in factors if each.name in SIMILARITIES and each.kind == "bins"]
    if similar:
        yield f"Of {' and '.join(similar)} small is the most changed."
    rare = sum(each.rare for each in factors)
    if rare:
        yield f"{rare:,} edits are of rarer phrases, in no line."


def published_table() -> Table:
    """Semi-Truths, table 3."""
    rows = tuple(
        (
            each["model"],
            *(
                f"{each[f'{name}_{which}']:.2f}"
                for name in ("precision", "recall")
                for which in ("all", "real", "fake")
            ),
        )
        for each in published("edit_scores")["detectors"]
    )
    head = ("published", "precision", "real", "generated", "recall", "real", "generated")
    return Table(head, rows, None, (CAVEATS["edit_scores"],))


def _group_row(group: Group) -> dict[str, Any]:
    low, high = group.recall.interval or (None, None)
    return {
        "group": group.name,
        "n": group.recall.out_of,
        "detected": group.recall.counts,
        "recall": group.recall.value,
        "low": low,
        "high": high,
        "auc": group.auc,
        "iou": None if group.iou is None else group.iou.value,
        "p_value": group.p_value,
    }


def _group_json(group: Group) -> dict[str, Any]:
    return {
        "n": group.recall.out_of,
        "detected": group.recall.counts,
        "recall": group.recall.value,
        "ci": interval_json(group.recall),
        "auc": group.auc,
        "iou": None if group.iou is None else group.iou.value,
        "p_value": group.p_value,
    }


def _test_json(test: Association | None, adjusted: float | None) -> dict[str, Any] | None:
    if test is None:
        return None
    return {
        "test": test.test,
        "chi2": test.chi2,
        "df": test.df,
        "p_value": test.p_value,
        "adjusted_p": adjusted,
        "cramers_v": test.cramers_v,
    }


def _class_json(scores: ClassScore) -> dict[str, Any]:
    figures = {"precision": scores.precision, "recall": scores.recall, "f1": scores.f1}
    return {
        "n": scores.n,
        **{name: each.value for name, each in figures.items()},
        "ci": {name: interval_json(each) for name, each in figures.items()},
    }


def _localization_json(located: Localization) -> dict[str, Any]:
    return {
        "n": located.n,
        "iou": located.iou.value,
        "pooled_iou": located.pooled_iou,
        "pixel_auc": located.pixel_auc.value,
        "n_maps": located.n_maps,
        "ci": {"iou": interval_json(located.iou), "pixel_auc": interval_json(located.pixel_auc)},
        "threshold": located.threshold,
        "resized": located.resized,
        "left_out": dict(list(located.left_out.items())[:MOST_NAMED]),
        "n_left_out": len(located.left_out),
    }
