"""API tokens and the sessions of browsers: who may do what.

A token is 256 random bits and is shown once; what is kept is its sha256, which is enough for what nobody can
guess. A session is the same for a browser, made by logging in with a token, and ends with it.

SQLite has one process a file, so while the service runs the command line leaves what it wants done in a file
beside it (`TokenChanges`): names, roles and hashes, never a token.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Protocol

import orjson
from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError
from sqlalchemy import (
    Connection,
    Row,
    and_,
    bindparam,
    create_engine,
    delete,
    exists,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.exc import SQLAlchemyError

from uncanny.errors import ConflictError, NotFoundError, UsageError
from uncanny.service.store.database import FILE, Database
from uncanny.service.store.ids import new_id
from uncanny.service.store.tables import sessions as S
from uncanny.service.store.tables import tokens as T

Role = Literal["reader", "reviewer", "operator"]
# Each may do what those before it may.
ROLES: Final[tuple[Role, ...]] = ("reader", "reviewer", "operator")
PREFIX: Final = "unc_"
SESSION_S: Final = 7 * 24 * 3600.0
CHANGES: Final = "tokens.pending"
_SECRET_BYTES: Final = 32
# When a token was last used is written down no more often than this.
_USED_EVERY_S: Final = 60.0
_CLOCKS_DIFFER_S: Final = 60.0
# More than a moment loses when it is written down to the microsecond.
_MOMENT_S: Final = 2e-6

# Asked at each request, so built once.
_ANY: Final = select(exists().where(T.c.id.is_not(None)))
_BY_HASH: Final = select(T).where(T.c.hash == bindparam("hashed"), T.c.revoked_at.is_(None))

_NAME: Final = re.compile(r"[\w.@+-]{1,64}")


@dataclass(frozen=True, slots=True)
class Token:
    """A token as it is listed; the token itself is nowhere."""

    id: str
    name: str
    role: Role
    created_at: datetime
    used_at: datetime | None
    revoked_at: datetime | None


class TokenKeeper(Protocol):
    """What the command line does with tokens."""

    def add(self, name: str, role: Role) -> str: ...
    def revoke(self, name: str) -> None: ...
    def all(self) -> Sequence[Token]: ...


class TokenStore:
    """Tokens and sessions in the database. Safe from threads and processes."""

    def __init__(self, database: Database, changes: Path | None = None) -> None:
        """`changes` is where the command line leaves what it wants done; see `TokenChanges`."""
        self._database = database
        self._changes = None if changes is None else TokenChanges(changes)
        self._any = False
        self._used: dict[str, float] = {}
        self._lock = threading.Lock()

    def add(self, name: str, role: Role) -> str:
        """Make a token; it is returned once and cannot be shown again.

        Raises ConflictError where `name` has one that is not revoked, UsageError for what is no name.
        """
        secret = new_secret()
        self.add_hash(name, role, hash_of(secret))
        return secret

    def add_hash(self, name: str, role: Role, hashed: str, at: float | None = None) -> None:
        """The same for a token that was made elsewhere, at a moment in seconds since the epoch."""
        check_name(name)
        with self._database.write() as connection:
            taken = or_(and_(T.c.name == name, T.c.revoked_at.is_(None)), T.c.hash == hashed)
            if connection.execute(select(exists().where(taken))).scalar_one():
                raise _taken(name)
            created_at = self._database.now() if at is None else at
            connection.execute(
                insert(T).values(id=new_id("tok"), name=name, role=role, hash=hashed, created_at=created_at)
            )

    def revoke(self, name: str, at: float | None = None) -> None:
        """End a token, where `at` is given one made before, and the sessions made with it.

        Raises NotFoundError where none of that name is in use.
        """
        meant = [T.c.name == name, T.c.revoked_at.is_(None)]
        if at is not None:
            meant.append(T.c.created_at < at)
        with self._database.write() as connection:
            gone = connection.execute(
                update(T).where(*meant).values(revoked_at=self._database.now()).returning(T.c.id)
            ).scalar_one_or_none()
            if gone is not None:
                connection.execute(delete(S).where(S.c.token == gone))
        if gone is None:
            raise _no_token(name)

    def all(self) -> Sequence[Token]:
        """All tokens in the order they were made, revoked ones too."""
        self._take_up()
        with self._database.read() as connection:
            rows = connection.execute(select(T).order_by(T.c.created_at, T.c.id)).all()
        return [_token(row) for row in rows]

    def any(self) -> bool:
        """Whether a token was ever made: from then on one is needed, also when all are revoked."""
        if not self._any:
            self._take_up()
            with self._database.read() as connection:
                self._any = bool(connection.execute(_ANY).scalar_one())
        return self._any

    def find(self, secret: str) -> Token | None:
        """The token that `secret` is; None for none, and for one that was revoked."""
        self._take_up()
        hashed = hash_of(secret)
        with self._database.read() as connection:
            row = connection.execute(_BY_HASH, {"hashed": hashed}).one_or_none()
        if row is None:
            return None
        self._note_use(row)
        return _token(row)

    def open_session(
        self, secret: str, also: Callable[[Connection, Token], None] = lambda _, __: None
    ) -> str | None:
        """A session of whoever has this token, for a cookie; None where it is not a token.

        `also` is done in the same transaction.
        """
        token = self.find(secret)
        if token is None:
            return None
        session = new_secret()
        now = self._database.now()
        with self._database.write() as connection:
            connection.execute(delete(S).where(S.c.expires_at < now))
            connection.execute(
                insert(S).values(
                    hash=hash_of(session), token=token.id, created_at=now, expires_at=now + SESSION_S
                )
            )
            also(connection, token)
        return session

    def session(self, session: str) -> Token | None:
        """The token that a session was opened with; None where the session has ended."""
        self._take_up()
        now = self._database.now()
        with self._database.read() as connection:
            row = connection.execute(
                select(T)
                .join(S, S.c.token == T.c.id)
                .where(
                    S.c.hash == hash_of(session),
                    S.c.expires_at > now,
                    # Further ahead it was opened before the clock was set back, and would outlast its time.
                    S.c.expires_at <= now + SESSION_S + _CLOCKS_DIFFER_S,
                    T.c.revoked_at.is_(None),
                )
            ).one_or_none()
        if row is None:
            return None
        self._note_use(row)
        return _token(row)

    def close_session(self, session: str) -> None:
        """Log out; nothing happens where there is no such session."""
        with self._database.write() as connection:
            connection.execute(delete(S).where(S.c.hash == hash_of(session)))

    def _note_use(self, row: Row[Any]) -> None:
        now = datetime.now(UTC).timestamp()
        with self._lock:
            if abs(now - self._used.get(row.id, row.used_at or 0.0)) < _USED_EVERY_S:
                return
            self._used[row.id] = now
        # Where nothing can be written any more, as on a full disk, what is there can still be read.
        with contextlib.suppress(SQLAlchemyError), self._database.write(counts=False) as connection:
            connection.execute(update(T).where(T.c.id == row.id).values(used_at=self._database.now()))

    def _take_up(self) -> None:
        if self._changes is not None:
            self._changes.take(self._apply)

    def _apply(self, change: TokenChange) -> None:
        # One that is there already was taken up before a kill, or somebody at another terminal came first.
        with contextlib.suppress(ConflictError, NotFoundError):
            if change.hash is None:
                self.revoke(change.name, change.at)
            elif change.role is not None:
                self.add_hash(change.name, change.role, change.hash, change.at)


class TokenChange(BaseModel):
    """A token to be added, or, without a `hash`, to be revoked."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    at: float
    role: Role | None = None
    hash: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")] | None = None


class TokenChanges:
    """What the command line wants done by the service that holds the database: a file of JSON lines.

    Whoever may write into the data folder may do that; the file is readable by its owner only.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = FileLock(f"{file}.lock", mode=0o600)

    def add(self, name: str, role: Role) -> str:
        """As `TokenStore.add`."""
        check_name(name)
        if any(token.name == name and token.revoked_at is None for token in self.all()):
            raise _taken(name)
        secret = new_secret()
        self._append(TokenChange(name=name, at=time.time(), role=role, hash=hash_of(secret)))
        return secret

    def revoke(self, name: str) -> None:
        """As `TokenStore.revoke`."""
        made = [token.created_at for token in self.all() if token.name == name and token.revoked_at is None]
        if not made:
            raise _no_token(name)
        # Later than the token, also where the clock was put back since.
        at = max(time.time(), made[-1].timestamp() + _MOMENT_S)
        self._append(TokenChange(name=name, at=at))

    def all(self) -> Sequence[Token]:
        """As `TokenStore.all`, with what the service has not taken up yet."""
        tokens = _read_only(self._file.with_name(FILE))
        with self._lock:
            changes = self._read() if self._file.exists() else []
        for change in changes:
            at = datetime.fromtimestamp(change.at, UTC)
            if change.role is not None:
                tokens.append(Token("", change.name, change.role, at, None, None))
            else:
                tokens = [
                    replace(token, revoked_at=at)
                    if token.name == change.name and token.revoked_at is None
                    else token
                    for token in tokens
                ]
        return tokens

    def take(self, apply: Callable[[TokenChange], None]) -> None:
        """Apply all that is there, which is then gone. What is no such line is passed over."""
        if not self._file.exists():
            return
        with self._lock:
            for change in self._read():
                apply(change)
            self._file.unlink(missing_ok=True)  # somebody else may just have taken it

    def _read(self) -> list[TokenChange]:
        changes = []
        with contextlib.suppress(FileNotFoundError):
            for line in self._file.read_bytes().splitlines():
                with contextlib.suppress(ValidationError):
                    changes.append(TokenChange.model_validate_json(line))
        return changes

    def _append(self, change: TokenChange) -> None:
        with self._lock:
            descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(descriptor, "ab") as file:
                file.write(orjson.dumps(change.model_dump()) + b"\n")
                file.flush()
                os.fsync(file.fileno())


@contextlib.contextmanager
def open_tokens(data: Path, address: str | None) -> Iterator[TokenKeeper]:
    """The tokens of the service in the folder `data`, or of the database at `address`, for the command line.

    Where a service holds the file, what is wanted is left for it. Raises UsageError as `Database.open`.
    """
    try:
        database = Database.open(data, address)
    except UsageError as error:
        if not isinstance(error.__cause__, Timeout):
            raise
        yield TokenChanges(data / CHANGES)
        return
    try:
        store = TokenStore(database, data / CHANGES if database.is_sqlite else None)
        yield store
    finally:
        database.close()


def _read_only(file: Path) -> list[Token]:
    """The tokens of a file that another process writes: reading beside it harms nothing."""
    engine = create_engine(
        "sqlite://", creator=lambda: sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)
    )
    try:
        with engine.connect() as connection:
            return [_token(row) for row in connection.execute(select(T).order_by(T.c.created_at, T.c.id))]
    finally:
        engine.dispose()


def _taken(name: str) -> ConflictError:
    return ConflictError(
        f"There is a token {name!r} already", remedy="Revoke it first, or choose another name."
    )


def _no_token(name: str) -> NotFoundError:
    return NotFoundError(f"There is no token {name!r}", remedy="`uncanny token list` shows all.")


def new_secret() -> str:
    return PREFIX + secrets.token_urlsafe(_SECRET_BYTES)


def hash_of(secret: str) -> str:
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def check_name(name: str) -> None:
    """Raises UsageError."""
    if _NAME.fullmatch(name) is None:
        raise UsageError(
            f"{name[:70]!r} cannot be the name of a token",
            remedy="Use 1 to 64 letters, digits and . _ - @ +.",
        )


def _token(row: Row[Any]) -> Token:
    return Token(
        row.id,
        row.name,
        row.role,
        datetime.fromtimestamp(row.created_at, UTC),
        None if row.used_at is None else datetime.fromtimestamp(row.used_at, UTC),
        None if row.revoked_at is None else datetime.fromtimestamp(row.revoked_at, UTC),
    )
