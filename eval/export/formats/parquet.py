"""A row an image, with the findings as a list of structures: what data frames, DuckDB and Spark read."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, Final

from uncanny.errors import UsageError
from uncanny.eval.export.data import ExportImage, review_fields
from uncanny.eval.export.writer import ExportJob, FormatWriter

ROWS_AT_ONCE: Final = 1_000


def pyarrow(module: str) -> Any:
    """A module of pyarrow. Raises UsageError where it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(
            "This form needs pyarrow, which is not installed",
            remedy="Run `pip install 'uncanny[parquet]'`, or take jsonl.",
        ) from error


def fields() -> list[Any]:
    """The columns as Arrow knows them."""
    arrow = pyarrow("pyarrow")
    text, whole, flag = arrow.string(), arrow.int32(), arrow.bool_()
    box, texts = arrow.list_(whole), arrow.list_(text)
    anomaly = arrow.struct(
        [
            ("index", whole),
            *((name, text) for name in ("name", "phenomenon", "reasoning")),
            ("severity", whole),
            ("kind", text),
            ("objects", texts),
            ("box", box),
            ("found_by", texts),
            ("decision", text),
            *((name, whole) for name in ("accept", "reject", "unsure")),
            ("edited", flag),
            ("added", flag),
        ]
    )
    item = arrow.struct([("name", text), ("description", text), ("box", box)])
    return [
        arrow.field("image", text),
        arrow.field("run_image", text),
        arrow.field("sha256", text),
        arrow.field("width", whole),
        arrow.field("height", whole),
        *(arrow.field(name, text) for name in ("status", "source", "split")),
        arrow.field("complete", flag),
        arrow.field("anomalies", arrow.list_(anomaly)),
        arrow.field("objects", arrow.list_(item)),
        arrow.field("model", text),
        arrow.field("prompts", text),
    ]


def row(image: ExportImage, reference: str) -> dict[str, Any]:
    """The cells of `fields`."""
    record = image.record
    return {
        "image": reference,
        "run_image": record.image,
        "sha256": record.sha256,
        "width": record.width,
        "height": record.height,
        "status": record.status,
        "source": image.source,
        "split": image.split,
        "complete": image.complete,
        "anomalies": [
            {**each.anomaly.model_dump(mode="json"), "index": each.index, **review_fields(each)}
            for each in image.anomalies
        ],
        "objects": [each.model_dump(mode="json") for each in record.objects],
        "model": record.model,
        "prompts": record.prompts,
    }


class ParquetWriter(FormatWriter):
    """One file, a thousand rows a group."""

    name = "parquet"

    def __init__(self, target: Path, place: Path, job: ExportJob) -> None:
        super().__init__(target, place, job)
        self._schema = pyarrow("pyarrow").schema(fields())
        self._file = pyarrow("pyarrow.parquet").ParquetWriter(target, self._schema, compression="zstd")
        self._rows: list[dict[str, Any]] = []

    def add(self, image: ExportImage) -> None:
        self._rows.append(row(image, self.reference(image)))
        if len(self._rows) >= ROWS_AT_ONCE:
            self._write()

    def _write(self) -> None:
        self._file.write_table(pyarrow("pyarrow").Table.from_pylist(self._rows, self._schema))
        self._rows = []

    def finish(self) -> None:
        if self._rows:
            self._write()
        self._file.close()

    def close(self) -> None:
        self._file.close()
