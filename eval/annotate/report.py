"""The HTML report of a run: one file that needs nothing else and asks nothing of the network.

The plain figures at the top of the page, as words: what was not measured says so.

What is counted over every image of a run, shown on the page or not."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import orjson
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from uncanny.eval.annotate.report_calls import CallIndex, CallPacker, index_calls, timeline
from uncanny.eval.common.page import Picture, Shot, csp_hash, page_json, percent, pictures, source_text, stamp
from uncanny.eval.common.plots import per_image_histogram, severity_histogram
from uncanny.eval.common.runs import open_run, stream_annotations
from uncanny.records.jsonl import write_atomically
from uncanny.records.run_manifest import RunManifest
from uncanny.schema import Annotation, Status

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
        loader=PackageLoader("uncanny.eval.common", "templates"),
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


def _pretty(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


OUTCOMES = {
    "answered": "answered",
    "unparseable": "unparseable answer",
    "refused": "refused by the model",
    "error": "infrastructure error",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """One number with what it counts; `notes` are further lines."""

    label: str
    value: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Share:
    """One part of a whole; `rate` is 0-1, None when the whole is empty."""

    key: str
    label: str
    count: int
    rate: float | None


def figures(info: RunManifest, tally: Tally, index: CallIndex) -> list[Figure]:
    return [
        _images(info, tally),
        _anomalies(tally),
        _calls(info, tally, index),
        _tokens(info, tally),
        _cost(info, tally),
        _time(info),
    ]


def outcomes(info: RunManifest, index: CallIndex) -> list[Share]:
    """Calls by outcome, kept apart; from `run.json`, else from `calls.jsonl`. Empty when neither has any."""
    counts = dict((info.totals and info.totals.outcomes) or index.outcomes)
    total = sum(counts.values())
    if not total:
        return []
    known = [(key, label, counts.pop(key, 0)) for key, label in OUTCOMES.items()]
    others = [(key, key, count) for key, count in sorted(counts.items())]
    return [Share(key, label, count, count / total) for key, label, count in known + others]


def duration(seconds: float) -> str:
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def dollars(cost: float) -> str:
    return f"${cost:,.2f}" if cost >= 1 or cost == 0 else f"${cost:.2g}" if cost < 0.01 else f"${cost:.3f}"


def _images(info: RunManifest, tally: Tally) -> Figure:
    expected = info.totals.images if info.totals else None
    behind = expected is not None and expected > tally.images
    value = f"{tally.images:,} of {expected:,}" if behind else f"{tally.images:,}"
    notes = [", ".join(f"{count:,} {status}" for status, count in tally.statuses.most_common())]
    if info.totals and info.totals.duplicates:
        notes.append(f"{info.totals.duplicates:,} duplicates")
    return Figure("images recorded" if behind else "images", value, tuple(filter(None, notes)))


def _anomalies(tally: Tally) -> Figure:
    judged = tally.per_image.total()
    if not judged:
        return Figure("anomalies", f"{tally.anomalies:,}", ("no image judged yet",))
    clean = tally.per_image[0]
    return Figure(
        "anomalies",
        f"{tally.anomalies:,}",
        (f"{tally.anomalies / judged:.1f} an image that was judged", f"{clean:,} of {judged:,} without any"),
    )


def _calls(info: RunManifest, tally: Tally, index: CallIndex) -> Figure:
    totals = info.totals
    calls = totals.calls if totals and totals.calls is not None else index.calls or tally.calls
    replayed = totals.replayed if totals and totals.replayed is not None else index.replayed
    notes = (f"{replayed:,} replayed from the answer cache",) if replayed else ()
    return Figure("calls", f"{calls:,}", notes)


def _tokens(info: RunManifest, tally: Tally) -> Figure:
    totals = info.totals
    if totals is not None:
        tokens_in, cached, tokens_out = totals.input_tokens, totals.cached_tokens, totals.output_tokens
    else:
        tokens_in, cached, tokens_out = tally.input_tokens, tally.cached_tokens, tally.output_tokens
    if tokens_in is None and tokens_out is None:
        return Figure("tokens", "not reported")
    into = "input not reported" if tokens_in is None else f"{tokens_in:,} in"
    out = "output not reported" if tokens_out is None else f"{tokens_out:,} out"
    if cached is None or not tokens_in:
        share = "cached share not reported"
    else:
        share = f"{percent(cached / tokens_in)} of input cached"
    return Figure("tokens", f"{(tokens_in or 0) + (tokens_out or 0):,}", (f"{into}, {out}", share))


def _cost(info: RunManifest, tally: Tally) -> Figure:
    if info.totals is not None:
        cost, unpriced = info.totals.cost_usd, 0
    else:
        cost, unpriced = tally.cost_usd, tally.unpriced
    if cost is None:
        return Figure("cost", "not priced", ("no price is known for the model",))
    notes = (f"{dollars(cost / tally.images)} an image",) if tally.images else ()
    if unpriced:
        notes = (f"{unpriced:,} images not priced",)
    return Figure("cost", ("at least " if unpriced else "") + dollars(cost), notes)


def _time(info: RunManifest) -> Figure:
    seconds = info.totals.seconds if info.totals else None
    return Figure("wall time", "not recorded" if seconds is None else duration(seconds))


Number = TypeVar("Number", int, float)
STATUSES: tuple[Status, ...] = ("ok", "partial", "failed", "unreadable")
_ORDER: dict[Status, int] = {"failed": 0, "partial": 1, "unreadable": 2, "ok": 3}


@dataclass(slots=True)
class Tally:
    """Counts over all records.

    `severities` has one key per severity 0-100. `per_image` counts images by number of anomalies, over
    `ok` and `partial` records: the others say nothing about how many there are. `unpriced` is the number
    of records with calls and without a price. Tokens and cost are None until one record reports them.
    """

    statuses: Counter[Status] = field(default_factory=Counter)
    severities: Counter[int] = field(default_factory=Counter)
    per_image: Counter[int] = field(default_factory=Counter)
    names: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    unpriced: int = 0

    @property
    def images(self) -> int:
        return self.statuses.total()

    @property
    def anomalies(self) -> int:
        return self.severities.total()

    def add(self, record: Annotation) -> None:
        self.statuses[record.status] += 1
        if record.status in ("ok", "partial"):
            self.per_image[len(record.anomalies)] += 1
        for anomaly in record.anomalies:
            self.severities[anomaly.severity] += 1
            self.names[anomaly.name.casefold()] += 1
        usage = record.usage
        self.calls += usage.calls
        self.input_tokens = _sum(self.input_tokens, usage.input_tokens)
        self.cached_tokens = _sum(self.cached_tokens, usage.cached_tokens)
        self.output_tokens = _sum(self.output_tokens, usage.output_tokens)
        self.cost_usd = _sum(self.cost_usd, usage.cost_usd)
        self.unpriced += usage.calls > 0 and usage.cost_usd is None


def _sum(so_far: Number | None, more: Number | None) -> Number | None:
    if more is None:
        return so_far
    return more if so_far is None else so_far + more


def rank(record: Annotation) -> tuple[int, int, str]:
    """Sort key of the page: failed, partial, unreadable, then lowest severity; images without any last."""
    worst = min((anomaly.severity for anomaly in record.anomalies), default=101)
    return _ORDER[record.status], worst, record.image


def select(records: Iterable[Annotation], limit: int) -> tuple[list[Annotation], Tally]:
    """Count all `records` and keep the `limit` that rank first, in memory for `limit` records only."""
    tally = Tally()

    def counted() -> Iterator[Annotation]:
        for record in records:
            tally.add(record)
            yield record

    return heapq.nsmallest(limit, counted(), key=rank), tally
