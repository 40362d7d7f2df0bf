"""Annotations as runs have them, with the findings that go out and what reviewers made of each.

What `uncanny semantic`, `audit` and `compare` read: as truth, for example.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson
from pydantic_core import to_json

from uncanny.errors import RecordError
from uncanny.eval.common.inputs.runs import IMAGES_OF
from uncanny.exports.data import ExportImage, review_fields
from uncanny.exports.returned import Returned, known_object
from uncanny.exports.writer import FormatWriter
from uncanny.records.jsonl import read_records
from uncanny.records.reviews import quadruple_sha256
from uncanny.schema import Annotation

# They number findings that are not all there any more; the form `agents` has what agents said.
_OF_THE_RUN = ("candidates", "regions", "boxes", "cut_objects", "left_out", "file_stamp", "pixels", IMAGES_OF)


class JsonlWriter(FormatWriter):
    """A line an image. Paths of images start at the file."""

    def start(self) -> None:
        self._file = self.open()

    def add(self, image: ExportImage) -> None:
        self._file.write(json_line(annotation_fields(image, self.reference(image))))


def json_line(content: dict[str, Any]) -> bytes:
    """A line of JSON; records may hold further keys with whatever numbers JSON has."""
    return to_json(content, inf_nan_mode="null") + b"\n"


def annotation_fields(image: ExportImage, reference: str) -> dict[str, Any]:
    """A record with what goes out of it; `image` is `reference` then, and the run's name `run_image`."""
    record = image.record.model_dump(mode="json", exclude=set(_OF_THE_RUN))
    record |= {
        "image": reference,
        **image.identity(),
        "complete": image.complete,
        "anomalies": [
            each.anomaly.model_dump(mode="json")
            | {
                "index": each.index,
                "text_sha256": quadruple_sha256(each.anomaly),
                "review": review_fields(each),
            }
            for each in image.anomalies
        ],
    }
    if image.source is not None:
        record["source"] = image.source
    return record


def read(file: Path) -> Iterator[Returned]:
    """Findings of a file of annotations. Raises RecordError, OSError."""
    for record in read_records(file, Annotation):
        name = (record.model_extra or {}).get("run_image", record.image)
        picture = str(name), record.sha256, (record.width, record.height)
        for number, anomaly in enumerate(record.anomalies):
            more = anomaly.model_extra or {}
            decision = known_object(more.get("review")).get("decision")
            where = f"anomaly {number} of {record.image}"
            yield Returned.of(picture, where, more, anomaly.model_dump(), decision=decision)
        if not record.anomalies:
            yield Returned(*picture, record.image)


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
        content |= {key: more[key] for key in ("candidates", "regions", "cut_objects") if key in more}
        self._file.write(json_line(content | {"answers": calls}))

    def _call(self, number: int, line: bytes) -> dict[str, Any]:
        call = orjson.loads(line)
        if not isinstance(call, dict):
            raise RecordError("is not a call", path=self._calls.path, line=number)
        return {name: call[name] for name in _CALL if name in call}
