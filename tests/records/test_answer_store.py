"""The database of answers: what is damaged or foreign in it harms nothing else, and what is whole is kept."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from uncanny.errors import StorageError, UsageError
from uncanny.records.answer_cache import AnswerCache

MANY = 400


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run" / "answers"


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    path = tmp_path / "victim"
    path.write_text("precious")
    return path


def value_of(number: int) -> bytes:
    return b"%d " % number * 200


def put(folder: Path, **entries: bytes) -> None:
    cache = AnswerCache(folder)
    asyncio.run(put_all(cache, entries))
    cache.close()


async def put_all(cache: AnswerCache, entries: dict[str, bytes]) -> None:
    await asyncio.gather(*(cache.put(key, value) for key, value in entries.items()))


def filled(folder: Path) -> Path:
    put(folder, **{f"k{n}": value_of(n) for n in range(MANY)})
    return folder / "answers.db"


class Reopened:
    """A cache opened again, with what it warned of."""

    def __init__(self, folder: Path) -> None:
        self.warnings: list[str] = []
        self.cache = AnswerCache(folder, self.warnings.append)

    def kept(self) -> int:
        return sum(self.cache.get(f"k{n}") == value_of(n) for n in range(MANY))

    def close(self) -> None:
        self.cache.close()


@pytest.fixture
def reopened(folder: Path) -> Iterator[Callable[[], Reopened]]:
    opened: list[Reopened] = []

    def reopen() -> Reopened:
        opened.append(Reopened(folder))
        return opened[-1]

    yield reopen
    for each in opened:
        each.close()


Reopen = Callable[[], Reopened]


def journal_that_names(database: Path, victim: Path) -> None:
    """A rollback journal of several databases: SQLite removes the file it names, when it has rolled back."""
    magic = bytes.fromhex("d9d505f920a163d7")
    page, name = 4096, str(victim).encode()
    header = magic + struct.pack(">IIIII", 0, 1, database.stat().st_size // page, 512, page)
    tail = struct.pack(">I", 0x40000000 // page + 1) + name + struct.pack(">II", len(name), sum(name)) + magic
    Path(f"{database}-journal").write_bytes(header.ljust(512, b"\0") + tail)


def test_a_journal_that_names_a_file_to_be_removed_is_not_followed(
    folder: Path, victim: Path, reopened: Reopen, tmp_path: Path
) -> None:
    database = filled(folder)
    copy = Path(shutil.copy(database, tmp_path / "copy.db"))
    decoy = tmp_path / "decoy"
    decoy.write_text("precious, too")
    journal_that_names(copy, decoy)
    with sqlite3.connect(copy) as connection:
        connection.execute("SELECT count(*) FROM answers")
    connection.close()
    assert not decoy.exists()  # SQLite itself does follow it
    journal_that_names(database, victim)
    again = reopened()
    assert again.kept() == MANY
    assert "rollback journal" in again.warnings[0]
    assert victim.read_text() == "precious"


HOSTILE = [
    "CREATE TRIGGER t AFTER INSERT ON answers BEGIN DELETE FROM answers; END",
    "CREATE VIEW v AS SELECT * FROM answers",
    "CREATE INDEX i ON answers (length(value))",
    "CREATE VIRTUAL TABLE f USING fts5 (a)",
]


@pytest.mark.parametrize("statement", HOSTILE)
def test_a_database_with_more_in_it_is_set_aside_and_its_answers_kept(
    statement: str, folder: Path, reopened: Reopen
) -> None:
    with sqlite3.connect(filled(folder)) as database:
        database.execute(statement)
    database.close()
    again = reopened()
    asyncio.run(put_all(again.cache, {"new": b"v"}))
    assert again.kept() == MANY
    (warning,) = again.warnings
    assert "it holds something else" in warning
    assert f"{MANY} of its answers could be kept" in warning


@pytest.mark.parametrize(
    "statements",
    [
        "CREATE TABLE answers (key TEXT, value BLOB, checksum INTEGER)",
        "CREATE TABLE c (x); CREATE VIEW answers AS WITH RECURSIVE n(i) AS "
        "(SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS key, i AS value, i AS checksum FROM n",
        "CREATE TABLE places (url)",
    ],
)
def test_another_database_in_its_place_is_set_aside_unread(
    statements: str, folder: Path, reopened: Reopen
) -> None:
    folder.mkdir(parents=True)
    with sqlite3.connect(folder / "answers.db") as database:
        database.executescript(statements)
    database.close()
    again = reopened()
    asyncio.run(put_all(again.cache, {"a": b"v"}))
    assert again.cache.get("a") == b"v"
    assert "0 of its answers could be kept" in again.warnings[0]


@pytest.mark.parametrize(
    "content", [b"something else entirely, and long enough to be no header" * 20, b"\0" * 9000]
)
def test_a_file_that_is_no_database_is_set_aside(content: bytes, folder: Path, reopened: Reopen) -> None:
    folder.mkdir(parents=True)
    (folder / "answers.db").write_bytes(content)
    again = reopened()
    assert again.cache.get("a") is None
    again.close()
    assert (folder / "damaged-1.db").read_bytes() == content
    assert f"{folder / 'answers.db'} is damaged" in again.warnings[0]
    assert "may be deleted" in again.warnings[0]


def harm(database: Path, page: int, pages: int = 1) -> None:
    size = 4096
    assert database.stat().st_size > (page + pages) * size
    with database.open("r+b") as file:
        file.seek(page * size)
        file.write(os.urandom(size * pages))


@pytest.mark.parametrize("page", [1, 2, 10, 40, 70])
def test_a_damaged_page_costs_the_answers_on_it_and_no_others(
    page: int, folder: Path, reopened: Reopen
) -> None:
    """Pages 1 and 2 are roots: of the table and of its index."""
    harm(filled(folder), page)
    first = reopened()
    kept = first.kept()
    assert kept >= (MANY * 3 // 4 if page > 1 else 0)
    asyncio.run(put_all(first.cache, {f"k{n}": value_of(n) for n in range(MANY)}))
    first.close()
    again = reopened()
    assert again.kept() == MANY
    assert len(first.warnings) + len(again.warnings) <= 1


def test_what_is_whole_in_a_file_that_was_cut_off_is_kept(folder: Path, reopened: Reopen) -> None:
    database = filled(folder)
    os.truncate(database, database.stat().st_size // 2)
    again = reopened()
    assert MANY // 4 < again.kept() < MANY * 3 // 4
    assert f"{folder / 'answers.db'} is damaged" in again.warnings[0]


def test_an_altered_answer_is_none(folder: Path, reopened: Reopen) -> None:
    with sqlite3.connect(filled(folder)) as database:
        database.execute("UPDATE answers SET value = ? WHERE key = 'k7'", (b"other",))
        database.execute("UPDATE answers SET value = 'text' WHERE key = 'k8'")
    database.close()
    again = reopened()
    assert (again.cache.get("k7"), again.cache.get("k8")) == (None, None)
    assert again.kept() == MANY - 2


HOLD = """
import sys
from pathlib import Path
from uncanny.records.answer_cache import AnswerCache
cache = AnswerCache(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.read()
cache.close()
"""


def test_a_damaged_database_that_others_use_is_left_to_them(folder: Path, reopened: Reopen) -> None:
    database = filled(folder)
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"open\n"
            again = reopened()
            again.cache._store.close()
            harm(database, 3, 60)
            again.cache._store = type(again.cache._store)(folder)
            with pytest.raises(StorageError, match=r"is damaged: .*other processes use it.*may be deleted"):
                again.kept()
        finally:
            holder.communicate(timeout=30)
    assert database.exists()


@pytest.mark.parametrize("name", ["answers.db", "answers.db-wal", "other", "in-use-x.lock"])
def test_links_in_the_folder_are_refused(name: str, folder: Path, victim: Path) -> None:
    folder.mkdir(parents=True)
    (folder / name).symlink_to(victim)
    with pytest.raises(UsageError, match=f"{name} is a link to"):
        AnswerCache(folder)
    assert victim.read_text() == "precious"


def test_a_folder_that_was_deleted_under_way_is_put_back(folder: Path, reopened: Reopen) -> None:
    filled(folder)
    first = reopened()
    shutil.rmtree(folder)
    asyncio.run(put_all(first.cache, {"since": b"v"}))
    assert first.kept() == MANY
    first.close()
    again = reopened()
    assert again.kept() == MANY
    assert again.cache.get("since") == b"v"
    assert first.warnings == again.warnings == []


def test_a_folder_whose_parent_is_gone_too_stays_away(folder: Path, reopened: Reopen) -> None:
    filled(folder)
    first = reopened()
    shutil.rmtree(folder.parent)
    first.close()
    assert not folder.parent.exists()
