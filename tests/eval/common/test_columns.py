"""Flat tables as columns: the same from every kind of source, and all that is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from uncanny.errors import UsageError
from uncanny.eval.common.inputs.columns import Columns, read_columns

ROWS: list[dict[str, Any]] = [
    {"image": "a.png", "score": 0.25, "n": 3, "label": "dog"},
    {"image": "b, c.png", "score": None, "n": 4, "label": None},
]


def written(folder: Path, kind: str) -> object:
    frame = pandas.DataFrame(ROWS)
    if kind == "rows":
        return ROWS
    if kind == "frame":
        return frame
    path = folder / f"table.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "parquet":
        frame.to_parquet(path)
    else:
        path.write_text("\n\n".join(map(json.dumps, ROWS)) + "\n")
    return path


@pytest.mark.parametrize("kind", ["rows", "frame", "csv", "parquet", "jsonl"])
def test_the_same_from_every_source(kind: str, tmp_path: Path) -> None:
    table = read_columns(written(tmp_path, kind), "rows")
    names = table.names("image")
    assert names == ["a.png", "b, c.png"]
    assert table.strings("label", names) == ["dog", None]
    np.testing.assert_array_equal(table.numbers("score", names, low=0, high=1), [0.25, np.nan])
    np.testing.assert_array_equal(table.numbers("n", names), [3.0, 4.0])
    assert np.isnan(table.numbers("none of that name", names)).all()
    assert table.problems == []
    assert len(table) == 2


def problems(table: Columns) -> list[str]:
    return [str(problem) for problem in table.problems]


def test_cells_that_are_wrong_are_named_by_line_and_field(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    lines = [
        {"image": "a", "score": 1.5, "source": "fake", "label": ["x"]},
        {"image": "a", "score": True},
        {"score": "0.5"},
        {"image": 7, "score": 0.5, "label": 5},
    ]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n{broken\n[1]\n")
    table = read_columns(path, "rows")
    names = table.names("image")
    table.numbers("score", names, low=0, high=1)
    table.checked("source", names, {"generated": 1, "real": 0})
    assert table.strings("label", names) == [None, None, None, "5"]
    assert problems(table) == [
        "line 5: not valid JSON (unexpected character, expected a string key)",
        "line 6: must be an object, not [1]",
        "line 2, item 'a', field image: was there before, at line 1; keep one of them",
        "line 3, field image: is missing",
        "line 4, field image: must be a text, not 7",
        "line 1, item 'a', field score: must be a number from 0 to 1, not 1.5",
        "line 2, item 'a', field score: must be a number from 0 to 1, not True",
        "line 3, item '', field score: must be a number from 0 to 1, not '0.5'",
        "line 1, item 'a', field source: must be generated or real, not 'fake'",
        "line 1, item 'a', field label: must be a text, not ['x']",
    ]


def test_a_csv_that_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('image,score,score\na,0.5,1\nb,nan,1\nc,1\n"d\ne",inf,2\n')
    table = read_columns(path, "rows")
    names = table.names("image")
    assert names == ["a", "b", "d\ne"]
    table.numbers("score", names)
    assert problems(table)[:2] == [
        "line 4: has 2 cells, and the head of the table 3",
        "line 1: columns of the same name: score",
    ]
    path.write_text("image,score\na,nan\nb,inf\nc,x\nd,1e3\n")
    table = read_columns(path, "rows")
    np.testing.assert_array_equal(
        table.numbers("score", table.names("image")), [np.nan, np.nan, np.nan, 1000.0]
    )
    assert [problem.line for problem in table.problems] == [2, 3, 4]
    path.write_bytes(b"image\n\xff\n")
    with pytest.raises(UsageError, match="is not UTF-8"):
        read_columns(path, "rows")


def test_rows_without_lines_are_counted() -> None:
    table = read_columns([{"image": "a"}, {"image": ""}, {"image": "a"}], "rows")
    table.names("image")
    assert problems(table) == [
        "field image: row 2: must be a text, not ''",
        "item 'a', field image: was there before, at row 1; keep one of them",
    ]


def test_nothing_to_read(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("image\n")
    for source, words in (
        (tmp_path / "none.jsonl", "cannot be read"),
        (tmp_path / "e.csv", "contains no rows"),
        ([], "contains no rows"),
        (3, "rows are a CSV, Parquet or JSON Lines file, a data frame"),
    ):
        with pytest.raises(UsageError, match=words):
            read_columns(source, "rows")
    (tmp_path / "p.parquet").write_text("no table")
    with pytest.raises(UsageError, match="cannot be read as Parquet"):
        read_columns(tmp_path / "p.parquet", "rows")


def test_a_column_that_no_row_has_is_one_problem_with_those_there_are() -> None:
    table = read_columns([{"path": "a.png", "prob": 0.5}, {"path": "b.png"}], "predictions")
    assert table.names("image") == ["", ""]
    assert [str(each) for each in table.problems] == [
        "field image: no row has this column; there are: path, prob"
    ]
