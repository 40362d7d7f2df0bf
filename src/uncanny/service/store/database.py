"""The database: SQLite in the data folder, or PostgreSQL by its address; one schema, kept up by alembic.

SQLite has one service a file (`Database.open` holds a lock) and one writer at a time in it: writing
transactions begin as such, so none fails half way because another one came in between.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from filelock import FileLock, Timeout
from sqlalchemy import URL, Connection, Double, Engine, cast, create_engine, event, func, literal, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as SqlTimeoutError
from sqlalchemy.sql.elements import ColumnElement

from uncanny.errors import UsageError
from uncanny.service.store.tables import metadata
from uncanny.wording import option

FILE: Final = "service.db"
LOCK: Final = "service.lock"
# Any number, the same in all processes, that nothing else on the server locks.
_SCHEMA_LOCK: Final = 0x756E63616E6E79
_BUSY_S: Final = 30
_MIGRATIONS: Final = Path(__file__).parent / "migrations"
# For so many seconds a database that could not be used counts as ailing, whatever it answers since.
AILING_S: Final = 15.0
# What is done in the transaction of something else, so that either both are done or neither.
Also = Callable[[Connection], None]


def nothing(_: Connection) -> None:
    """As `Also`, where there is nothing else to be done."""


@dataclass(slots=True)
class Written:
    """Whether anything may have been written so far: False until the first commit is asked for."""

    maybe: bool = False


# Of one request: what writes for it, in whichever thread, notes it here.
WRITTEN: Final[ContextVar[Written | None]] = ContextVar("written", default=None)


class Database:
    """Connections for reading and writing. Safe to use from threads; close it in the end."""

    def __init__(self, url: URL, lock: FileLock | None = None) -> None:
        """`open` is how one is made."""
        self.url = url
        self.is_sqlite = url.get_backend_name() == "sqlite"
        self._lock = lock
        self._one_writer = threading.Lock() if self.is_sqlite else contextlib.nullcontext()
        self._failed_at: float | None = None
        if self.is_sqlite:
            self.reading = _sqlite(url, "BEGIN")
            self.writing = _sqlite(url, "BEGIN IMMEDIATE")
        else:
            self.reading = self.writing = create_engine(
                url, pool_size=10, max_overflow=30, pool_pre_ping=True
            )

    @classmethod
    def open(cls, data: Path, address: str | None = None, *, beside: bool = False) -> Database:
        """The database at `address` (`postgresql://…`), or the file in `data`, with the newest schema.

        `beside` opens the file even if a service holds it, for a command that changes a few rows. Raises
        UsageError for an address that is not of PostgreSQL, a server that cannot be reached, and, unless
        `beside`, a file that another process holds.
        """
        if address is not None:
            return cls._opened(_checked(address), None)
        url = URL.create("sqlite", database=str(data / FILE))
        try:
            data.mkdir(parents=True, exist_ok=True)
            lock = FileLock(data / LOCK)
            lock.acquire(blocking=False)
        except Timeout as error:
            if beside:
                return cls._opened(url, None)
            raise UsageError(
                f"Another process is using {data / FILE}",
                remedy=f"Stop it, name another {option('data')}, or PostgreSQL as {option('database')}.",
            ) from error
        except OSError as error:
            raise UsageError(f"{data} cannot be used: {error.strerror or error}") from error
        try:
            _make_private(data / FILE)
            return cls._opened(url, lock)
        except BaseException:
            lock.release()
            raise

    @classmethod
    def _opened(cls, url: URL, lock: FileLock | None) -> Database:
        database = cls(url, lock)
        try:
            database.upgrade()
        except DBAPIError as error:
            database._dispose()
            shown = url.render_as_string(hide_password=True)
            reason = str(error.orig).strip().partition("\n")[0]
            if isinstance(error, OperationalError):
                raise UsageError(
                    f"The database {shown} cannot be used: {reason}",
                    remedy="Is it up, and its address right?",
                ) from error
            raise UsageError(f"The database {shown} cannot be used: {reason}") from error
        except BaseException:
            database._dispose()
            raise
        return database

    @contextlib.contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection that sees one state of the database."""
        with self._failures_noted(), self.reading.connect() as connection:
            yield connection

    @contextlib.contextmanager
    def write(self, *, counts: bool = True) -> Iterator[Connection]:
        """A connection in a transaction, which is committed in the end, or undone by an exception.

        With `counts` it is noted in `WRITTEN`; what a request did not ask for does not count.
        """
        with self._failures_noted(), self._one_writer, self.writing.begin() as connection:
            yield connection
            if counts and (written := WRITTEN.get()) is not None:
                # Of a commit that breaks off nobody knows whether it was made.
                written.maybe = True

    @property
    def is_ailing(self) -> bool:
        """Whether it could not be reached or used within the last `AILING_S` seconds, by anybody here."""
        return self._failed_at is not None and time.monotonic() - self._failed_at < AILING_S

    @contextlib.contextmanager
    def _failures_noted(self) -> Iterator[None]:
        try:
            yield
        except (OperationalError, SqlTimeoutError):
            self._failed_at = time.monotonic()
            raise

    def now(self) -> ColumnElement[float]:
        """The moment, in seconds since the epoch, by the one clock that all processes share."""
        if self.is_sqlite:
            return literal(time.time(), Double)
        return cast(func.extract("epoch", func.clock_timestamp()), Double)

    def upgrade(self) -> None:
        """Make the tables, or bring them up to date; of several processes that do so at once, one does it."""
        from alembic import command

        script = Config()
        script.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
        newest, *known = ScriptDirectory.from_config(script).walk_revisions()
        with self.read() as connection:
            current = MigrationContext.configure(connection).get_current_revision()
        if current == newest.revision:
            return
        if current is not None and current not in {each.revision for each in known}:
            raise UsageError(
                f"The database has version {current}, which this version of uncanny does not know",
                remedy="If a newer version made it, update uncanny. If an unreleased one did, name another "
                f"{option('data')} or {option('database')}.",
            )
        if self.is_sqlite and self._lock is None:
            raise UsageError(
                "The service that uses this database is starting, or is of another version of uncanny",
                remedy="Try again; if that does not help, restart the service with this version.",
            )
        with self.write() as connection:
            if not self.is_sqlite:
                connection.execute(func.pg_advisory_xact_lock(_SCHEMA_LOCK).select())
            script.attributes["connection"] = connection
            # Another process may have made the tables meanwhile.
            if MigrationContext.configure(connection).get_current_revision() is None:
                metadata.create_all(connection)
                command.stamp(script, "head")
            else:
                command.upgrade(script, "head")

    def close(self) -> None:
        """Close all connections, and let other processes have the file."""
        self._dispose()
        if self._lock is not None:
            self._lock.release()

    def _dispose(self) -> None:
        self.reading.dispose()
        self.writing.dispose()


def _make_private(file: Path) -> None:
    """Let nobody else read the database: SQLite gives the files beside it the rights of its own.

    Raises UsageError where it belongs to somebody else.
    """
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600))
        for each in (file, *(file.with_name(file.name + end) for end in ("-wal", "-shm"))):
            with contextlib.suppress(FileNotFoundError):
                each.chmod(0o600)
    except OSError as error:
        raise UsageError(
            f"{file} cannot be used: {error.strerror or error}",
            remedy="Make sure that the user who runs the service owns this file.",
        ) from error


def _checked(address: str) -> URL:
    try:
        url = make_url(address)
    except ArgumentError as error:
        raise UsageError(
            f"{option('database')} is not the address of a database",
            remedy="Write postgresql://USER@HOST/NAME.",
        ) from error
    if url.get_backend_name() not in ("postgresql", "postgres"):
        raise UsageError(
            f"{option('database')} names {url.get_backend_name()!r}; only PostgreSQL is supported",
            remedy="Write postgresql://USER@HOST/NAME, or leave it out: SQLite in the data folder.",
        )
    return url.set(drivername="postgresql+psycopg")


def _sqlite(url: URL, begin: str) -> Engine:
    engine = create_engine(url, connect_args={"timeout": _BUSY_S})

    @event.listens_for(engine, "connect")
    def _prepare(connection: Any, _: object) -> None:
        # The driver would begin transactions at a moment of its own choice.
        connection.isolation_level = None
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine
