"""A stress table as values: for programs, as JSON, as rows, and as tables to read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from uncanny.eval.common.estimates import Estimate, Share
from uncanny.eval.common.groups import ImageGroups
from uncanny.eval.common.headline import Versus, headline, ranking
from uncanny.eval.common.json_fields import json_of
from uncanny.eval.common.score_json import about
from uncanny.eval.common.tables.paired import class_table, tests_json
from uncanny.eval.common.tables.table import Cell, Column, RowsResult, Table, explain_intervals
from uncanny.eval.edits.stress.condition import DetectorScore
from uncanny.eval.edits.stress.data import AS_GIVEN, Edits, Predictions
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
from uncanny.eval.edits.stress.published import published_json, published_tables
from uncanny.eval.metrics.detection import SOURCES
from uncanny.eval.metrics.intervals import METHOD
from uncanny.eval.metrics.paired import ImageClass, PairedTest
from uncanny.parameters import path_of
from uncanny.wording import counted

if TYPE_CHECKING:
    from uncanny.eval.common.pages.pictures import PicturesMode

COLUMNS: Final = (
    *("detector", "condition", "factor", "group", "n", "detected", "recall", "low", "high"),
    *("precision", "f1", "auc", "iou", "p_value", "auc_within", "pixel_auc", "average_precision"),
)
KEYS: Final = ("detectors", "metadata")
PAGE: Final = "stress.html"
_PHRASES_SHOWN: Final = 8


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
            **({"published": published_json()} if self.published else {}),
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
                        "pixel_auc": score.localization.pixel_auc.value
                        if each == "all" and score.localization
                        else None,
                        "average_precision": score.precision_recall.value if each == "all" else None,
                    }
                for factor in score.factors.values():
                    for group in factor.groups:
                        yield {**row, "factor": factor.name, **group_row(group)}
                    if factor.unknown.out_of:
                        unknown = Group("(unknown)", factor.unknown)
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
            tables += published_tables()
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
                areas = (Estimate(each.value, each.interval) for each in (score.auc, score.precision_recall))
                iou = [score.localization.iou if score.localization else None] if located else []
                rows.append(
                    (
                        _label(name, condition),
                        *(generated.n, real.n),
                        *(generated.precision, generated.recall, generated.f1),
                        *(real.precision, real.recall, real.f1),
                        *(both.f1, *areas, *iou),
                    )
                )
        heads = ("precision", "recall", "F1", "prec. real", "rec. real", "F1 real", "F1 both", "AUC", "AP")
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
