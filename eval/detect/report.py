"""What the page of a detection run has beside its annotations: verdicts and, against the truth, scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from uncanny.annotation.report.page import PageScores
from uncanny.eval.common.tables.table import Cell, Table
from uncanny.eval.detect.score import DetectScore
from uncanny.eval.metrics.detection import JUDGED, Judged
from uncanny.schema import Detection

_NO_TRUTH = (
    "There are no scores because the ground truth of these images is not known. Put the images into folders "
    "called real and generated, or give a file with the ground truth when you make the run."
)


def page_scores(
    records: Iterable[Detection], verdicts: Mapping[Judged, int], score: DetectScore | None
) -> PageScores:
    """The tables, and by image whether the verdict is right; without a `score` the verdicts alone."""
    if score is None:
        row: tuple[Cell, ...] = ("images", *(verdicts[judged] for judged in JUDGED))
        taken, out_of = verdicts["generated"], sum(verdicts.values())
        lead = f"{taken:,} of {out_of:,} images are taken for generated." if out_of else ""
        return PageScores("Verdicts", lead, [Table(("", *JUDGED), (row,), notes=(_NO_TRUTH,))])
    sources = score.truth.sources
    right = {
        record.image: record.source == sources[record.image]
        for record in records
        if record.verdict is not None and record.image in sources
    }
    return PageScores("Verdicts against the truth", score.lead(), score.tables(), right)
