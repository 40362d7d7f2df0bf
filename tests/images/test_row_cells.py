"""Columns of texts and numbers in tables: read a batch at a time, also of small files that hold gigabytes."""

from __future__ import annotations

import asyncio
import threading
import tracemalloc
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import uncanny
from tests.images.test_row_files import PICTURES, write
from uncanny.errors import UsageError
from uncanny.images import row_readers
from uncanny.images.columns import ImageCells, ImageColumns
from uncanny.images.row_cells import LONGEST_TEXT
from uncanny.images.row_files import row_paths
from uncanny.images.row_readers import opened
from uncanny.runs.task import cells_of

MEGABYTE = 2**20
# What is still held of a pool must not outlive it.
_POOLS: list[Any] = []


def most_taken(work: Callable[[], object]) -> int:
    """Bytes that `work` takes at most, of Arrow and of Python."""
    arrow = import_module("pyarrow")
    usual = arrow.default_memory_pool()
    counting = arrow.proxy_memory_pool(usual)
    _POOLS.append(counting)
    arrow.set_memory_pool(counting)
    tracemalloc.start()
    try:
        work()
        return int(counting.max_memory()) + tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        arrow.set_memory_pool(usual)


@pytest.mark.slow
def test_a_long_text_that_rows_share_is_not_unpacked(tmp_path: Path) -> None:
    rows = 500
    columns = {"file_name": [f"{n}.png" for n in range(rows)], "n": list(range(rows))}
    note = ["x" * 200_000] * rows
    file = write(tmp_path / "metadata.parquet", {**columns, "note": note})
    assert file.stat().st_size < 50_000
    del note
    found: list[ImageCells] = []

    def look() -> None:
        known = ImageColumns([tmp_path])
        assert known.look([tmp_path]) == ()
        found.append(known.of(tmp_path / "17.png"))

    assert most_taken(look) < 5 * MEGABYTE
    assert found[0].values == {"n": 17}


def test_a_text_that_rows_share_is_kept_once(tmp_path: Path) -> None:
    """Also where it is short enough for a record."""
    rows, text = 5000, "é" * LONGEST_TEXT
    file = write(tmp_path / "a.parquet", {"image": [None] * rows, "note": [text] * (rows - 1) + [f"{text}é"]})

    def read() -> None:
        with opened(file) as table:
            cells = table.cells()
            assert cells.row(0)["note"] == text
            assert cells.row(rows - 1)["note"] is None

    assert most_taken(read) < 5 * MEGABYTE


def test_a_long_path_that_rows_share_names_none_of_them(tmp_path: Path) -> None:
    path = "x" * 200_000
    file = write(tmp_path / "a.parquet", {"image": [{**PICTURES[0], "path": path}] * 300})
    assert most_taken(lambda: row_paths(file)) < 5 * MEGABYTE
    assert [each.name for each in row_paths(file)][:2] == ["000000", "000001"]


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_texts_that_are_stored_as_changes_are_read_a_few_at_a_time(
    tmp_path: Path, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = "x" * 9_000
    texts = [f"{start}{n}" for n in range(2000)]
    file = write(
        tmp_path / "a.parquet", {"note": texts}, use_dictionary=False, column_encoding={"note": encoding}
    )
    monkeypatch.setattr(row_readers, "_BATCH_BYTES", 2**13)

    def read() -> None:
        with opened(file) as table:
            assert [table.cells().row(n)["note"] for n in (0, 999, 1999)] == [texts[0], texts[999], texts[-1]]

    most_kept = 2000 * 9_100
    assert most_taken(read) < most_kept + 5 * MEGABYTE


@pytest.mark.parametrize("kind", ["string", "large_string", "string_view", "dictionary"])
def test_texts_of_all_types_are_read(tmp_path: Path, kind: str) -> None:
    pa = import_module("pyarrow")
    texts = pa.array(["a", None, "b" * 20_000, "a"])
    column = texts.dictionary_encode() if kind == "dictionary" else texts.cast(getattr(pa, kind)())
    images = tmp_path / "folder"
    file = write(images / "metadata.parquet", {"file_name": ["0", "1", "2", "3"], "note": column})
    known = ImageColumns([images])
    assert known.look([images]) == ()
    values = [known.of(images / str(n)).values for n in range(4)]
    assert values == [{"note": "a"}, {}, {}, {"note": "a"}]
    assert file.is_file()


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_more_rows_than_bytes_are_refused(tmp_path: Path, suffix: str) -> None:
    pa = import_module("pyarrow")
    table = pa.table({"image": pa.nulls(2_000_000, pa.binary() if suffix == "parquet" else pa.null())})
    file = tmp_path / f"a.{suffix}"
    if suffix == "parquet":
        write(file, {"image": table.column("image")})
    else:
        with pa.ipc.new_file(str(file), table.schema) as target:
            target.write_table(table)
    with pytest.raises(UsageError, match="declares 2,000,000 rows in"):
        row_paths(file)


def test_columns_that_take_too_much_are_said_and_others_can_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = 3_000
    pictures = PICTURES[:2] + [None] * (rows - 2)
    file = write(tmp_path / "a.parquet", {"image": pictures, "same": [7] * rows, "seed": list(range(rows))})
    image, options = file / PICTURES[1]["path"], {"model": "noop", "limit": 2}
    with_all = uncanny.annotate(file, out=tmp_path / "run", **options)  # type: ignore[arg-type]
    assert cells_of(with_all.annotations[1]) == {"row": 1, "columns": {"same": 7, "seed": 1}}

    monkeypatch.setattr(row_readers, "_OPEN", row_readers._OPEN.__class__())
    monkeypatch.setattr(row_readers, "_BOMB_BYTES", 40_000)
    monkeypatch.setattr(row_readers, "_BOMB_RATIO", 0)
    known = ImageColumns()
    (problem,) = known.look([file])
    assert "a.parquet contains more than 40,000 bytes of texts and numbers" in problem
    assert known.of(image) == ImageCells(1)
    again = uncanny.annotate(file, out=tmp_path / "run", **options)  # type: ignore[arg-type]
    assert any("40,000 bytes" in each for each in again.summary.warnings)
    assert cells_of(again.annotations[1]) == {"row": 1, "columns": {"same": 7, "seed": 1}}
    assert ImageColumns(wanted=["seed"]).of(image) == ImageCells(1, {"seed": 1})


def test_they_are_not_read_in_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(
        tmp_path / "a.parquet", {"image": [PICTURES[0], PICTURES[1], PICTURES[0]], "seed": [1, 2, 3]}
    )
    threads: list[threading.Thread] = []
    usual = ImageColumns.of

    def of(self: ImageColumns, image: Path) -> ImageCells:
        threads.append(threading.current_thread())
        return usual(self, image)

    monkeypatch.setattr(ImageColumns, "of", of)

    async def run() -> list[Any]:
        done = await uncanny.annotate_async(file, model="noop", out=tmp_path / "run")
        return [(each.model_extra or {})["columns"] for each in done.annotations]

    assert sorted(each["seed"] for each in asyncio.run(run())) == [1, 2, 3]
    assert threads
    assert threading.main_thread() not in threads
