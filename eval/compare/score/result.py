"""The result of a comparison: what changed, as values, JSON, CSV, a data frame and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from uncanny.eval.common.alike import Mismatch
from uncanny.eval.common.estimates import NO_INTERVAL, Estimate
from uncanny.eval.common.groups import ImageGroups
from uncanny.eval.common.headline import proven
from uncanny.eval.common.json_fields import JsonFields, json_of
from uncanny.eval.common.matching import Rule
from uncanny.eval.common.parameters import PageParameters, PicturesMode
from uncanny.eval.common.score_json import about
from uncanny.eval.common.tables.table import RowsResult, Table, TableResult
from uncanny.eval.compare.data import ComparedRun, ImagePair, PromptRule
from uncanny.eval.compare.parameters import By
from uncanny.eval.compare.score import tables
from uncanny.eval.compare.score.figures import MEASURED, Cost, Paired
from uncanny.eval.compare.score.match import Match, MatchRule, MatchSettings
from uncanny.eval.compare.score.truth import FoundTruth, TruthFigures
from uncanny.eval.metrics.intervals import LEVEL
from uncanny.parameters import path_of

if TYPE_CHECKING:
    from uncanny.eval.common.gates import GateResult

Change = Literal["found_to_none", "none_to_found", "more", "fewer", "same"]
CHANGES: tuple[Change, ...] = get_args(Change)
FigureName = Literal["mai", "af", "cap", "images_with_anomaly"]
DescriptionName = Literal["words", "reasoning_words", "with_box"]
# Severity runs from 0, completely unreal, to 100, fully realistic.
BANDS = ("0-19", "20-39", "40-59", "60-79", "80-100")
# Of the CSV and the data frame.
COLUMNS = ("run_a", "run_b", "group", "name", "a", "b", "difference", "low", "high")


@dataclass(frozen=True, slots=True)
class Settings(JsonFields):
    """How runs were compared, without findings below `least_confidence`, 0-1.

    `similarity` says which measure it was, with all that its scores depend on.
    """

    json_keys: ClassVar = (
        "by similarity threshold=match.similarity iou=match.iou balance=match.balance "
        "min_confidence=least_confidence resamples seed level"
    )

    by: By
    similarity: Mapping[str, Any]
    match: MatchSettings
    resamples: int
    seed: int
    least_confidence: float = 0.0

    @property
    def level(self) -> float:
        return LEVEL


@dataclass(frozen=True, slots=True)
class Group(JsonFields):
    """Anomalies of one kind or band of severity in both runs; `difference` is B minus A, in anomalies.

    `only_a` and `only_b` are those of them that the other run does not have. `adjusted_p` is corrected by
    Holm for all kinds, or all bands.
    """

    json_keys: ClassVar = "a b only_a only_b difference adjusted_p"

    a: int
    b: int
    only_a: int
    only_b: int
    difference: Estimate
    adjusted_p: float | None = None

    @property
    def differs(self) -> bool:
        """As of `Paired`."""
        return proven(self.adjusted_p, self.difference.excludes_zero) is True


@dataclass(frozen=True, slots=True)
class RepeatFigures(JsonFields):
    """Two runs with the same settings: how much of what was found is found again, as shares in 0–1.

    `found_again` is of both runs together (Dice), `a_again` of what A found, `b_again` of what B found.
    `replayed` answers of each came from the answer cache: those are the same by nature.
    """

    json_keys: ClassVar = "**figures ci=figures replayed"

    found_again: Estimate
    a_again: Estimate
    b_again: Estimate
    replayed: tuple[int | None, int | None]

    @property
    def figures(self) -> dict[str, Estimate]:
        return {"found_again": self.found_again, "a_again": self.a_again, "b_again": self.b_again}


@dataclass(frozen=True, slots=True)
class ImageChange:
    """One image in both runs. `only_a` and `only_b` are places of the anomalies that the other does not have.

    `regression` orders images: the summed implausibility of what B misses or, by prompt, of what is new in
    it. `truth` is None where there is none.
    """

    pair: ImagePair
    change: Change
    matches: tuple[Match, ...]
    only_a: tuple[int, ...]
    only_b: tuple[int, ...]
    regression: float
    truth: FoundTruth | None = None

    @property
    def lost(self) -> int:
        """True anomalies that A finds and B does not, and a false alarm that only B gives."""
        if self.truth is None:
            return 0
        false_alarm = not self.truth.anomalies and bool(self.pair.b.anomalies) and not self.pair.a.anomalies
        return len(self.truth.a - self.truth.b) + false_alarm

    def to_json(self) -> dict[str, Any]:
        pair = self.pair
        content = {
            **json_of(self, "image=pair.a.image image_b=pair.b.image change"),
            **{"a": len(pair.a.anomalies), "b": len(pair.b.anomalies)},
            **json_of(self, "in_common=matches only_a only_b regression"),
        }
        if pair.prompt is not None:
            content["prompt"] = pair.prompt
        if self.truth is not None:
            content["truth"] = {**self.truth.to_json(), "lost": self.lost}
        return content


@dataclass(frozen=True, slots=True)
class Comparison(TableResult):
    """Run B against run A. Every difference is B minus A.

    `descriptions` say how anomalies are described, over the anomalies of a run: mean words of a phenomenon
    and of a reasoning, and the share with a box. `distinct_names` counts different names, of A and of B.

    `pairing` counts image pairs by the rule that made them; `pairs_left_out` are those whose record in either
    run does not count. `images` has the others, worst regressions first. `mismatches` are the ways in which
    the two runs were not made alike, which a comparison is often about; `repeatability` is None unless there
    are none. `groups` are images that belong together, which are resampled so.
    """

    a: ComparedRun
    b: ComparedRun
    pairing: Mapping[Rule | PromptRule, int]
    only_a_images: tuple[str, ...]
    only_b_images: tuple[str, ...]
    pairs_left_out: tuple[ImagePair, ...]
    in_common: int
    only_a: int
    only_b: int
    match_rules: Mapping[MatchRule, int]
    images_changed: Mapping[Change, int]
    by_kind: Mapping[str, Group]
    by_severity: Mapping[str, Group]
    figures: Mapping[FigureName, Paired]
    descriptions: Mapping[DescriptionName, Paired]
    distinct_names: tuple[int, int]
    cost: Cost
    truth: TruthFigures | None
    repeatability: RepeatFigures | None
    mismatches: tuple[Mismatch, ...]
    images: tuple[ImageChange, ...]
    settings: Settings
    notices: tuple[str, ...] = ()
    groups: ImageGroups | None = None

    __repr__ = TableResult.__str__

    @property
    def names(self) -> tuple[str, str]:
        return self.a.name, self.b.name

    @property
    def headline(self) -> str:
        """The comparison in one sentence; it calls nothing a difference whose interval holds zero."""
        return tables.headline(self)

    def to_json(self) -> dict[str, Any]:
        return {
            **json_of(self, "runs=names headline"),
            "images": {
                "both": len(self.images),
                "only_a": len(self.only_a_images),
                "only_b": len(self.only_b_images),
            },
            "left_out": {
                "pairs": len(self.pairs_left_out),
                **json_of(self, "a=a.left_out b=b.left_out"),
            },
            "left_out_below_confidence": [run.sure.left_out for run in (self.a, self.b)],
            "pairing": dict(self.pairing),
            "anomalies": json_of(self, "in_common only_a only_b rules=match_rules"),
            **json_of(self, "changed=images_changed by_kind by_severity figures descriptions distinct_names"),
            **json_of(self, "cost truth repeatability"),
            "made_with": [run.provenance.to_json() for run in (self.a, self.b)],
            **json_of(self, "not_alike=mismatches notices settings per_image=images"),
        }

    def rows(self) -> Iterator[dict[str, object]]:
        """A row a figure, by `COLUMNS`; what was not measured is None."""
        for group, name, a, b, difference in self._figures():
            ends = difference.interval or (None, None)
            row = (self.a.name, self.b.name, group, name, a, b, difference.value, *ends)
            yield dict(zip(COLUMNS, row, strict=True))

    def _figures(self) -> Iterator[tuple[str, str, float | None, float | None, Estimate]]:
        nothing = Estimate(None)
        yield "anomalies", "in_common", self.in_common, self.in_common, nothing
        yield "anomalies", "only_one", self.only_a, self.only_b, nothing
        for change, number in self.images_changed.items():
            yield "images", change, None, number, nothing
        for name, figure in self.figures.items():
            yield "figures", name, figure.a, figure.b, figure.difference
        for group, groups in (("kind", self.by_kind), ("severity", self.by_severity)):
            for name_of_group, each in groups.items():
                yield group, name_of_group, each.a, each.b, each.difference
        for name_of_description, described in self.descriptions.items():
            yield "descriptions", name_of_description, described.a, described.b, described.difference
        for measured in MEASURED:
            yield "cost", measured, *self.cost.sums[measured], nothing
        yield "cost", "seconds_an_image", *self.cost.seconds_an_image, nothing
        for name_of_figure, each_figure in tables.truth_figures(self.truth):
            yield "truth", name_of_figure, each_figure.a, each_figure.b, each_figure.difference

    def tables(self) -> tuple[Table, ...]:
        return tables.comparison_tables(self)


@dataclass(frozen=True, slots=True, repr=False)
class CompareResult(RowsResult):
    """One comparison for each run but the first, which all others are compared with.

    It prints as tables, and shows as such in a notebook.
    """

    columns: ClassVar = COLUMNS

    comparisons: tuple[Comparison, ...]
    settings: Settings

    @property
    def groups(self) -> ImageGroups | None:
        """The images of the first comparison that has such as belong together; None where none has."""
        return next((each.groups for each in self.comparisons if each.groups is not None), None)

    @property
    def has_failed(self) -> bool:
        """Whether any record of any run failed, in whole or in part, and so is in no figure."""
        runs = (run for each in self.comparisons for run in (each.a, each.b))
        return any(run.left_out.not_done for run in runs)

    def to_json(self) -> dict[str, Any]:
        """What `uncanny compare --json` writes: of two runs the comparison, of more `comparisons`."""
        each = [comparison.to_json() for comparison in self.comparisons]
        truth = self.comparisons[0].truth
        runs = [run for comparison in self.comparisons for run in (comparison.a, comparison.b)]
        return {
            **(each[0] if len(each) == 1 else {"comparisons": each}),
            "about": about(
                {} if truth is None else {"truth": truth.digest},
                {run.name: run.provenance.prompts for run in runs},
                resamples=self.settings.resamples,
                seed=self.settings.seed,
                method=f"percentile bootstrap over images or prompts; {NO_INTERVAL}",
                groups=self.groups,
            ),
        }

    def rows(self) -> Iterator[dict[str, object]]:
        for comparison in self.comparisons:
            yield from comparison.rows()

    def tables(self) -> tuple[Table, ...]:
        return tuple(table for comparison in self.comparisons for table in comparison.tables())

    def gate(self, conditions: Sequence[str]) -> GateResult:
        """Judge conditions that must not hold, as `--fail-if` does: `worse`, `af>1.5`, `lower:af>1.2`.

        They are about each further run, against the first. `GateResult.passed` is False where one holds
        and where one could not be measured. Raises UsageError for a condition that cannot be read.
        """
        from uncanny.eval.compare.score.gate import gate_comparisons

        return gate_comparisons(self, conditions)

    def report(
        self,
        out: Path | str,
        *,
        title: str | None = None,
        max_images: int = 300,
        pictures: PicturesMode = "link",
    ) -> Path:
        """Write the page to `out` and return its path.

        Above `max_images` a comparison shows those that differ most, and says so. Full-size pictures are
        linked to, or in the page with `pictures="embed"`. Raises OSError where it cannot be written.
        """
        from uncanny.eval.compare.report.page import write_compare_page

        page = PageParameters(out=out, title=title, pictures=pictures, max_images=max_images)
        return write_compare_page(
            self, path_of("out", out), title=title, max_images=page.max_images, pictures=page.pictures
        )
