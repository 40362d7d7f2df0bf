"""Rows of runs as data frames and data sets, whose columns have a type also where they hold nothing.

What tables of the input said of images (`columns` in records) follows a run's own columns, as
`columns.NAME`, so that a column `model` of a table is not taken for the model that was asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import BaseModel

from uncanny.extras import optional, pyarrow
from uncanny.files import dump_json
from uncanny.schema import columns_of

if TYPE_CHECKING:
    import datasets
    from pandas import DataFrame

CellKind = Literal["text", "whole", "real", "flag", "texts", "wholes", "reals"]
# A table's columns and what their cells hold; any cell may be None, which is what was not measured.
Cells = Mapping[str, CellKind]
Row = dict[str, Any]
FILE: Final[Cells] = {"sha256": "text", "width": "whole", "height": "whole"}
USAGE: Final[Cells] = {
    "calls": "whole",
    "input_tokens": "whole",
    "cached_tokens": "whole",
    "output_tokens": "whole",
    "cost_usd": "real",
}

_PANDAS: Final[Mapping[CellKind, str]] = {
    "text": "string",
    "whole": "Int64",
    "real": "Float64",
    "flag": "boolean",
}
_PREFIX: Final = "columns."
_LARGEST: Final = 2**63 - 1


def table_cells(record: BaseModel) -> Row:
    """What a table of the input said of the input of `record`, by the names of columns here."""
    return {f"{_PREFIX}{name}": value for name, value in columns_of(record).items()}


def to_frame(cells: Cells, rows: Iterable[Mapping[str, Any]]) -> DataFrame:
    """Rows as a pandas data frame. Raises UsageError where pandas is not installed.

    Columns are of pandas' own types that can be without a value, lists are objects.
    """
    pandas = optional("pandas", "frames", "A data frame")
    every, content = _with_table_columns(cells, rows)
    frame: DataFrame = pandas.DataFrame(
        {
            name: pandas.Series([row.get(name) for row in content], dtype=_PANDAS.get(kind, "object"))
            for name, kind in every.items()
        }
    )
    return frame


def to_data_set(cells: Cells, rows: Iterable[Mapping[str, Any]]) -> datasets.Dataset:
    """Rows as a Hugging Face data set. Raises UsageError where `datasets` is not installed."""
    package, arrow = optional("datasets", "datasets", "A data set"), pyarrow("pyarrow")
    text, whole, real = arrow.string(), arrow.int64(), arrow.float64()
    types: Mapping[CellKind, Any] = {
        "text": text,
        "whole": whole,
        "real": real,
        "flag": arrow.bool_(),
        "texts": arrow.list_(text),
        "wholes": arrow.list_(whole),
        "reals": arrow.list_(real),
    }
    every, content = _with_table_columns(cells, rows)
    schema = arrow.schema([(name, types[kind]) for name, kind in every.items()])
    dataset: datasets.Dataset = package.Dataset(arrow.Table.from_pylist(content, schema))
    return dataset


def _with_table_columns(cells: Cells, rows: Iterable[Mapping[str, Any]]) -> tuple[Cells, list[Row]]:
    """All columns, those of tables in the order in which they are met, and the rows with cells to match."""
    content = [dict(row) for row in rows]
    names = dict.fromkeys(name for row in content for name in row if name not in cells)
    tables = {name: _kind([row[name] for row in content if row.get(name) is not None]) for name in names}
    for row in content:
        for name in tables.keys() & row.keys():
            if tables[name] == "text" and row[name] is not None and not isinstance(row[name], str):
                row[name] = dump_json(row[name]).decode()
    return {**cells, **tables}, content


def _kind(values: Iterable[object]) -> CellKind:
    """The narrowest kind that holds all values; text where they are of several sorts."""
    sorts = {None if isinstance(value, int) and abs(value) > _LARGEST else type(value) for value in values}
    if sorts == {bool}:
        return "flag"
    if sorts == {int}:
        return "whole"
    if sorts and sorts <= {int, float}:
        return "real"
    return "text"
