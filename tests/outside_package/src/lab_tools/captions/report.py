"""The page of a run: its scores, and every caption under its image, those first that do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lab_tools.captions.data import Caption, CaptionCheck
from lab_tools.captions.run import CaptionRun
from lab_tools.captions.score import score
from uncanny.extend import Card, Shot, percent, write_result_page

MOST_SHOWN = 200


def report(captions: Sequence[Caption], run: CaptionRun, out: str | Path | None = None) -> Path:
    """Write the page of a run, `report.html` in its folder unless `out` names another file."""
    result, records = score(captions, run), sorted(run.records, key=_doubtful_first)
    return write_result_page(
        result,
        run.path / "report.html" if out is None else Path(out),
        title="Captions",
        lead=f"{percent(result.fits.value)} of {result.fits.out_of:,} captions describe their image.",
        facts={"Model": result.model or "not recorded", "Captions": f"{result.n + result.missing:,}"},
        cards=[_card(run, record) for record in records[:MOST_SHOWN]],
        n_inputs=len(records),
    )


def _doubtful_first(record: CaptionCheck) -> tuple[int, str]:
    return {False: 0, None: 1, True: 2}[record.fits], record.id


def _card(run: CaptionRun, record: CaptionCheck) -> Card:
    badge = {True: "fits", False: "does not fit", None: record.status}[record.fits]
    why = record.why or " ".join(error.message for error in record.errors)
    # Without a digest no picture: the records of somebody else's run must not show any file of this machine.
    shot = Shot(run.path / record.image, record.sha256 or "")
    return Card(record.caption, shot, badge, {"Why": why})
