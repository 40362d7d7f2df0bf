"""The result of a merge: how the merged run compares with each of its runs alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from uncanny.eval.common.estimates import Share, wilson_share
from uncanny.eval.common.json_fields import JsonFields
from uncanny.eval.common.tables.table import Cell, Column, Table, TableResult
from uncanny.eval.compare.score.match import MatchSettings
from uncanny.eval.merge.data import InputRun, SameImage
from uncanny.eval.merge.findings import MergedFinding
from uncanny.eval.metrics.audit import VISIBLE_BELOW
from uncanny.wording import counted

# Where the confidence of findings comes from: people's verdicts, or the share of runs that have a finding.
Basis = Literal["verdicts", "votes"]


@dataclass(frozen=True, slots=True)
class MergeSettings(JsonFields):
    """How findings were matched; findings of runs below `least_confidence`, 0-1, took no part.

    `similarity` says which measure it was, with all that its scores depend on.
    """

    json_keys: ClassVar = (
        "similarity threshold=match.similarity iou=match.iou balance=match.balance "
        "min_confidence=least_confidence"
    )

    similarity: Mapping[str, Any]
    match: MatchSettings
    least_confidence: float


@dataclass(frozen=True, slots=True)
class MergeRow(JsonFields):
    """One run, alone or merged, over the images it examined.

    `visible` are images with a visible fault. `agreement` is the share of findings, on images that two runs
    or more examined, which two runs or more have. `accepted` is the share of judged findings that people
    accepted, without those they are unsure of. `recall` is the estimated share of true faults that the run
    has, 0-1; None unless it was learned.
    """

    json_keys: ClassVar = "images findings visible agreement accepted recall"

    name: str
    images: int
    findings: int
    visible: Share
    agreement: Share
    accepted: Share
    recall: float | None = None


@dataclass(frozen=True, slots=True, repr=False)
class MergeResult(TableResult, JsonFields):
    """The merged run at `out`, in numbers.

    `runs` are the single runs by name, `merged` all findings of the merged run, and `sure` those of them
    with a confidence of at least `settings.least_confidence`, which pages and scores show by default.
    `images` counts the images of all runs; of these `not_examined` were examined by no run and stay failed.
    `basis` says where confidences come from.
    """

    json_keys: ClassVar = "out images not_examined basis judged runs merged sure settings notices"

    out: Path
    images: int
    not_examined: int
    basis: Basis
    judged: int
    runs: Mapping[str, MergeRow]
    merged: MergeRow
    sure: MergeRow
    settings: MergeSettings
    notices: tuple[str, ...]

    def tables(self) -> tuple[Table, ...]:
        columns: list[str | Column] = [
            "run",
            Column("images", digits=0),
            Column("findings", digits=0),
            Column("visible fault", unit="%"),
            Column("agreement", unit="%"),
            Column("accepted", unit="%"),
        ]
        rows: list[tuple[Cell, ...]] = [
            (each.name, each.images, each.findings, each.visible, each.agreement, each.accepted)
            for each in self._rows
        ]
        if self.basis == "verdicts":
            columns.append(Column("recall", unit="%"))
            rows = [(*row, each.recall) for row, each in zip(rows, self._rows, strict=True)]
        return (Table(tuple(columns), tuple(rows), notes=tuple(self._words()), compared=0),)

    @property
    def _rows(self) -> tuple[MergeRow, ...]:
        return (*self.runs.values(), self.merged, self.sure)

    def _words(self) -> Sequence[str]:
        agreement = "Agreement: findings that two runs or more have, of images that two or more examined."
        how = {
            "verdicts": f"Confidence: learned from verdicts on {counted(self.judged, 'finding')}.",
            "votes": "Confidence: the share of the runs that examined the image which have the finding.",
        }
        return [
            f"Visible fault: images with a finding of realism below {VISIBLE_BELOW}.",
            agreement,
            how[self.basis],
            *(f"Note: {notice}" for notice in self.notices),
            f"Run: {self.out}",
        ]


def run_row(
    run: InputRun,
    images: Sequence[SameImage],
    findings: Sequence[Sequence[MergedFinding]],
    recall: float | None,
) -> MergeRow:
    """A run alone; `findings` are those of the merge, by image."""
    examined = [
        (image[run.name], own)
        for image, own in zip(images, findings, strict=True)
        if run.name in image and image[run.name].examined
    ]
    visible = [any(each.anomaly.severity < VISIBLE_BELOW for each in seen.findings) for seen, _ in examined]
    has = [finding for _, own in examined for finding in own if run.name in finding.members]
    return MergeRow(
        run.name,
        len(examined),
        len(has),
        wilson_share(sum(visible), len(visible)),
        _agreement(has),
        _accepted(has),
        recall,
    )


def merged_row(
    name: str, images: Sequence[SameImage], findings: Sequence[Sequence[MergedFinding]]
) -> MergeRow:
    """The merged run, with the `findings` of each image that are to count."""
    examined = [
        own
        for image, own in zip(images, findings, strict=True)
        if any(seen.examined for seen in image.values())
    ]
    visible = [any(each.severity < VISIBLE_BELOW for each in own) for own in examined]
    every = [finding for own in examined for finding in own]
    return MergeRow(
        name,
        len(examined),
        len(every),
        wilson_share(sum(visible), len(visible)),
        _agreement(every),
        _accepted(every),
    )


def _agreement(findings: Sequence[MergedFinding]) -> Share:
    of_several = [finding for finding in findings if finding.examined_by > 1]
    return wilson_share(sum(len(finding.members) > 1 for finding in of_several), len(of_several))


def _accepted(findings: Sequence[MergedFinding]) -> Share:
    decided = [finding.verdict for finding in findings if finding.verdict in ("accept", "reject")]
    return wilson_share(decided.count("accept"), len(decided))
