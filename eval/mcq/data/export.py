"""A set of items written as the release's flat table, Parquet or CSV, pictures included."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from uncanny.errors import UsageError
from uncanny.eval.common.inputs.table_files import ImageFolder, columns
from uncanny.eval.mcq.data.items import QUESTIONS, Item, ItemSet, Question, Split, TextChoice
from uncanny.eval.mcq.data.load import ItemSource, load
from uncanny.eval.mcq.data.overlay import render_overlay
from uncanny.eval.mcq.data.released_rows import STANDARD_E
from uncanny.extras import pyarrow
from uncanny.images import PixelPolicy
from uncanny.images.file_bytes import read_image_file
from uncanny.parameters import check_needed
from uncanny.records.jsonl import write_atomically

_ROLE: dict[Split, str] = {
    "art_dg": "artifact",
    "art_pg": "artifact",
    "ref_real": "clean_reference",
    "ref_pg": "paired_generated_counterpart",
}
_ROWS_AT_ONCE = 8
_COLUMNS = (
    *("row_id", "image_role", "pair_id", "artifact_type", "image", "q3_overlay_image"),
    *("system_prompt", "answer_form", *(f"{question}_prompt" for question in QUESTIONS)),
    *("q2_options", "q3_boxes", "q4_options", *(f"{question}_answer" for question in QUESTIONS)),
)


def export_table(
    source: ItemSource,
    out: str | os.PathLike[str],
    *,
    root: str | os.PathLike[str] | None = None,
    overlays: bool = True,
) -> Path:
    """Write one row an item, E added to the options, as the suffix of `out` says: `.parquet` or `.csv`.

    `source` and `root` are as in `load`. Parquet embeds the pictures; beside a CSV they are in a folder
    `<stem>_images`. Stored overlays are taken as they are; others are drawn, unless `overlays` is false.
    Columns beyond the release's: `pair_id`, `artifact_type`, `q3_boxes`, `answer_form`. Prompts are whole, so
    they have the options in them; they are null where the set has none of its own. Further keys of an item
    have no column and are left out. Only a few items' pictures are in memory at a time.

    Returns `out`. Raises UsageError for another suffix, for an empty set, or where pyarrow is missing or
    nothing can be written; ImageError for a picture that cannot be read. An earlier file is replaced only by
    a whole one.

    >>> str(uncanny.mcq.export_table(uncanny.mcq.load("scenes")[:3], "scenes.csv"))
    'scenes.csv'
    """
    check_needed(out=out)
    items, path = load(source, root=root), Path(out)
    if not items:
        raise UsageError("There are no items to export", remedy="Give one at least.")
    rows = ((_row(item), _pictures(item, items, overlays)) for item in items)
    kind = path.suffix.lower()
    if kind == ".parquet":
        _write_parquet(rows, path)
    elif kind == ".csv":
        _write_csv(rows, path)
    else:
        raise UsageError(f"{path} has neither the suffix .parquet nor .csv", remedy="Choose one of them.")
    return path


def _row(item: Item) -> dict[str, Any]:
    prompts = item.prompts or {}
    return {
        "row_id": item.id,
        "image_role": _ROLE[item.split],
        "pair_id": item.pair_id,
        "artifact_type": item.artifact_type,
        "system_prompt": item.system,
        "answer_form": item.answer_form if item.prompts else None,
        **{f"{question}_prompt": prompts.get(question) for question in QUESTIONS},
        "q2_options": _options("q2", item.q2),
        "q3_boxes": {key: list(box) for key, box in sorted(item.q3.boxes.items())} if item.q3 else None,
        "q4_options": _options("q4", item.q4),
        **{f"{question}_answer": item.right(question) for question in QUESTIONS},
    }


def _options(question: Question, choice: TextChoice | None) -> dict[str, str] | None:
    if choice is None:
        return None
    last = (choice.model_extra or {}).get("option_e")
    return {**dict(sorted(choice.options.items())), "E": last or STANDARD_E[question]}


_Picture = tuple[str, bytes]


def _pictures(item: Item, items: ItemSet, overlays: bool) -> dict[str, _Picture | None]:
    limit = PixelPolicy().max_file_bytes
    place = items.image_path(item)
    pictures: dict[str, _Picture | None] = {
        "image": (place.name, read_image_file(place, limit)),
        "q3_overlay_image": None,
    }
    stored = items.overlay_path(item)
    if stored is not None:
        pictures["q3_overlay_image"] = (stored.name, read_image_file(stored, limit))
    elif overlays and item.q3 is not None and item.q3.boxes:
        pictures["q3_overlay_image"] = (f"{place.stem}_q3.png", render_overlay(place, item.q3.boxes))
    return pictures


_Rows = Iterator[tuple[dict[str, Any], dict[str, _Picture | None]]]


def _write_parquet(rows: _Rows, path: Path) -> None:
    arrow, parquet = pyarrow("pyarrow"), pyarrow("pyarrow.parquet")
    schema = _schema(arrow)
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with parquet.ParquetWriter(temporary, schema) as writer:
            for batch in _batches(rows):
                writer.write_table(arrow.Table.from_pylist(batch, schema=schema))
        temporary.replace(path)
    except OSError as error:
        raise UsageError.unwritten(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def _schema(arrow: Any) -> Any:
    text = arrow.string()
    picture = arrow.struct([("bytes", arrow.binary()), ("path", text)])
    options = arrow.struct([(letter, text) for letter in "ABCDE"])
    boxes = arrow.struct([(letter, arrow.list_(arrow.float64())) for letter in "ABCD"])
    kinds = {"image": picture, "q3_overlay_image": picture, "q2_options": options, "q4_options": options}
    return arrow.schema([(name, {**kinds, "q3_boxes": boxes}.get(name, text)) for name in _COLUMNS])


def _batches(rows: _Rows) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    for row, pictures in rows:
        cells = {
            column: None if picture is None else {"bytes": picture[1], "path": picture[0]}
            for column, picture in pictures.items()
        }
        batch.append(row | cells)
        if len(batch) == _ROWS_AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


def _write_csv(rows: _Rows, path: Path) -> None:
    folder = ImageFolder(path.parent / f"{path.stem}_images")
    try:
        write_atomically(path, _csv_lines(rows, folder))
    except BaseException as error:
        folder.take_back()
        if isinstance(error, OSError):
            raise UsageError.unwritten(path, error) from error
        raise


def _csv_lines(rows: _Rows, folder: ImageFolder) -> Iterator[bytes]:
    line, writer = io.StringIO(), None
    for row, pictures in rows:
        stored = {column: picture and folder.put(picture[1]) for column, picture in pictures.items()}
        cells = {
            key: json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value
            for key, value in (row | stored).items()
        }
        if writer is None:
            writer = csv.DictWriter(line, list(cells))
            writer.writeheader()
        writer.writerow(cells)
        yield line.getvalue().encode()
        line.seek(0)
        line.truncate()


def exported_before(path: Path) -> bool:
    """Whether `export_table` wrote the file: released tables have fewer columns. Raises UsageError."""
    return columns(path) == frozenset(_COLUMNS)
