"""The HTML report of annotations, those of a run or of a file: one page that asks nothing of the network.

It has a gallery in which each image opens with its anomalies and every call on a timeline, then
distributions, totals, and how the run was made. The script of the page is in `eval/common/templates`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment

from uncanny.annotation.forecast_error import forecast_error
from uncanny.annotation.report.calls import CallPacker, index_calls, timeline
from uncanny.annotation.report.counts import (
    anomalies_lead,
    kind_bars,
    outcomes,
    per_image_histogram,
    run_totals,
    score_histogram,
    select,
    severity_histogram,
)
from uncanny.annotation.report.heat import heat_layers
from uncanny.annotation.report.parts import Finding, entries, findings_of
from uncanny.eval.common.confidence import Sure
from uncanny.eval.common.inputs.runs import check_findings, open_annotations, page_of_run, stream_annotations
from uncanny.eval.common.pages.page import page_environment, stamp, write_rendered
from uncanny.eval.common.pages.pictures import (
    PageViews,
    PicturesMode,
    Shot,
    Shown,
    page_json,
    record_view,
)
from uncanny.eval.common.parameters import MIN_CONFIDENCE, ReportParameters
from uncanny.eval.common.published import other_texts
from uncanny.eval.common.tables.table import Table
from uncanny.files import dump_json
from uncanny.records.calibration import Calibration
from uncanny.schema import STATUSES, Annotation
from uncanny.settings import settings

PICTURE_BYTES = 15_000_000
CALL_BYTES = 15_000_000
_SCRIPTS = ("dom.js", "paging.js", "viewer.js", "card.js", "timeline.js", "detail.js", "gallery.js")
_TOP_NAMES = 8
# Findings of an image that are seen without a click; one more, where there is only one more.
LISTED = 4
_UNFINISHED = {
    "running": "still running, or ended without a word",
    "interrupted": "interrupted, it can be resumed",
    "budget": "stopped by its budget",
    "stopped": "stopped because the model could not be used",
}


@dataclass(frozen=True, slots=True)
class PageScores:
    """What a protocol that makes annotations too adds to their page: a sentence that comes first, its tables,
    and by image whether its verdict is right, where that is known."""

    title: str
    lead: str
    tables: Sequence[Table]
    right: Mapping[str, bool] = field(default_factory=dict)


def page_of(run: Path, parameters: ReportParameters) -> Path:
    """Write the page of a run of `annotate`, or of a file of annotations, as `uncanny.report` does."""
    out = None if parameters.out is None else Path(parameters.out)
    return write_report(
        run,
        max_images=parameters.max_images,
        out=out,
        pictures=parameters.pictures,
        min_confidence=parameters.min_confidence,
    )


def write_report(
    run: Path,
    *,
    max_images: int = 300,
    out: Path | None = None,
    pictures: PicturesMode = "link",
    scores: PageScores | None = None,
    min_confidence: float = MIN_CONFIDENCE,
    calibration: Calibration | None = None,
    note: str = "",
) -> Path:
    """Write the report of a run folder or a file of annotations, and return its path.

    That is `run/report.html`, or beside a file the same name with `.html`, unless `out` is given.

    Findings below `min_confidence`, 0-1, are in no figure, and each image offers its own behind a click.
    Totals and histograms are over all images. Above `max_images` the gallery holds the failed, partial and
    unreadable ones and the least realistic of the others, and the page says how many it leaves out. Full-size
    pictures are linked or embedded, as `pictures` says. With a `calibration` findings get the probability
    that people accept them. A `note`, in plain words, stands above the images. The file appears whole or not
    at all. Raises `UsageError` when `run` is not a run folder or has no findings of a model, and
    `RecordError` on an invalid line. Of a run, the page counts lines that are not JSON, and shows the others.
    """
    read = open_annotations(run)
    check_findings(read.file)
    target = out or page_of_run(run)
    broken: list[int] = []
    # A run sets them aside when it goes on; nobody else looks after a file.
    lines = stream_annotations(read.file, broken.append if read.is_run else None)
    calibrated = map(Sure(calibration=calibration).record, lines)
    records, counts = select(calibrated, max_images, min_confidence)
    index = index_calls(read.calls, {record.image for record in records})
    views = PageViews(target, pictures, copies=PICTURE_BYTES)
    findings = [findings_of(record, min_confidence, LISTED) for record in records]
    of_detector = "detector" in read.info.plan
    shots = [Shot(read.picture(record.image), read.digest(record)) for record in records]
    shown = views.add(
        [
            record_view(
                record.model_copy(update={"anomalies": tuple(each.anomaly for each in found if each.counts)}),
                shot,
                [each.anomaly for each in found if not each.counts],
                parts=[each.part for each in found if each.part],
                n_parts=sum(each.seen and each.part is not None for each in found),
                over=heat_layers(record, shot, read.folder.path) if of_detector else (),
            )
            for record, found, shot in zip(records, findings, shots, strict=True)
        ]
    )
    packer = CallPacker(CALL_BYTES)
    details = [{"packed": packer.pack(timeline(index, record.image))} for record in records]
    return write_rendered(
        _environment(),
        "run.html.j2",
        target,
        run=read,
        name=(settings().run_name or read.folder.path.resolve().name) if read.is_run else read.file.name,
        info=read.info,
        counts=counts,
        other_texts=other_texts(counts.texts if read.info.prompts.id is None else {read.info.prompts.id}),
        statuses=[status for status in STATUSES if counts.statuses[status]],
        shown=len(records),
        broken=len(broken),
        note=note,
        index=index,
        packer=packer,
        of_detector=of_detector,
        totals=run_totals(read.info, counts, index, of_detector=of_detector),
        forecast=forecast_error(read.info),
        outcomes=outcomes(read.info, index),
        histograms=[score_histogram(counts.scores)]
        if of_detector
        else [severity_histogram(counts.severities), per_image_histogram(counts.per_image)],
        kinds=kind_bars(counts.kinds),
        names=[each for each in counts.names.most_common(_TOP_NAMES) if each[1] > 1],
        data=page_json(
            {
                "images": _gallery(records, findings, shown, scores.right if scores else {}),
                "calls_present": index.present,
                "of_detector": of_detector,
                "least": min_confidence,
                "listed": LISTED,
            }
        ),
        page_views=views,
        scores=scores,
        lead=scores.lead if scores else anomalies_lead(counts),
        details=[page_json(detail) for detail in details],
        states=_UNFINISHED,
        version=read.info.uncanny or "",
        stamp=stamp,
    )


def _gallery(
    records: Sequence[Annotation],
    findings: Sequence[Sequence[Finding]],
    shown: Sequence[Shown],
    right: Mapping[str, bool],
) -> list[dict[str, Any]]:
    """What the script shows; an image has `doubtful` findings where some are below the confidence."""
    images = []
    for record, found, view in zip(records, findings, shown, strict=True):
        fields = record.model_dump(mode="json", include=set(Annotation.model_fields) - {"anomalies"})
        fields["anomalies"] = entries(found, counts=True)
        if doubtful := entries(found, counts=False):
            fields["doubtful"] = doubtful
        extra = {"extra": record.model_extra or {}, "right": right.get(record.image)}
        images.append(fields | {"thumbs": view.thumbs, **extra})
    return images


@cache
def _environment() -> Environment:
    pretty = {"pretty": lambda value: dump_json(value, indent=True).decode()}
    return page_environment(("run.css", "viewer.css"), pretty, scripts=_SCRIPTS)
