"""The single values of a table's rows, a column at a time: texts, numbers, flags and times.

A text that many rows share stands in a Parquet file once, so a small file can hold a column that fills the
memory once it is unpacked. A column is therefore kept as Arrow has it, a batch at a time: texts that are too
long for a record become null, and values that rows share stay shared where that takes less memory.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any, Final

import orjson

from uncanny.extras import pyarrow

# What a cell beside a picture may be once it is in a record.
Cell = str | int | float | bool
LONGEST_TEXT: Final = 10_000
"""Characters. A longer text is not a label of an image: it is left out of the records."""
_LARGEST_WHOLE: Final = 2**63 - 1


def plain_cell(value: object) -> Cell | None:
    """A value as a record has it: times and durations as text, decimals as numbers.

    None for what is missing (None, NaN), infinite, a text that is too long, or neither text nor number.
    """
    if isinstance(value, Decimal):
        value = int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int) and not isinstance(value, bool):
        return value if abs(value) <= _LARGEST_WHOLE else str(value)
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, str):
        return value if len(value) <= LONGEST_TEXT else None
    return value if isinstance(value, bool) else None


def features(schema: Any) -> Mapping[str, Mapping[str, Any]]:
    """What `datasets` says of each column in a schema; empty where it says nothing."""
    try:
        content = orjson.loads((schema.metadata or {}).get(b"huggingface", b"{}"))
        columns = content["info"]["features"]
        return {name: each for name, each in columns.items() if isinstance(each, dict)}
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
        return {}


def class_names(schema: Any) -> Mapping[str, list[str]]:
    """What the numbers of a column stand for, where `datasets` has names for them; -1 is none."""
    named = {name: each.get("names") for name, each in features(schema).items()}
    return {name: names for name, names in named.items() if isinstance(names, list) and name in schema.names}


def is_single(kind: Any) -> bool:
    """Whether the values of an Arrow type can be cells: no lists, no structures, no bytes."""
    types = pyarrow("pyarrow.types")
    if types.is_dictionary(kind):
        return is_single(kind.value_type)
    return is_text(kind) or types.is_primitive(kind) or types.is_decimal(kind)


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is one of its types of text."""
    types = pyarrow("pyarrow.types")
    return any(is_kind(kind) for is_kind in (types.is_string, types.is_large_string, types.is_string_view))


class Column:
    """The values of one column, by the number of the row; `bytes` is what it takes in memory."""

    def __init__(self, arrays: Iterable[Any]) -> None:
        self._arrays = tuple(arrays)
        self._starts, self._length, self.bytes = [], 0, 0
        for array in self._arrays:
            self._starts.append(self._length)
            self._length += len(array)
            self.bytes += array.nbytes

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, row: int) -> Any:
        number = bisect_right(self._starts, row) - 1
        return self._arrays[number][row - self._starts[number]].as_py()

    def __iter__(self) -> Iterator[Any]:
        """All values. Those that rows share are one object."""
        for array in self._arrays:
            if not pyarrow("pyarrow.types").is_dictionary(array.type):
                yield from array.to_pylist()
                continue
            values = array.dictionary.to_pylist()
            for place in array.indices.to_pylist():
                yield None if place is None else values[place]


class RowCells:
    """The cells of all rows: `columns` by name, `words` what the numbers of some stand for."""

    def __init__(self, columns: Mapping[str, Column], words: Mapping[str, Sequence[str]]) -> None:
        self.columns, self._words = columns, words

    def row(self, number: int) -> dict[str, Any]:
        """The cells of one row, by its number from 0."""
        cells = {name: column[number] for name, column in self.columns.items()}
        for name, words in self._words.items():
            value = cells.get(name)
            if isinstance(value, int):
                cells[name] = words[value] if 0 <= value < len(words) else None
        return cells


class CellLines(Mapping[str, Mapping[str, Any]]):
    """The cells of rows by what stands in one of their columns; of several with one name the last counts."""

    def __init__(self, cells: RowCells, name: str) -> None:
        self._cells, self._name = cells, name
        names: Iterable[Any] = cells.columns.get(name, ())
        self._rows = {str(each): row for row, each in enumerate(names) if each is not None}

    def __getitem__(self, name: str) -> Mapping[str, Any]:
        cells = self._cells.row(self._rows[name])
        del cells[self._name]
        return cells

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def kept(array: Any) -> Any:
    """An array as it is kept: without texts that are too long, shared where that takes less memory."""
    arrow, types = pyarrow("pyarrow"), pyarrow("pyarrow.types")
    if is_text(array.type):
        return _without_long_texts(array)
    if not types.is_dictionary(array.type) or not is_text(array.type.value_type):
        return array
    compute = pyarrow("pyarrow.compute")
    values = _without_long_texts(array.dictionary)
    unpacked = compute.sum(compute.take(compute.binary_length(values), array.indices)).as_py() or 0
    if unpacked <= values.nbytes:
        return compute.take(values, array.indices)
    return arrow.DictionaryArray.from_arrays(array.indices, values)


def _without_long_texts(array: Any) -> Any:
    arrow, compute = pyarrow("pyarrow"), pyarrow("pyarrow.compute")
    if pyarrow("pyarrow.types").is_string_view(array.type):
        array = array.cast(arrow.large_string())
    lengths = compute.utf8_length(array)
    if (compute.max(lengths).as_py() or 0) <= LONGEST_TEXT:
        return array
    short = compute.if_else(compute.greater(lengths, LONGEST_TEXT), arrow.scalar(None, array.type), array)
    return arrow.array(short.to_pylist(), array.type)  # anew: `short` still has room for the long ones
