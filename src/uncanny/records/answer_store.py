"""The database behind the answer cache: keys and values in SQLite, and nothing else of SQLite.

The folder may have come from somebody else, and the disk may be damaged. So a database is only used if its
schema is ours to the letter (no triggers, no views), SQLite never meets a rollback journal (which could name
any file to be deleted), values carry a checksum, and a database that cannot be read is set aside, with what
is whole in it taken over.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from uncanny.errors import StorageError

NAME = "answers.db"
BUSY_S = 60.0
_BATCH = 1_000
_TABLE = (
    "CREATE TABLE answers (key TEXT NOT NULL PRIMARY KEY, value BLOB NOT NULL, checksum INTEGER NOT NULL)"
)
_SCHEMA = {("table", "answers", _TABLE), ("index", "sqlite_autoindex_answers_1", None)}
_ALL = "SELECT key, value, checksum FROM answers ORDER BY rowid"
_BESIDE = ("-wal", "-shm", "-journal")
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}

Entry = tuple[str, bytes]


class DamagedError(Exception):
    """The database cannot be read, or is none of ours."""


class AnswerStore:
    """An open database. Reads come from one thread at a time, and so do writes, side by side."""

    def __init__(self, folder: Path) -> None:
        """Raises DamagedError, StorageError, OSError."""
        self.path = folder / NAME
        _refuse_journal(self.path)
        self._reading, self._writing = threading.Lock(), threading.Lock()
        with _damage_told_apart():
            self._reader = self._writer = _connect(self.path)
            try:
                self._make_or_check()
                self._writer = _connect(self.path)
            except BaseException:
                self.close()
                raise

    def get(self, key: str) -> bytes | None:
        """Raises DamagedError, StorageError."""
        with self._reading, _damage_told_apart():
            row = self._reader.execute("SELECT value, checksum FROM answers WHERE key = ?", (key,)).fetchone()
        if row is None or not isinstance(row[0], bytes):
            return None
        value: bytes = row[0]
        return value if row[1] == _checksum(key, value) else None

    def put(self, entries: Iterable[Entry]) -> None:
        """All of them or none; a value stands in for an earlier one. Raises DamagedError, StorageError."""
        self._put(
            entries, "ON CONFLICT (key) DO UPDATE SET value = excluded.value, checksum = excluded.checksum"
        )

    def adopt(self, entries: Iterable[Entry]) -> int:
        """Take over what is not there yet, many at a time. Returns how many came."""
        number, source = 0, iter(entries)
        while batch := list(islice(source, _BATCH)):
            number += len(batch)
            self._put(batch, "ON CONFLICT (key) DO NOTHING")
        return number

    def __len__(self) -> int:
        with self._reading, _damage_told_apart():
            (number,) = self._reader.execute("SELECT count(*) FROM answers").fetchone()
        return int(number)

    def copy(self, path: Path) -> None:
        """All that is committed, as one file. Raises DamagedError, StorageError."""
        with self._reading, _damage_told_apart(), contextlib.closing(_connect(path)) as target:
            self._reader.backup(target)

    def close(self) -> None:
        with self._reading, self._writing, contextlib.suppress(sqlite3.Error):
            self._writer.close()
            self._reader.close()

    def _put(self, entries: Iterable[Entry], on_conflict: str) -> None:
        rows = ((key, value, _checksum(key, value)) for key, value in entries)
        with self._writing, _damage_told_apart(), _transaction(self._writer):
            self._writer.executemany(f"INSERT INTO answers VALUES (?, ?, ?) {on_conflict}", rows)

    def _make_or_check(self) -> None:
        if not _schema(self._reader):
            self._reader.execute("PRAGMA journal_mode = WAL")
            with _transaction(self._reader):
                self._reader.execute(_TABLE)
        if (schema := _schema(self._reader)) != _SCHEMA:
            names = sorted(name for _, name, _ in schema - _SCHEMA)
            raise DamagedError(f"it holds something else: {', '.join(names) or 'another table of answers'}")
        self._reader.execute("PRAGMA journal_mode = WAL")


class AnswerReader:
    """The answers of a database that somebody else writes; nothing where it is not there, or damaged."""

    def __init__(self, path: Path) -> None:
        """Changes no file, as far as nobody has it open: so several machines can read it."""
        self._connection: sqlite3.Connection | None = None
        if path.is_file():
            with contextlib.suppress(sqlite3.Error, DamagedError):
                _refuse_journal(path)
                unused = not path.with_name(f"{path.name}-wal").exists()
                connection = _connect(path, read_only=True, unused=unused)
                if _schema(connection) == _SCHEMA:
                    self._connection = connection
                else:
                    connection.close()

    def get(self, key: str) -> bytes | None:
        """None where it is not there, or cannot be read."""
        if self._connection is None:
            return None
        with contextlib.suppress(sqlite3.Error):
            row = self._connection.execute("SELECT * FROM answers WHERE key = ?", (key,)).fetchone()
            return next((value for _, value in _valid([] if row is None else [row])), None)
        return None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()


def set_aside(path: Path) -> Path:
    """Rename a database and the files beside it, and return its new name. Raises OSError."""
    numbers = (number for number in range(1, 1_000_000) if not _damaged(path, number).exists())
    aside = _damaged(path, next(numbers))
    for suffix in _BESIDE:
        beside = path.with_name(path.name + suffix)
        if beside.exists():
            # Under another name than SQLite looks for: a rollback journal is not to be followed.
            mark = ".journal" if suffix == "-journal" else suffix
            beside.rename(aside.with_name(aside.name + mark))
    path.rename(aside)
    return aside


def read_whole(path: Path) -> Iterator[Entry]:
    """What can still be read in a database that is not to be used. Raises OSError."""
    try:
        _refuse_journal(path)
        with contextlib.closing(_connect(path, read_only=True, damaged=True)) as connection:
            if ("table", "answers", _TABLE) not in _schema(connection):
                return
            try:
                yield from _valid(connection.execute(_ALL))
            except sqlite3.DatabaseError:
                # Up to the damage from the front, then up to it from behind.
                yield from _valid(connection.execute(f"{_ALL} DESC"))
    except (sqlite3.DatabaseError, DamagedError):
        return


def _valid(rows: Iterable[tuple[object, object, object]]) -> Iterator[Entry]:
    for key, value, checksum in rows:
        if isinstance(key, str) and isinstance(value, bytes) and checksum == _checksum(key, value):
            yield key, value


def _refuse_journal(path: Path) -> None:
    """A database of ours never has a rollback journal, but for a moment while it is made."""
    journal = path.with_name(f"{path.name}-journal")
    if not journal.exists():
        return
    if path.exists() and path.stat().st_size:
        raise DamagedError("it has a rollback journal")
    journal.unlink()


def _connect(
    path: Path, *, read_only: bool = False, unused: bool = False, damaged: bool = False
) -> sqlite3.Connection:
    """`unused` says that nobody writes to it meanwhile."""
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}{'&immutable=1' * unused}",
        uri=True,
        timeout=BUSY_S,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.text_factory = lambda text: text.decode(errors="replace")
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        if damaged:  # otherwise SQLite reads nothing of a file that was cut off
            connection.execute("PRAGMA writable_schema = ON")
        # With a write-ahead log a power failure may cost the last answers, never the database.
        connection.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        connection.close()
        raise
    return connection


def _schema(connection: sqlite3.Connection) -> set[tuple[str, str, str | None]]:
    return set(connection.execute("SELECT type, name, sql FROM sqlite_master"))


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):  # SQLite may have ended it by itself
            connection.execute("ROLLBACK")
        raise


@contextlib.contextmanager
def _damage_told_apart() -> Iterator[None]:
    """Damage from what may pass, as a full disk."""
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED:
            raise DamagedError(str(error)) from error
        raise StorageError(
            f"The answer cache cannot be written: {error}",
            remedy="Free some disk space and run the same again.",
        ) from error


def _checksum(key: str, value: bytes) -> int:
    return zlib.crc32(value, zlib.crc32(key.encode()))


def _damaged(path: Path, number: int) -> Path:
    return path.with_name(f"damaged-{number}.db")
