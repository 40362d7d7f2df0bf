"""An image's calls as the page carries them: JSON, gzip, base64, unpacked by the browser on opening."""

from __future__ import annotations

import gzip
from base64 import b64encode
from dataclasses import dataclass

import orjson

from uncanny.eval.report.calls import Timeline


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
    data = orjson.dumps({"calls": timeline.calls, "breaks": timeline.breaks, "span": timeline.span})
    return b64encode(gzip.compress(data, compresslevel=4, mtime=0)).decode()
