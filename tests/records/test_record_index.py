"""The index of a file of records: what it says is believed while it fits, and else the records are read."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from pydantic import BaseModel

from uncanny.records import record_index
from uncanny.records.record_file import RecordFile

INDEX = "rows.index"


class Row(BaseModel):
    name: str
    value: int = 0


@pytest.fixture(autouse=True)
def _indexes_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_index, "LEAST", 3)


def rows(folder: Path, made_with: str = "one") -> RecordFile[Row]:
    file = RecordFile(folder / "rows.jsonl", Row, lambda row: row.name, lambda row: [row.value])
    file.made_with = {"model": made_with}
    return file


def loaded(folder: Path, file: RecordFile[Row] | None = None) -> tuple[dict[str, int], list[str]]:
    """What the index says by name, and the names of the records that had to be read."""
    file = rows(folder) if file is None else file
    known: dict[str, int] = {}

    def note(key: str, about: list[Any]) -> bool:
        known[key] = about[0]
        return bool(about[0] >= 0)  # others are to be looked at

    read = [row.name for row in file.load(note)]
    for name in file:
        assert file.get(name).name == name
    return known, read


def written(folder: Path, *names: str, finish: bool = True) -> None:
    file = rows(folder)
    list(file.load(lambda *_: True))
    file.open()
    for name in names:
        file.append(Row(name=name, value=ord(name[-1])))
    file.finish() if finish else file.close()


def test_records_are_known_without_being_read(tmp_path: Path) -> None:
    written(tmp_path, "c", "a", "b")
    assert loaded(tmp_path) == ({"a": 97, "b": 98, "c": 99}, [])
    assert [orjson.loads(line)["name"] for line in (tmp_path / "rows.jsonl").open("rb")] == ["a", "b", "c"]
    written(tmp_path, "d", "a")
    assert loaded(tmp_path) == ({"a": 97, "b": 98, "c": 99, "d": 100}, [])


def test_few_records_have_no_index(tmp_path: Path) -> None:
    written(tmp_path, "a", "b")
    assert not (tmp_path / INDEX).exists()
    written(tmp_path, "c", finish=False)
    assert (tmp_path / INDEX).exists()


def test_without_a_use_for_it_there_is_no_index(tmp_path: Path) -> None:
    file = RecordFile(tmp_path / "rows.jsonl", Row, lambda row: row.name)
    list(file.load())
    for name in "abcd":
        file.append(Row(name=name))
    file.finish()
    assert not (tmp_path / INDEX).exists()


def test_of_several_records_with_one_key_the_last_stands(tmp_path: Path) -> None:
    written(tmp_path, "a", "b", "c", finish=False)
    file = rows(tmp_path)
    list(file.load(lambda *_: True))
    file.open()
    file.append(Row(name="a", value=7))
    file.close()
    file = rows(tmp_path)
    assert loaded(tmp_path, file) == ({"a": 7, "b": 98, "c": 99}, [])
    assert file.get("a").value == 7


def test_a_record_that_the_index_does_not_answer_for_is_read(tmp_path: Path) -> None:
    written(tmp_path, "a", "b", "c")
    file = rows(tmp_path)
    list(file.load(lambda *_: True))
    file.open()
    file.append(Row(name="d", value=-1))
    file.finish()
    assert loaded(tmp_path) == ({"a": 97, "b": 98, "c": 99, "d": -1}, ["d"])


def test_records_behind_the_index_are_read_and_entered(tmp_path: Path) -> None:
    """A kill between the record and its entry, or in the middle of either."""
    written(tmp_path, "a", "b", "c", finish=False)
    index = (tmp_path / INDEX).read_bytes()
    for left in (index[:-3], index[: index.rindex(b'["c"')]):
        (tmp_path / INDEX).write_bytes(left)
        assert loaded(tmp_path) == ({"a": 97, "b": 98}, ["c"])
    with (tmp_path / "rows.jsonl").open("ab") as lines:
        lines.write(b'{"name": "d", "val')
    os.utime(tmp_path / INDEX)
    written(tmp_path, "e", finish=False)
    assert loaded(tmp_path) == ({"a": 97, "b": 98, "c": 99, "e": 101}, [])


Change = Callable[[Path], object]


def shifted(folder: Path) -> None:
    """Edited in place, a while later."""
    path = folder / "rows.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"value":98', b'"value":12'))
    os.utime(path, ns=(0, (folder / INDEX).stat().st_mtime_ns + 1))


def replaced(folder: Path) -> None:
    """By an editor, which puts a new file in its place."""
    path = folder / "rows.jsonl"
    other = folder / "other"
    other.write_bytes(path.read_bytes())
    other.replace(path)


def cut(folder: Path) -> None:
    path = folder / "rows.jsonl"
    os.truncate(path, path.stat().st_size // 2)
    os.utime(folder / INDEX)


def garbled(folder: Path) -> None:
    (folder / INDEX).write_bytes(b'{"format":1}\n\xff\xff\n')


@pytest.mark.parametrize("change", [shifted, replaced, garbled])
def test_an_index_that_does_not_fit_is_not_used(change: Change, tmp_path: Path) -> None:
    written(tmp_path, "a", "b", "c")
    change(tmp_path)
    assert loaded(tmp_path) == ({}, ["a", "b", "c"])
    written(tmp_path, "d")
    assert loaded(tmp_path)[1] == []


def test_entries_beyond_the_end_of_the_file_are_not_used(tmp_path: Path) -> None:
    written(tmp_path, "a", "b", "c")
    cut(tmp_path)
    assert loaded(tmp_path) == ({"a": 97}, [])


@pytest.mark.parametrize(
    "entry", [["b", -5, 9, []], ["b", 0, 9, []], [7, 24, 9, []], ["b", 24, "9", []], ["b", 24], {}]
)
def test_what_is_not_an_entry_ends_the_index(entry: Any, tmp_path: Path) -> None:
    written(tmp_path, "a", "b", "c")
    head, first, *_ = (tmp_path / INDEX).read_bytes().splitlines(keepends=True)
    content = orjson.dumps(entry)
    (tmp_path / INDEX).write_bytes(head + first + b"%08x %b\n" % (zlib.crc32(content), content))
    assert loaded(tmp_path) == ({"a": 97}, ["b", "c"])


def test_a_bit_that_is_wrong_anywhere_costs_no_record(tmp_path: Path) -> None:
    written(tmp_path, "a", "b", "c")
    index = (tmp_path / INDEX).read_bytes()
    for place in range(len(index)):
        wrong = bytearray(index)
        wrong[place] ^= 1
        (tmp_path / INDEX).write_bytes(wrong)
        known, read = loaded(tmp_path)
        assert sorted([*known, *read]) == ["a", "b", "c"]
        assert known.items() <= {"a": 97, "b": 98, "c": 99}.items()


def test_records_made_with_something_else_are_read(tmp_path: Path) -> None:
    written(tmp_path, "a", "b", "c")
    assert loaded(tmp_path, rows(tmp_path, "other"))[0] == {}


def test_an_index_that_cannot_be_written_costs_nothing_else(tmp_path: Path) -> None:
    (tmp_path / INDEX).mkdir()
    written(tmp_path, "a", "b", "c")
    assert loaded(tmp_path) == ({}, ["a", "b", "c"])


def test_broken_lines_end_the_index(tmp_path: Path) -> None:
    written(tmp_path, "a", "b", "c", finish=False)
    with (tmp_path / "rows.jsonl").open("ab") as lines:
        lines.write(b'{"name": {"name": "d"}\n')
    os.utime(tmp_path / INDEX)
    file = rows(tmp_path)
    assert list(file.load(lambda *_: True)) == []
    file.open()
    assert not (tmp_path / INDEX).exists()
    file.append(Row(name="e"))
    file.finish()
    assert loaded(tmp_path) == ({}, ["a", "b", "c", "e"])
