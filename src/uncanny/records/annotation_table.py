"""Annotations as Parquet: the table beside a run's JSON Lines, and back.

JSON Lines are what a run writes while it goes on, a record a line, so that a kill loses none; the table is
made of them when it ends, in one step. Its columns are the keys of a record, of one schema whatever the
records hold: a column without any value has its type, so that tables of several runs are read as one. Keys
that have no column are in `extra`, as JSON.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal, get_args

import orjson

from uncanny.errors import UsageError
from uncanny.extras import pyarrow
from uncanny.files import dump_json, load_json, open_file
from uncanny.files.beneath import place_of
from uncanny.records.jsonl import line_copy, write_atomically
from uncanny.schema import Annotation, Detection
from uncanny.wording import shown

RecordFormat = Literal["jsonl", "parquet"]
RECORD_FORMATS: Final[tuple[RecordFormat, ...]] = get_args(RecordFormat)
LINES, TABLE = "annotations.jsonl", "annotations.parquet"

_ROWS_AT_ONCE = 1_000
_MARK = b"uncanny.records"
# A record without the key is told from one where it is empty: nothing was looked for.
_MAY_BE_ABSENT = frozenset({"anomalies", "objects", "errors", "usage", "pixels"})
# Of what is inside of these: a structure has all keys in every row.
_NEVER_NULL = frozenset({"objects", "changes", "calls", "sort", "probability"})
_DETECTION = tuple(name for name in Detection.model_fields if name not in Annotation.model_fields)


def check_format(name: object) -> RecordFormat:
    """Raises UsageError for what is no format of records."""
    for each in RECORD_FORMATS:
        if name == each:
            return each
    raise UsageError(f"`format` cannot be {shown(name)}", remedy=f"Give {' or '.join(RECORD_FORMATS)}.")


def schema(record_type: type[Annotation]) -> Any:
    """The columns, in the order of a record's keys, as Arrow knows them. Raises UsageError."""
    arrow = pyarrow("pyarrow")
    text, whole, real, flag = arrow.string(), arrow.int64(), arrow.float64(), arrow.bool_()

    def several(kind: Any) -> Any:
        return arrow.list_(arrow.field("element", kind))  # as Parquet calls it

    texts, box = several(text), several(whole)
    anomaly = arrow.struct(
        [
            *((name, text) for name in ("name", "phenomenon", "reasoning")),
            ("severity", whole),
            ("objects", texts),
            ("box", box),
            ("kind", text),
            ("found_by", texts),
            ("confidence", real),
            ("probability", real),
        ]
    )
    item = arrow.struct([("name", text), ("description", text), ("box", box), ("sort", text)])
    error = arrow.struct(
        [("agent", text), ("step", whole), ("object", text), ("kind", text), ("message", text)]
    )
    tokens = [(f"{each}_tokens", whole) for each in ("input", "cached", "output")]
    usage = arrow.struct([("calls", whole), *tokens, ("cost_usd", real)])
    size = [("width", whole), ("height", whole), ("bytes", whole)]
    sent = arrow.struct([("sha256", text), ("media_type", text), *size])
    pixels = arrow.struct([("format", text), ("bytes", whole), ("changes", texts), ("sent", sent)])
    columns = [
        ("image", text),
        ("sha256", text),
        ("width", whole),
        ("height", whole),
        ("status", text),
        ("anomalies", several(anomaly)),
        ("objects", several(item)),
        ("errors", several(error)),
        ("model", text),
        ("prompts", text),
        ("usage", usage),
        ("pixels", pixels),
        ("file_stamp", text),
    ]
    if issubclass(record_type, Detection):
        columns += [(name, flag if name == "refused" else text) for name in _DETECTION]
    return arrow.schema([*columns, ("extra", text)], metadata={_MARK: b"annotations"})


def write_table(lines: Path, table: Path, record_type: type[Annotation]) -> None:
    """Make the table of a file of JSON Lines, in one step. Raises UsageError, OSError."""
    arrow, parquet = pyarrow("pyarrow"), pyarrow("pyarrow.parquet")
    columns = schema(record_type)
    temporary = table.with_name(f".{table.name}.{os.getpid()}.tmp")
    try:
        with open_file(lines) as file, parquet.ParquetWriter(temporary, columns, compression="zstd") as out:
            rows = (_row(load_json(line), columns) for line in file if line.strip())
            while some := list(islice(rows, _ROWS_AT_ONCE)):
                out.write_table(arrow.Table.from_pylist(some, columns))
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(table)
    except (arrow.ArrowException, orjson.JSONDecodeError) as error:
        raise UsageError(f"{table} cannot be made of {lines.name}: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def is_own_table(table: Path) -> bool:
    """Whether a file is a table made here: one of the same name may have been exported to its place."""
    if not table.is_file():
        return False
    arrow, parquet = pyarrow("pyarrow"), pyarrow("pyarrow.parquet")
    try:
        return is_annotation_table(parquet.read_schema(table))
    except (arrow.ArrowException, OSError):
        return False


def is_annotation_table(schema: Any) -> bool:
    """Whether an Arrow schema is that of a table made here."""
    return _MARK in (schema.metadata or {})


def lines_of(rows: Iterable[Mapping[str, Any]], table: Path) -> Iterator[bytes]:
    """The JSON Lines that the rows of `table` were made of; keys may be in another order.

    Raises UsageError for a row that another program changed, so that it is no record any more.
    """
    for number, row in enumerate(rows, 1):
        record = {
            key: _without_absent(value)
            for key, value in row.items()
            if key != "extra" and (value is not None or key not in _MAY_BE_ABSENT)
        }
        try:
            extra = load_json((row.get("extra") or "{}").encode())
            if not isinstance(extra, dict):
                raise TypeError("column 'extra' contains no JSON object")
            line = dump_json(record | extra)
        except orjson.JSONDecodeError as error:
            raise _no_record(table, number, f"column 'extra' contains no JSON: {error}") from error
        except TypeError as error:
            raise _no_record(table, number, error) from error
        yield line + b"\n"


def _no_record(table: Path, number: int, reason: object) -> UsageError:
    return UsageError(
        f"row {number} of {table} is not a record: {reason}",
        remedy="Put back the table as the run wrote it, or the JSON Lines.",
    )


def _without_absent(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_absent(each)
            for key, each in value.items()
            if each is not None or key not in _NEVER_NULL
        }
    return [_without_absent(each) for each in value] if isinstance(value, list) else value


def restore_lines(run: Path) -> Path:
    """Where a run's JSON Lines are; they are written anew from its table where only that is there.

    In a folder that cannot be written it is a copy, which lasts as long as this process. Raises UsageError.
    """
    lines, table = run / LINES, run / TABLE
    if lines.exists() or not table.is_file():
        return lines
    arrow, parquet = pyarrow("pyarrow"), pyarrow("pyarrow.parquet")
    try:
        with open_file(table) as source, parquet.ParquetFile(place_of(source)) as file:
            if not is_annotation_table(file.schema_arrow):
                return lines
        try:
            write_atomically(lines, _lines_of_table(table))
        except OSError as error:
            if error.errno is None:  # Arrow's, of a table that is damaged: no other folder helps
                raise
            return line_copy(table, lambda copy: copy.writelines(_lines_of_table(table)))
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.errno else str(error).rstrip(".")
        raise UsageError(
            f"{lines} cannot be made of {table.name}: {reason}", remedy="Put back the one or the other."
        ) from error
    return lines


def _lines_of_table(table: Path) -> Iterator[bytes]:
    with open_file(table) as source, pyarrow("pyarrow.parquet").ParquetFile(place_of(source)) as file:
        rows = (row for batch in file.iter_batches(_ROWS_AT_ONCE) for row in batch.to_pylist())
        yield from lines_of(rows, table)


def _row(record: dict[str, Any], columns: Any) -> dict[str, Any]:
    """The cells of a record. What a column has no place for goes into `extra` with all of its key."""
    row: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for key, value in record.items():
        if key != "extra" and key in columns.names and _fits(value, columns.field(key).type):
            row[key] = value
        else:
            extra[key] = value
    return {**row, "extra": dump_json(extra).decode() if extra else None}


def _fits(value: Any, kind: Any) -> bool:
    types = pyarrow("pyarrow.types")
    if isinstance(value, dict):
        known = {each.name: each.type for each in kind} if types.is_struct(kind) else {}
        return all(key in known and _fits(each, known[key]) for key, each in value.items())
    if isinstance(value, list):
        return bool(types.is_list(kind)) and all(_fits(each, kind.value_type) for each in value)
    return True
