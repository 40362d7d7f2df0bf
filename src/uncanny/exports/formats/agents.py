"""Every answer of every agent, beside the quadruples that came of them: a line an image.

What a run asked and was told on the way, from `calls.jsonl`: to train single agents, or to see how a finding
came about. Calls that failed are among them, with their `outcome`.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from uncanny.errors import RecordError
from uncanny.exports.data import ExportImage
from uncanny.exports.formats.jsonl import annotation_fields, json_line
from uncanny.exports.writer import FormatWriter

_CALL: Final = (
    *("agent", "step", "object", "objects", "sample", "attempt", "repair", "sees_image"),
    *("prompt", "asked", "outcome", "answer", "detail", "model", "served_model"),
)


class AgentsWriter(FormatWriter):
    """`answers` in the order in which they came, `candidates` with what became of each."""

    def start(self) -> None:
        self._calls = self.job.calls()
        self._file = self.open()

    def add(self, image: ExportImage) -> None:
        record = image.record
        more = record.model_extra or {}
        name = record.image if record.image in self._calls else str(more.get("duplicate_of"))
        calls = [self._call(number, line) for number, line in self._calls.get(name, ())]
        if not calls:
            self.note("images without calls on record")
        content = annotation_fields(image, self.reference(image))
        # Of the objects, too, records have all that agents said.
        content |= {key: more[key] for key in ("candidates", "cut_objects") if key in more}
        self._file.write(json_line(content | {"answers": calls}))

    def _call(self, number: int, line: bytes) -> dict[str, Any]:
        call = orjson.loads(line)
        if not isinstance(call, dict):
            raise RecordError("is not a call", path=self._calls.path, line=number)
        return {name: call[name] for name in _CALL if name in call}
