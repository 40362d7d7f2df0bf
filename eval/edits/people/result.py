"""Scores of people who judged edited images, as values: for programs, as JSON, rows and tables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from uncanny.eval.common.estimates import Estimate, Share
from uncanny.eval.common.groups import ImageGroups
from uncanny.eval.common.json_fields import as_json, json_of
from uncanny.eval.common.pixels.masks import mask_identity
from uncanny.eval.common.score_json import about, digest_of
from uncanny.eval.common.tables.table import Cell, Column, RowsResult, Table, explain_intervals
from uncanny.eval.edits.data import EditFiles, EditSet
from uncanny.eval.edits.people.data import Judgement
from uncanny.eval.metrics.association import Questionnaire
from uncanny.eval.metrics.intervals import METHOD
from uncanny.eval.metrics.significance import Agreement
from uncanny.parameters import path_of
from uncanny.wording import counted, some_of

if TYPE_CHECKING:
    from uncanny.eval.common.pages.pictures import PicturesMode

KEYS: Final = ("people", "together", "majority")
COLUMNS: Final = (
    *("who", "factor", "group", "judged", "images", "accuracy", "accuracy_low", "accuracy_high"),
    *("precision", "recall", "specificity", "f1", "iou", "box_iou", "found_iou", "with_iou", "seconds"),
)
PAGE: Final = "people.html"
_MOST_NAMED: Final = 100


@dataclass(frozen=True, slots=True)
class Figures:
    """What `judged` verdicts on `images` come to; an edit is positive. Shares, F1 and IoU are in 0–1.

    `accuracy` is the share of right verdicts, `recall` of edits found, `specificity` of originals taken for
    real, `precision` of what was taken for edited; `f1` joins precision and recall and is None without edits.
    `unclear` verdicts, which detectors may have, are wrong. `iou` is the mean over edits of the IoU of all
    boxes together with the mask, 0 where none were drawn; `box_iou` with the mask turned into boxes;
    `found_iou` over those on which boxes were drawn, which are `boxed`. `with_iou` verdicts are in them, and
    `without_iou` on edits are not, for want of a mask of the image's size. `seconds` is the median, None
    where no time was taken.
    """

    judged: int
    images: int
    unclear: int
    accuracy: Share
    precision: Share
    recall: Share
    specificity: Share
    f1: Estimate
    iou: Estimate
    box_iou: Estimate
    found_iou: Estimate
    with_iou: int
    without_iou: int
    boxed: int
    seconds: float | None

    def to_json(self) -> dict[str, Any]:
        return {each.name: _figure_json(getattr(self, each.name)) for each in fields(self)}


@dataclass(frozen=True, slots=True)
class Detector:
    """A detector on the images that people judged; of `without` of these it says nothing.

    `unused` predictions are of images that are in no pair.
    """

    figures: Figures
    without: int
    unused: int


@dataclass(frozen=True, slots=True)
class Left:
    """What is in no figure: judgements of pairs that are not there (`unknown`, `unknown_judgements`), images
    that could not be shown to somebody, judgements of images that were replaced since (`stale`), earlier
    judgements of the same image, and images nobody judged."""

    unknown: tuple[str, ...]
    unknown_judgements: int
    unjudged: int
    stale: int
    repeated: int
    unseen: int

    def to_json(self) -> dict[str, Any]:
        unknown = {"n": self.unknown_judgements, "pairs": list(self.unknown[:_MOST_NAMED])}
        return {"unknown": unknown, **json_of(self, "unjudged stale repeated unseen")}


@dataclass(frozen=True, slots=True, repr=False)
class PeopleScores(RowsResult):
    """Each person, all `together`, and what the `majority` says, with `ties` images on which it says nothing.

    `factors` have figures by factor and group, over the group's edits and their originals. `questionnaire`
    has, by column, whether people who answered differently are right differently often; people with fewer
    than `least_answers` judgements are in none of it. `left` is in no figure. `grouped` are the judged images
    that intervals take as one: an original and its edits.
    """

    columns: ClassVar = COLUMNS

    people: Mapping[str, Figures]
    together: Figures
    majority: Figures
    ties: int
    agreement: Agreement
    factors: Mapping[str, Mapping[str, Figures]]
    detectors: Mapping[str, Detector]
    questionnaire: Mapping[str, Questionnaire]
    least_answers: int
    left: Left
    pairs: EditSet = field(repr=False, compare=False)
    grouped: ImageGroups | None
    judgements: tuple[Judgement, ...] = field(repr=False, compare=False)
    resamples: int
    seed: int

    @property
    def few_answers(self) -> tuple[str, ...]:
        """The people who judged too few images to be in the questionnaire; empty without one."""
        return tuple(
            name
            for name, each in self.people.items()
            if self.questionnaire and each.judged < self.least_answers
        )

    def to_json(self) -> dict[str, Any]:
        """What `uncanny edits people-score --json` writes. Shares are in 0–1, None is unmeasured."""
        return {
            **json_of(self, "people together"),
            "majority": {**self.majority.to_json(), "ties": self.ties},
            "agreement": json_of(self.agreement, "alpha images=units judgements"),
            "by": as_json(self.factors),
            "detectors": {
                name: {**each.figures.to_json(), "without": each.without, "unused": each.unused}
                for name, each in self.detectors.items()
            },
            "questionnaire": {
                name: {
                    "levels": {
                        level: {"right": right, "judged": judged}
                        for level, (right, judged) in column.levels.items()
                    },
                    "without": column.without,
                    **json_of(column.association, "n chi2 df p_value"),
                    "adjusted_p": column.adjusted_p,
                    **json_of(column.association, "cramers_v test"),
                }
                for name, column in self.questionnaire.items()
            },
            "least_answers": self.least_answers,
            "left_out": {
                **self.left.to_json(),
                "few_answers": {"n": len(self.few_answers), "people": list(self.few_answers)},
            },
            "about": about(
                {"pairs": digest_of(map(_pair_line, self.pairs))},
                {},
                resamples=self.resamples,
                seed=self.seed,
                groups=self.grouped,
            ),
            "intervals": METHOD,
            "resamples": self.resamples,
            "seed": self.seed,
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """A row a person, `together`, `majority`, a group of a factor, a detector."""
        for name, each in self.people.items():
            yield _row("person", None, name, each)
        yield _row("together", None, None, self.together)
        yield _row("majority", None, None, self.majority)
        for factor, levels in self.factors.items():
            for level, each in levels.items():
                yield _row("together", factor, level, each)
        for name, detector in self.detectors.items():
            yield _row("detector", None, name, detector.figures)

    def tables(self) -> tuple[Table, ...]:
        """People, together, majority and detectors; groups; the questionnaire."""
        named = [*self.people.items()]
        if len(self.people) > 1:
            named += [("together", self.together), ("majority", self.majority)]
        named += [(name, each.figures) for name, each in self.detectors.items()]
        # People are no rivals, nor is what they come to together; detectors are.
        rivals = tuple(range(len(named) - len(self.detectors), len(named)))
        tables = [_figures_table(named, None, rivals)]
        groups = [
            (f"{factor.replace('_', ' ')}: {level}", each)
            for factor, levels in self.factors.items()
            for level, each in levels.items()
            if each.judged
        ]
        if groups:
            tables.append(_figures_table(groups, "All people together, by edit"))
        if self.questionnaire:
            tables.append(self._questionnaire_table())
        first, *others = tables
        notes = (*first.notes, *(f"{note}." for note in self.notes()))
        return explain_intervals(
            (replace(first, notes=notes), *others), wanted=self.resamples, groups=self.grouped
        )

    def notes(self) -> Iterator[str]:
        """Agreement, and what is in no figure, in words without a full stop."""
        agreement = self.agreement
        if agreement.units:
            alpha = "cannot be told from chance" if agreement.alpha is None else f"{agreement.alpha:.2f}"
            yield f"Krippendorff's α {alpha}, over {counted(agreement.units, 'image')} that several judged"
        if self.ties:
            yield f"{counted(self.ties, 'image')} on which people are split evenly, in no majority"
        if self.together.without_iou:
            what = counted(self.together.without_iou, "judgement")
            yield f"{what} of edits without a mask of their size, in no IoU"
        left = self.left
        for n, what in (
            (left.unknown_judgements, "of images that are not in the pairs, left out"),
            (left.stale, "of images that were replaced since, left out"),
            (left.repeated, "replaced by a later one of the same person"),
        ):
            if n:
                yield f"{counted(n, 'judgement')} {what}"
        if left.unjudged:
            yield f"{counted(left.unjudged, 'image')} could not be shown"
        if left.unseen:
            yield f"{counted(left.unseen, 'image')} without a judgment"
        for name, detector in self.detectors.items():
            if detector.without:
                yield f"{name} says nothing of {counted(detector.without, 'image')} that people judged"
            if detector.unused:
                yield f"{name}: {counted(detector.unused, 'prediction')} of images in no pair, left out"

    def _questionnaire_table(self) -> Table:
        rows: list[tuple[Cell, ...]] = []
        for name, column in self.questionnaire.items():
            test, words = column.association, name.replace("_", " ")
            figures = (test.cramers_v, test.chi2, test.df or None, test.p_value, column.adjusted_p)
            rows.append((words, test.n, "", *figures))
            for level, (right, judged) in column.levels.items():
                share = right / judged if judged else None
                rows.append((f"{words}: {level}", judged, share, "", "", "", "", ""))
        head = (
            *("", "judged", Column("right", unit="%"), Column("Cramér's V", digits=4)),
            *(Column("χ²", digits=2), "df", Column("p", p_value=True), Column("p, Holm", p_value=True)),
        )
        few = f", without {some_of(self.few_answers)}" if self.few_answers else ""
        note = (
            f"People with {self.least_answers} judgements or more{few}; right in percent. Judgements of one "
            "person hang together, so p-values are too small; V says how strong the association is."
        )
        return Table(head, tuple(rows), "Who is right more often", (note,))

    def report(
        self, out: str | os.PathLike[str], *, title: str | None = None, pictures: PicturesMode = "link"
    ) -> Path:
        """Write the page to `out` and return its path: tables, and the images that people get wrong most.

        Full-size `pictures` are linked, or embedded. Raises OSError where it cannot be written.
        """
        from uncanny.eval.edits.people.report import write_people_page

        return write_people_page(self, path_of("out", out), title=title, pictures=pictures)


def _figure_json(figure: Estimate | Share | float | None) -> Any:
    keys = {Share: "value ci=interval counts out_of", Estimate: "value ci=interval"}.get(type(figure))
    return figure if keys is None else json_of(figure, keys)


def _row(who: str, factor: str | None, group: str | None, each: Figures) -> dict[str, Any]:
    low, high = each.accuracy.interval or (None, None)
    known = {"who": who, "factor": factor, "group": group, "accuracy_low": low, "accuracy_high": high}
    return {name: known[name] if name in known else as_json(getattr(each, name)) for name in COLUMNS}


def _pair_line(files: EditFiles) -> list[object]:
    """What figures depend on in an edit; of mask files the content."""
    masks = [mask_identity(each) if isinstance(each, Path) else each for each in files.masks]
    return [files.pair.model_dump(mode="json", exclude={"mask"}), masks]


def _figures_table(
    named: list[tuple[str, Figures]], title: str | None, rivals: tuple[int, ...] = ()
) -> Table:
    timed = any(each.seconds is not None for _, each in named)
    rows = tuple(
        (
            name,
            each.judged,
            *(each.accuracy, each.precision, each.recall, each.f1, each.iou, each.box_iou),
            *((each.seconds,) if timed else ()),
        )
        for name, each in named
    )
    figures = ("accuracy", "precision", "recall", "F1", "IoU", "IoU boxes")
    columns = (
        *("", "judged"),
        *(Column(heading, unit="%", better="higher") for heading in figures),
        *((Column("seconds"),) if timed else ()),
    )
    about = (
        "Percent, in brackets 95 % intervals. An edit is positive; IoU is over edits, 0 where none was seen."
    )
    return Table(columns, rows, title, (about,) if title is None else (), (rivals,))
