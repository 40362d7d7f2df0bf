"""Scores of people who rated how much edits changed, as values: for programs, as JSON, rows and tables."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from uncanny.eval.common.estimates import Estimate
from uncanny.eval.common.groups import ImageGroups
from uncanny.eval.common.json_fields import JsonFields, as_json, json_of
from uncanny.eval.common.published import RATINGS_CAVEAT, published
from uncanny.eval.common.score_json import about, digest_of
from uncanny.eval.common.tables.table import Cell, Column, RowsResult, Table, explain_intervals
from uncanny.eval.edits.data import EditSet
from uncanny.eval.edits.people.data import CHANGES, Change
from uncanny.parameters import path_of
from uncanny.wording import counted, some_of

if TYPE_CHECKING:
    from uncanny.eval.common.pages.pictures import PicturesMode

KEYS: Final = ("raters", "icc", "metrics")
COLUMNS: Final = ("metric", "n", "coefficient", "value", "low", "high", "published")
PAGE: Final = "ratings.html"
# In the order of table 5 of Semi-Truths.
COEFFICIENTS: Final = ("pearson", "kendall", "spearman")
# What the paper calls our metrics.
_PAPER: Final[Mapping[str, str]] = {"mask_ratio": "area_ratio", "lpips": "lpips", "ssim": "ssim"}
METHOD: Final = "percentile bootstrap over images; the F distribution for ICC"


@dataclass(frozen=True, slots=True)
class Rater(JsonFields):
    """A person who `rated` so many pairs, `given` each answer how often, and `passed` some of the `checks`.

    `counts` says whether these ratings are in the figures. `seconds` is the median, None if not timed.
    """

    rated: int
    passed: int
    checks: int
    counts: bool
    given: Mapping[Change, int]
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Reliable:
    """ICC(2,1), of a `single` rating, and ICC(2,k), of the mean of `k`, over `pairs` with `k` ratings.

    `columns` says what a rater is: one of the `people`, or the first, second, … rating of a pair in the
    `order` of the file, if not the same people rated all pairs. None if no pair has two ratings.
    """

    k: int | None
    pairs: int
    columns: Literal["people", "order"] | None
    single: Estimate
    average: Estimate

    def to_json(self) -> dict[str, Any]:
        estimates = {
            name: json_of(getattr(self, name), "value ci=interval") for name in ("single", "average")
        }
        return {**json_of(self, "k pairs columns"), **estimates}


@dataclass(frozen=True, slots=True)
class Metric:
    """How ratings follow one metric over `n` pairs that have both: coefficients in −1 to 1, and the `medians`
    of the metric, in its unit, by what people say; None without such a pair."""

    n: int
    pearson: Estimate
    kendall: Estimate
    spearman: Estimate
    medians: Mapping[Change, float | None]

    def to_json(self) -> dict[str, Any]:
        estimates = {name: json_of(getattr(self, name), "value ci=interval") for name in COEFFICIENTS}
        return {"n": self.n, **estimates, "medians": dict(self.medians)}


@dataclass(frozen=True, slots=True)
class LeftRatings(JsonFields):
    """What is in no figure: ratings of pairs that are not there (`unknown`), pairs that could not be shown to
    somebody (`unshown`), ratings of pictures that were replaced since (`stale`), earlier ratings of the same
    pair (`repeated`), ratings of people who failed too many attention checks (`inattentive`), and pairs
    without a rating that counts (`unrated`)."""

    unknown: int
    unshown: int
    stale: int
    repeated: int
    inattentive: int
    unrated: int


@dataclass(frozen=True, slots=True, repr=False)
class RatingScores(RowsResult):
    """How much people say has changed: `raters`, their agreement (`icc`), and how that follows `metrics`.

    `ratings` has by pair what each person says who counts, and `changes` the mode, None if there is none.
    `grouped` are the pairs that intervals take as one: edits of one original.
    """

    columns: ClassVar = COLUMNS

    raters: Mapping[str, Rater]
    least_passed: float
    ratings: Mapping[str, Mapping[str, Change]]
    changes: Mapping[str, Change | None]
    icc: Reliable
    metrics: Mapping[str, Metric]
    left: LeftRatings
    pairs: EditSet = field(repr=False, compare=False)
    grouped: ImageGroups | None
    with_published: bool
    resamples: int
    seed: int

    @property
    def inattentive(self) -> tuple[str, ...]:
        """The people who passed too few attention checks."""
        return tuple(name for name, each in self.raters.items() if not each.counts)

    @property
    def ties(self) -> int:
        """Pairs whose ratings have no single mode; they are in no correlation."""
        return sum(change is None for change in self.changes.values())

    def to_json(self) -> dict[str, Any]:
        """What `uncanny edits rate-score --json` writes. None is unmeasured."""
        modes = Counter(self.changes.values())
        return {
            "raters": as_json(self.raters),
            "least_passed": self.least_passed,
            "changes": {**{change: modes[change] for change in CHANGES}, "ties": self.ties},
            "icc": self.icc.to_json(),
            "metrics": as_json(self.metrics),
            "pairs": {
                pair: {"change": self.changes[pair], "ratings": dict(ratings)}
                for pair, ratings in self.ratings.items()
            },
            "left_out": {**self.left.to_json(), "raters": list(self.inattentive)},
            **({"published": _paper_table()} if self.with_published else {}),
            "about": about(
                {"pairs": digest_of(each.pair.model_dump(mode="json") for each in self.pairs)},
                {},
                resamples=self.resamples,
                seed=self.seed,
                method=METHOD,
                groups=self.grouped,
            ),
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """A row a metric and coefficient; `published` is what the paper has there."""
        for name, metric in self.metrics.items():
            for coefficient in COEFFICIENTS:
                figure: Estimate = getattr(metric, coefficient)
                low, high = figure.interval or (None, None)
                yield {
                    **{"metric": name, "n": metric.n, "coefficient": coefficient, "value": figure.value},
                    **{"low": low, "high": high, "published": _published(name, coefficient)},
                }

    def tables(self) -> tuple[Table, ...]:
        """Agreement; people; and, if PAIRS has metrics, the correlations and medians."""
        icc, people = self.icc, self._people_table()
        agreement = Table(
            ("", "pairs", *(Column(head, digits=3) for head in ("ICC(2,1)", f"ICC(2,{icc.k or 'k'})"))),
            (("ratings", icc.pairs, icc.single, icc.average),),
            "Agreement",
            tuple(f"{note}." for note in self.notes()),
        )
        tables = [agreement, people]
        if self.metrics:
            tables += [self._correlation_table(), self._median_table()]
        return explain_intervals(tables, wanted=self.resamples, groups=self.grouped)

    def notes(self) -> Iterator[str]:
        """What people say, and what is in no figure, in words without a full stop."""
        modes = Counter(self.changes.values())
        said = ", ".join(f"{change} {modes[change]:,}" for change in CHANGES)
        ties = f"; {counted(self.ties, 'tie')}, left out of correlations" if self.ties else ""
        yield f"The mode of {counted(len(self.changes), 'pair')}: {said}{ties}"
        if self.icc.columns == "order":
            yield f"Different people rated the pairs: raters are the first {self.icc.k} ratings of each pair"
        if not self.metrics:
            yield "The pairs have no metrics of change. Pass the file that `uncanny edits measure` writes"
        left = self.left
        if self.inattentive:
            yield (
                f"Left out for passing less than {self.least_passed:.0%} of the attention checks: "
                f"{some_of(self.inattentive)}, with {counted(left.inattentive, 'rating')}"
            )
        unchecked = [name for name, each in self.raters.items() if not each.checks]
        if unchecked:
            yield f"Without an attention check: {some_of(unchecked)}"
        for n, what in (
            (left.unknown, "of pairs that are not among these, left out"),
            (left.stale, "of pictures that were replaced since, left out"),
            (left.repeated, "replaced by a later one of the same person"),
        ):
            if n:
                yield f"{counted(n, 'rating')} {what}"
        if left.unshown:
            yield f"{counted(left.unshown, 'pair')} could not be shown"
        if left.unrated:
            yield f"{counted(left.unrated, 'pair')} without a rating that counts"

    def _people_table(self) -> Table:
        rows = tuple(
            (
                name,
                each.rated,
                *(each.given[change] for change in CHANGES),
                f"{each.passed} of {each.checks}" if each.checks else None,
                each.seconds,
                "yes" if each.counts else "no",
            )
            for name, each in self.raters.items()
        )
        return Table(("", "rated", *CHANGES, "checks passed", Column("seconds"), "counts"), rows, "People")

    def _correlation_table(self) -> Table:
        paper = [f"{each.title()}, published" for each in COEFFICIENTS] if self.with_published else []
        figures = [Column(each, digits=2) for each in (*map(str.title, COEFFICIENTS), *paper)]
        rows: list[tuple[Cell, ...]] = []
        for name, metric in self.metrics.items():
            ours = (getattr(metric, each) for each in COEFFICIENTS)
            theirs = (_published(name, each) for each in COEFFICIENTS) if self.with_published else ()
            rows.append((name, metric.n, *ours, *theirs))
        note = (
            "The mode, as 1, 2 and 3, with each metric; in brackets 95 % intervals. SSIM falls with change."
        )
        notes = (note, RATINGS_CAVEAT) if self.with_published else (note,)
        return Table(("", "pairs", *figures), tuple(rows), "Correlation with metrics of change", notes)

    def _median_table(self) -> Table:
        rows = tuple(
            (name, *(metric.medians[change] for change in CHANGES)) for name, metric in self.metrics.items()
        )
        columns = (Column(change, digits=3, significant=True) for change in CHANGES)
        return Table(("", *columns), rows, "Median of each metric by what people say")

    def report(
        self, out: str | os.PathLike[str], *, title: str | None = None, pictures: PicturesMode = "link"
    ) -> Path:
        """Write the page to `out` and return its path: tables, and the pairs that people disagree on most.

        Full-size `pictures` are linked, or embedded. Raises OSError where it cannot be written.
        """
        from uncanny.eval.edits.people.report import write_ratings_page

        return write_ratings_page(self, path_of("out", out), title=title, pictures=pictures)


def _paper_table() -> dict[str, Any]:
    tables = published("edit_scores")
    return {key: tables[key] for key in ("source", "human_correlation")}


def _published(metric: str, coefficient: str) -> float | None:
    if metric not in _PAPER:
        return None
    rows = _paper_table()["human_correlation"]
    value: float = next(row[_PAPER[metric]] for row in rows if row["coefficient"] == coefficient)
    return value
