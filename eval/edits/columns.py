"""The columns of measured edits, and the files that hold them: JSON Lines, Parquet and CSV."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from uncanny.errors import UsageError
from uncanny.eval.edits.data import EditFiles
from uncanny.extras import pyarrow
from uncanny.images.path_names import display_path
from uncanny.json_values import dump_json
from uncanny.records.jsonl import write_named

# The contract's columns, in order.
FIGURES: Final = (
    "mask_ratio",
    "ssim",
    "mse",
    "post_edit_ratio",
    "largest_component_ratio",
    "largest_centroid_distance",
    "components",
    "clusters",
    "shape",
    "lpips",
    "dreamsim",
    "text_similarity",
)
PRESERVED: Final = (
    "preserved_psnr",
    "preserved_mse",
    "preserved_mae",
    "preserved_ssim",
    "preserved_lpips",
)
# Metrics that have bins: by percentiles, and those of the scene by standard deviations.
BINNED: Final = (
    "mask_ratio",
    "ssim",
    "mse",
    "post_edit_ratio",
    "largest_component_ratio",
    "lpips",
    "dreamsim",
    "text_similarity",
)
SCENE: Final = ("scene_diversity", "scene_complexity")
COLUMNS: Final = ("id", *FIGURES, "bins")
SUFFIXES: Final = (".jsonl", ".parquet", ".csv")


def check_suffix(path: Path) -> None:
    """Raises UsageError for a file whose suffix says no format that is written."""
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(
            f"{path} has none of the suffixes {', '.join(SUFFIXES)}", remedy="Choose one of these formats."
        )


def write_rows(records: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write records as the suffix says. Raises UsageError without pyarrow, OSError."""
    if path.suffix.lower() == ".jsonl":
        write_named(path, (dump_json(record) + b"\n" for record in records))
        return
    columns = list(dict.fromkeys(key for record in records for key in record))
    if path.suffix.lower() == ".csv":
        write_named(path, _csv_lines(records, columns))
        return
    arrow, parquet = pyarrow("pyarrow"), pyarrow("pyarrow.parquet")
    table = arrow.table({column: _arrow_column(arrow, column, records) for column in columns})
    buffer = io.BytesIO()
    parquet.write_table(table, buffer)
    write_named(path, [buffer.getvalue()])


def _arrow_column(arrow: Any, column: str, records: Sequence[Mapping[str, Any]]) -> Any:
    """Typed by our own columns, so that one without a value keeps its type; else as the values are.

    What pairs carry along may be of mixed kinds: it is then JSON, as in CSV.
    """
    values = [record.get(column) for record in records]
    kind = _arrow_type(arrow, column)
    if kind is not None:
        return arrow.array(values, type=kind)
    try:
        return arrow.array(values)
    except (arrow.ArrowException, OverflowError):
        return arrow.array([None if value is None else _cell(value, always=True) for value in values])


def _arrow_type(arrow: Any, column: str) -> Any:
    text = arrow.string()
    if column == "bins":
        return arrow.struct([(name, text) for name in (*BINNED, *SCENE)])
    if column in ("unmeasured", "unmeasured_gates"):
        return arrow.map_(text, text)
    if column in ("notes", "failed_gates"):
        return arrow.list_(text)
    if column in ("id", "shape", "status", "problem"):
        return text
    if column in ("components", "clusters", "width", "height"):
        return arrow.int64()
    if column in ("all_black", "passed"):
        return arrow.bool_()
    return arrow.float64() if column in (*FIGURES, *PRESERVED, *SCENE) else None


def _csv_lines(records: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Iterator[bytes]:
    line = io.StringIO()
    writer = csv.writer(line, lineterminator="\n")
    for row in (columns, *([_cell(record.get(column)) for column in columns] for record in records)):
        writer.writerow(row)
        yield line.getvalue().encode("utf-8", "replace")
        line.seek(0)
        line.truncate()


def _cell(value: object, *, always: bool = False) -> object:
    if isinstance(value, dict | list | tuple) or (always and not isinstance(value, str)):
        return json.dumps(value, ensure_ascii=False)
    return value


def places_of(files: EditFiles, folder: Path | None) -> dict[str, Any]:
    """Where the files are, as a record in `folder` says it."""

    def named(path: Path) -> str:
        place = os.path.abspath(path)  # noqa: PTH100  links stay links
        if folder is not None:
            with contextlib.suppress(ValueError):  # on another drive it stays absolute
                place = os.path.relpath(place, folder)
        return display_path(Path(place))

    masks = [named(mask) if isinstance(mask, Path) else dict(mask) for mask in files.masks]
    places: dict[str, Any] = {"original": named(files.original), "edited": named(files.edited)}
    if masks:
        places["mask"] = masks[0] if len(masks) == 1 else masks
    return places
