"""One record a key in one file: torn, repeated, sorted."""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict

from uncanny.errors import RecordError, RunMismatchError
from uncanny.records.jsonl import is_json
from uncanny.records.record_file import RecordFile


class Row(BaseModel):
    model_config = ConfigDict(extra="allow")

    name: str
    size: int = 0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "rows.jsonl"


def opened(path: Path) -> RecordFile[Row]:
    return RecordFile(path, Row, lambda row: row.name)


def loaded(path: Path) -> tuple[RecordFile[Row], list[Row]]:
    rows = opened(path)
    return rows, list(rows.load())


def test_a_new_file_is_empty(path: Path) -> None:
    rows, found = loaded(path)
    assert (found, len(rows)) == ([], 0)
    assert "a" not in rows
    with pytest.raises(KeyError):
        rows.get("a")
    rows.finish()
    assert path.read_bytes() == b""


def test_what_is_appended_is_read_back_at_once_and_later(path: Path) -> None:
    rows, _ = loaded(path)
    kept = [Row(name=name, size=n) for n, name in enumerate(["b", "ä\n", "a", ""])]
    for row in kept:
        rows.append(row)
    assert [rows.get(row.name) for row in kept] == kept
    rows.close()
    again, found = loaded(path)
    assert found == kept
    assert [again.get(row.name) for row in kept] == kept
    again.close()


def test_a_torn_last_line_is_dropped_and_the_next_record_stands_on_its_own(path: Path) -> None:
    path.write_bytes(b'{"name":"a","size":1}\n{"name":"b","si')
    rows, found = loaded(path)
    assert [row.name for row in found] == ["a"]
    assert "b" not in rows
    rows.append(Row(name="c", size=3))
    rows.close()
    assert path.read_bytes() == b'{"name":"a","size":1}\n{"name":"c","size":3}\n'


@pytest.mark.parametrize(
    "last", [b'{"name":"b","size":2}', b'{"name":"b","size":2} \t', b'{"name":"b","size":2}\n ']
)
def test_a_last_record_that_only_lacks_its_end_stands(path: Path, last: bytes) -> None:
    # An object is closed by its last byte, so nothing of the record can be missing.
    path.write_bytes(b'{"name":"a","size":1}\n' + last)
    rows, found = loaded(path)
    assert [row.name for row in found] == ["a", "b"]
    assert rows.get("b").size == 2
    rows.append(Row(name="c", size=3))
    assert [rows.get(name).size for name in "abc"] == [1, 2, 3]
    rows.finish()
    assert [row.name for row in loaded(path)[1]] == ["a", "b", "c"]


@pytest.mark.parametrize("torn", [b"", b'{"name":"b","si', b'{"name":"b","size":2}', b"\n\n "])
def test_loading_changes_nothing(path: Path, torn: bytes) -> None:
    content = b'{"name":"a","size":1}\n' + torn
    path.write_bytes(content)
    rows, _ = loaded(path)
    rows.close()
    assert path.read_bytes() == content
    path.unlink()
    loaded(path)[0].close()
    assert not path.exists()


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_record_made_with_something_else_is_refused(path: Path, end: bytes) -> None:
    path.write_bytes(b'{"name":"a","model":"x/one"}\n{"name":"b"}\n{"name":"c","model":"x/two"}' + end)
    rows = opened(path)
    rows.made_with = {"model": "x/one", "prompts": "p@1"}
    with pytest.raises(RunMismatchError, match=r"rows.jsonl:3 was made .*model: 'x/two' before, 'x/one' now"):
        list(rows.load())


def test_a_file_that_was_deleted_meanwhile_is_put_back_whole(path: Path) -> None:
    rows, _ = loaded(path)
    rows.append(Row(name="a"))
    path.unlink()
    rows.append(Row(name="b"))
    rows.finish()
    assert [row.name for row in loaded(path)[1]] == ["a", "b"]


@pytest.mark.parametrize(
    ("line", "field"),
    [
        (b'{"size":2}', "name"),
        (b'{"name":"b","size":"large"}', "size"),
        (b"[]", None),
    ],
)
def test_an_invalid_line_within_names_file_line_and_field_and_nothing_is_changed(
    path: Path, line: bytes, field: str | None
) -> None:
    content = b'{"name":"a"}\n\n' + line + b'\n{"name":"c"}\n{"torn'
    path.write_bytes(content)
    rows = opened(path)
    with pytest.raises(RecordError) as caught:
        list(rows.load())
    error = caught.value
    assert (error.path, error.line, error.field) == (path, 3, field)
    assert str(error).startswith(f"{path}:3" + (f", field '{field}': " if field else ": "))
    rows.close()
    assert path.read_bytes() == content


WHOLE = b'{"name":"%s","size":%d}\n'
BROKEN = [
    WHOLE % (b"a", 1) + b'{"name":"b","si' + WHOLE % (b"c", 3) + WHOLE % (b"d", 4),
    b"\0\0\0\0\0\n" + WHOLE % (b"a", 1) + WHOLE % (b"d", 4),
    WHOLE % (b"d", 4) + WHOLE % (b"a", 1) + b'ze":1}\n',
    WHOLE % (b"a", 1) + (WHOLE % (b"d", 4))[:-1] + WHOLE % (b"d", 4) + (WHOLE % (b"d", 4))[:-1],
    WHOLE % (b"a", 1) + WHOLE % (b"d", 4) + b"\0\0\0",
    WHOLE % (b"a", 1) + b"\xff\n" + WHOLE % (b"d", 4) + b'{"torn',
]


@pytest.mark.parametrize("content", BROKEN)
def test_broken_lines_are_set_aside_and_whole_ones_kept(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    rows, found = loaded(path)
    assert {row.name for row in found} == {"a", "d"}
    assert (rows.broken, rows.set_aside_in) == (1, path.with_name("rows.broken.jsonl"))
    assert path.read_bytes() == content  # until it is opened
    rows.open()
    lost = [line for line in content.split(b"\n") if line and not is_json(line) and line != b'{"torn']
    assert rows.set_aside_in.read_bytes() == b"\n".join(lost) + b"\n"
    rows.append(Row(name="b", size=2))
    assert [rows.get(name).size for name in "abd"] == [1, 2, 4]
    rows.finish()
    assert path.read_bytes() == WHOLE % (b"a", 1) + WHOLE % (b"b", 2) + WHOLE % (b"d", 4)
    again, _ = loaded(path)
    assert again.broken == 0
    again.close()


@pytest.mark.parametrize("content", [b"hello\n", b"hello", b"\x89PNG\r\n\x1a\n\0\0", b"a\nb\n{"])
def test_a_file_without_a_record_is_no_file_of_ours_and_stays(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(RecordError, match=r"rows.jsonl:1: must be JSON"):
        loaded(path)
    assert path.read_bytes() == content


def test_of_several_records_with_one_key_the_last_stands(path: Path) -> None:
    path.write_bytes(b'{"name":"a","size":1}\n{"name":"b","size":2}\n{"name":"a","size":3}\n')
    rows, found = loaded(path)
    assert [row.size for row in found] == [1, 2, 3]
    assert (len(rows), rows.get("a").size) == (2, 3)
    rows.append(Row(name="b", size=4))
    assert rows.get("b").size == 4
    rows.finish()
    assert path.read_bytes() == b'{"name":"a","size":3}\n{"name":"b","size":4}\n'


def test_finishing_sorts_by_key_and_keeps_what_it_does_not_know(path: Path) -> None:
    path.write_bytes('{"name":"é","later":[1]}\n\n{"name":"b"}\n{"name":"B"}\n'.encode())
    rows, _ = loaded(path)
    rows.append(Row(name="a/b", size=5))
    rows.finish()
    assert path.read_text(encoding="utf-8").splitlines() == [
        '{"name":"B"}',
        '{"name":"a/b","size":5}',
        '{"name":"b"}',
        '{"name":"é","later":[1]}',
    ]
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_file_in_order_is_not_written_again(path: Path) -> None:
    path.write_bytes(b'{"name":"a"}\n{"name":"b"}\n')
    before = path.stat()
    rows, _ = loaded(path)
    rows.finish()
    after = path.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.slow
def test_memory_grows_by_an_index_entry_a_record_not_by_the_record(path: Path) -> None:
    number, size = 500, 20_000
    filler = "x" * size
    rows, _ = loaded(path)
    gc.collect()
    tracemalloc.start()
    for n in range(number):
        rows.append(Row(name=str(n), size=n, filler=filler))  # type: ignore[call-arg]
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < number * 500 < number * size
    assert rows.get("77").model_extra == {"filler": filler}
    rows.close()


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from pydantic import BaseModel
from uncanny.records.record_file import CallFile
from uncanny.records.record_file import RecordFile

class Row(BaseModel):
    name: str

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path = Path(sys.argv[1])
if sys.argv[2] == "records":
    rows = RecordFile(path, Row, lambda row: row.name)
    list(rows.load())
    write = lambda name: rows.append(Row(name=name))
else:
    calls = CallFile(path, lambda image: True)
    write = lambda name: calls.append(b'{"image":"%s"}\\n' % name.encode())
write("first")
resource.setrlimit(resource.RLIMIT_FSIZE, (40, resource.RLIM_INFINITY))
try:
    write("does not fit " * 10)
except Exception as error:
    print(type(error).__name__, error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
write("second")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits on file sizes")
@pytest.mark.parametrize("kind", ["records", "calls"])
def test_a_disk_that_fills_up_within_a_line_is_an_error_and_leaves_no_half_line(
    path: Path, kind: str
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path), kind],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.startswith("StorageError")
    assert [line.partition(b":")[2] for line in path.read_bytes().splitlines()] == [b'"first"}', b'"second"}']
