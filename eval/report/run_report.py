"""The HTML report of a run: one file that needs nothing else and asks nothing of the network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from uncanny.eval.report.calls import CallIndex, index_calls, timeline
from uncanny.eval.report.figures import figures, outcomes, percent
from uncanny.eval.report.histogram import per_image_histogram, severity_histogram
from uncanny.eval.report.load import open_run, stream_annotations
from uncanny.eval.report.packed_calls import CallPacker
from uncanny.eval.report.page_json import page_json
from uncanny.eval.report.pictures import Picture, Shot, pictures
from uncanny.eval.report.tally import STATUSES, select
from uncanny.records.jsonl import write_atomically
from uncanny.schema import Annotation

PICTURE_BYTES = 15_000_000
CALL_BYTES = 15_000_000
_SCRIPTS = ("dom.js", "card.js", "timeline.js", "detail.js", "gallery.js")
_TOP_NAMES = 8
_UNFINISHED = {
    "running": "still running, or ended without a word",
    "interrupted": "interrupted, it can be resumed",
    "budget": "stopped by its budget",
    "stopped": "stopped because the model could not be used",
}


def write_report(run: Path, *, max_images: int = 300, out: Path | None = None) -> Path:
    """Write the report of the run folder `run` and return its path, `run/report.html` unless `out` is given.

    Figures and histograms are over all images. Above `max_images` the gallery holds the failed, partial and
    unreadable ones, then those of lowest severity, and the page says how many it leaves out. The file
    appears whole or not at all. Raises `UsageError` when `run` is no run folder, and `RecordError` on an
    invalid line.
    """
    read = open_run(run)
    shown, tally = select(stream_annotations(read.folder.annotations), max_images)
    index = index_calls(read.folder.calls, {record.image for record in shown})
    shots = [Shot(read.picture(record.image), record.sha256 or "") for record in shown]
    seen = pictures(shots, PICTURE_BYTES)
    packer = CallPacker(CALL_BYTES)
    details = _details(shown, seen, index, packer)
    page = (
        _environment()
        .get_template("run.html.j2")
        .render(
            run=read,
            name=run.resolve().name,
            info=read.info,
            tally=tally,
            statuses=[status for status in STATUSES if tally.statuses[status]],
            shown=len(shown),
            index=index,
            packer=packer,
            figures=figures(read.info, tally, index),
            outcomes=outcomes(read.info, index),
            histograms=[severity_histogram(tally.severities), per_image_histogram(tally.per_image)],
            names=tally.names.most_common(_TOP_NAMES),
            data=page_json(_gallery(shown, seen, index)),
            details=[page_json(detail) for detail in details],
            states=_UNFINISHED,
            stamp=stamp,
            made=datetime.now(UTC).isoformat(timespec="seconds"),
        )
    )
    target = out or read.folder.report
    write_atomically(target, [page.encode()])
    return target


def _gallery(shown: Sequence[Annotation], seen: Sequence[Picture], index: CallIndex) -> dict[str, Any]:
    images = []
    for record, picture in zip(shown, seen, strict=True):
        known = record.model_dump(mode="json", include=set(Annotation.model_fields))
        images.append(known | {"thumb": picture.small, "extra": record.model_extra or {}})
    return {"images": images, "calls_present": index.present}


def _details(
    shown: Sequence[Annotation], seen: Sequence[Picture], index: CallIndex, packer: CallPacker
) -> list[dict[str, Any]]:
    """What opening an image needs, in the page's order: failures get the room first."""
    return [
        {"large": picture.large, "packed": packer.pack(timeline(index, record.image))}
        for record, picture in zip(shown, seen, strict=True)
    ]


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("uncanny.eval.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"percent": percent, "pretty": _pretty, "number": lambda value: f"{value:,}"}
    style = source_text(environment, ("run.css",))
    script = source_text(environment, _SCRIPTS)
    environment.globals |= {
        "style": Markup(style),
        "script": Markup(script),
        "style_hash": csp_hash(style),
        "script_hash": csp_hash(script),
    }
    return environment


def source_text(environment: Environment, names: Sequence[str]) -> str:
    assert environment.loader is not None
    source = "\n".join(environment.loader.get_source(environment, name)[0] for name in names)
    # Browsers hash after normalising line ends; a checkout with CRLF would not match its own policy.
    return source.replace("\r\n", "\n")


def csp_hash(source: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()


def _pretty(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def stamp(text: str) -> str:
    """A time as people read it, in UTC to the minute; what is not ISO 8601 stays as it is."""
    try:
        when = datetime.fromisoformat(text)
        return f"{when.astimezone(UTC) if when.tzinfo else when:%Y-%m-%d %H:%M} UTC"
    except (ValueError, OverflowError):
        return text
