"""The calls of the images on the page, out of a `calls.jsonl` that may be larger than memory.

The page carries each image's calls as JSON, gzip, base64; the browser unpacks them when the image is opened.
"""

from __future__ import annotations

import gzip
from base64 import b64encode
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import orjson

from uncanny.files import dump_json, open_file
from uncanny.models.base import MOST_TOKENS
from uncanny.schema import as_count, as_dollars

_TEXTS = ("agent", "object", "model", "served_model", "request_id", "prompt", "outcome", "detail")
_FLAGS = ("sees_image", "replayed")
_COUNTS = ("step", "sample", "attempt", "repair")
_TOKENS = ("input_tokens", "cached_tokens", "output_tokens")
PAUSE_S = 30.0
_LONGEST_S = 1e9

T = TypeVar("T")


@dataclass(slots=True)
class CallIndex:
    """Where in `path` each shown image's calls are, as (line number, byte offset), and counts over all.

    `present` is False when the run has no such file. `skipped` counts lines that could not be read.
    """

    path: Path | None
    present: bool = False
    at: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    outcomes: Counter[str] = field(default_factory=Counter)
    calls: int = 0
    replayed: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Timeline:
    """One image's calls by start. `at` is in seconds on a clock without the pauses in `breaks`.

    Calls without a readable start have `at` None. `span` is the clock's end, 0 when there is nothing on it.
    """

    calls: list[dict[str, Any]]
    breaks: list[dict[str, float]]
    span: float


def index_calls(path: Path | None, images: Collection[str]) -> CallIndex:
    """Go through `path` once and remember where the lines of `images` are; None has no calls."""
    if path is None or not path.is_file():
        return CallIndex(path)
    index = CallIndex(path, present=True)
    offset = 0
    with open_file(path) as lines:
        for number, line in enumerate(lines, 1):
            call = _parsed(line)
            if call is not None:
                index.calls += 1
                index.replayed += call.get("replayed") is True
                index.outcomes[str(call.get("outcome"))] += 1
                image = call.get("image")
                if isinstance(image, str) and image in images:
                    index.at.setdefault(image, []).append((number, offset))
            elif line.strip():
                index.skipped += 1
            offset += len(line)
    return index


def timeline(index: CallIndex, image: str) -> Timeline:
    """Read the calls of one image and lay them out in time."""
    calls = sorted(_read(index, image), key=lambda call: (call["start"] is None, call["start"] or 0.0))
    breaks: list[dict[str, float]] = []
    end: float | None = None
    skipped = span = 0.0
    for call in calls:
        start = call.pop("start")
        if start is None:
            call["at"] = None
            continue
        if end is None:
            end = skipped = start
        elif start - end > PAUSE_S:
            breaks.append({"at": end - skipped, "seconds": start - end})
            skipped += start - end
        call["at"] = round(start - skipped, 3)
        end = max(end, start + (call["latency_s"] or 0.0))
        span = max(span, end - skipped)
    return Timeline(calls, breaks, round(span, 3))


def _read(index: CallIndex, image: str) -> Iterator[dict[str, Any]]:
    entries = index.at.get(image, [])
    if not entries or index.path is None:
        return
    with open_file(index.path) as file:
        for number, offset in entries:
            file.seek(offset)
            call = _parsed(file.readline()) or {}
            row: dict[str, Any] = {key: _of_type(call.get(key), str) for key in _TEXTS}
            row["object"] = row["object"] or _names(call.get("objects"))
            row |= {key: _of_type(call.get(key), bool) for key in _FLAGS}
            row |= {key: as_count(call.get(key)) for key in _COUNTS}
            row |= {"line": number, "kept": True, "start": _seconds(call.get("started"))}
            row |= {key: _text(call.get(key)) for key in ("asked", "answer")}
            row |= {key: as_count(call.get(key), MOST_TOKENS) for key in _TOKENS}
            row |= {
                "cost_usd": as_dollars(call.get("cost_usd")),
                "latency_s": _duration(call.get("latency_s")),
            }
            yield row


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        call = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return call if isinstance(call, dict) else None


def _of_type(value: object, kind: type[T]) -> T | None:
    return value if isinstance(value, kind) else None


def _names(value: object) -> str | None:
    """What a call about several objects was about."""
    names = value if isinstance(value, list) else []
    return ", ".join(name for name in names if isinstance(name, str)) or None


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return dump_json(value, indent=True).decode()


def _duration(value: object) -> float | None:
    """Seconds; None for what no call can have lasted."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < _LONGEST_S else None


def _seconds(started: object) -> float | None:
    try:
        when = datetime.fromisoformat(str(started))
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


@dataclass(slots=True)
class CallPacker:
    """Packs timelines until `budget` bytes are used.

    Prompts repeat each other and the answers before them, so that packing each image shrinks them several
    times. An image whose texts find no room keeps its calls, each with `kept` False, and is counted in
    `without_texts`.
    """

    budget: int
    without_texts: int = 0

    def pack(self, timeline: Timeline) -> str:
        packed = _pack(timeline)
        if len(packed) > self.budget and timeline.calls:
            self.without_texts += 1
            bare = [call | {"asked": None, "answer": None, "kept": False} for call in timeline.calls]
            return _pack(Timeline(bare, timeline.breaks, timeline.span))
        self.budget -= len(packed)
        return packed


def _pack(timeline: Timeline) -> str:
    data = dump_json({"calls": timeline.calls, "breaks": timeline.breaks, "span": timeline.span})
    return b64encode(gzip.compress(data, compresslevel=4, mtime=0)).decode()
