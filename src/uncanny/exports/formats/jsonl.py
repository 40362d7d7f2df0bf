"""Annotations as runs have them, with the findings that go out and what reviewers made of each.

What `uncanny semantic`, `audit` and `compare` read: as truth, for example.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from uncanny.exports.data import ExportImage, review_fields
from uncanny.exports.returned import Returned, returned_anomaly
from uncanny.exports.writer import ExportJob, FormatWriter
from uncanny.records.jsonl import read_records
from uncanny.records.reviews import quadruple_sha256
from uncanny.schema import Annotation

# They number findings that are not all there any more; the form `agents` has what agents said.
_OF_THE_RUN = ("candidates", "boxes", "cut_objects", "left_out", "file_stamp", "pixels")


class JsonlWriter(FormatWriter):
    """A line an image. Paths of images start at the file."""

    name = "jsonl"

    def __init__(self, target: Path, place: Path, job: ExportJob) -> None:
        super().__init__(target, place, job)
        self._file = target.open("wb")

    def add(self, image: ExportImage) -> None:
        self._file.write(json_line(annotation_fields(image, self.reference(image))))

    def finish(self) -> None:
        self._file.close()

    close = finish


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
        for number, anomaly in enumerate(record.anomalies):
            more = anomaly.model_extra or {}
            review = more.get("review")
            yield Returned(
                image=str(name),
                sha256=record.sha256,
                size=(record.width, record.height),
                where=f"anomaly {number} of {record.image}",
                index=more.get("index"),
                text_sha256=more.get("text_sha256"),
                decision=review.get("decision") if isinstance(review, dict) else None,
                anomaly=returned_anomaly(anomaly.model_dump(exclude={"index", "text_sha256", "review"})),
            )
        if not record.anomalies:
            yield Returned(str(name), record.sha256, (record.width, record.height), record.image)
