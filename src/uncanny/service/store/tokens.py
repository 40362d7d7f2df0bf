"""API tokens and the sessions of browsers: who may do what.

A token is 256 random bits and is shown once; what is kept is its sha256, which is enough for what nobody can
guess. A session is the same for a browser, made by logging in with a token, and ends with it.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, delete, exists, insert, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.sql.elements import ColumnElement

from uncanny.errors import ConflictError, NotFoundError, UsageError
from uncanny.service import Role, new_id
from uncanny.service.answers import Answer
from uncanny.service.store.database import Database
from uncanny.service.store.tables import sessions as S
from uncanny.service.store.tables import tokens as T

PREFIX: Final = "unc_"
SESSION_S: Final = 7 * 24 * 3600.0
_SECRET_BYTES: Final = 32
# When a token was last used is written down no more often than this.
_USED_EVERY_S: Final = 60.0
_CLOCKS_DIFFER_S: Final = 60.0

# Asked at each request, so built once.
_ANY: Final = select(exists().where(T.c.id.is_not(None)))
_BY_HASH: Final = select(T).where(T.c.hash == bindparam("hashed"), T.c.revoked_at.is_(None))

_NAME: Final = re.compile(r"[\w.@+-]{1,64}")


class Token(Answer):
    """A token as it is listed; the token itself is nowhere."""

    id: str
    name: str
    role: Role
    created_at: datetime
    used_at: datetime | None
    revoked_at: datetime | None


class TokenStore:
    """Tokens and sessions in the database. Safe from threads and processes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._any = False
        self._used: dict[str, float] = {}
        self._lock = threading.Lock()

    def add(self, name: str, role: Role) -> str:
        """Make a token; it is returned once and cannot be shown again.

        Raises ConflictError where `name` has one that is not revoked, UsageError for what is no name.
        """
        check_name(name)
        secret, now = new_secret(), self._database.now()
        with self._database.write() as connection:
            if connection.execute(select(exists().where(*_in_use(name)))).scalar_one():
                raise ConflictError(
                    f"There is a token {name!r} already", remedy="Revoke it first, or choose another name."
                )
            connection.execute(
                insert(T).values(id=new_id("tok"), name=name, role=role, hash=hash_of(secret), created_at=now)
            )
        return secret

    def revoke(self, name: str) -> None:
        """End a token and the sessions made with it. Raises NotFoundError if none of that name is in use."""
        with self._database.write() as connection:
            gone = connection.execute(
                update(T).where(*_in_use(name)).values(revoked_at=self._database.now()).returning(T.c.id)
            ).scalar_one_or_none()
            if gone is not None:
                connection.execute(delete(S).where(S.c.token == gone))
        if gone is None:
            raise NotFoundError(f"There is no token {name!r}", remedy="`uncanny token list` shows all.")

    def all(self) -> Sequence[Token]:
        """All tokens in the order they were made, revoked ones too."""
        with self._database.read() as connection:
            rows = connection.execute(select(T).order_by(T.c.created_at, T.c.id)).all()
        return [Token(**row._mapping) for row in rows]

    def any(self) -> bool:
        """Whether a token was ever made: from then on one is needed, also when all are revoked."""
        if not self._any:
            with self._database.read() as connection:
                self._any = bool(connection.execute(_ANY).scalar_one())
        return self._any

    def find(self, secret: str) -> Token | None:
        """The token that `secret` is; None for none, and for one that was revoked."""
        with self._database.read() as connection:
            row = connection.execute(_BY_HASH, {"hashed": hash_of(secret)}).one_or_none()
        if row is None:
            return None
        self._note_use(row)
        return Token(**row._mapping)

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
        return Token(**row._mapping)

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


def _in_use(name: str) -> tuple[ColumnElement[bool], ...]:
    return T.c.name == name, T.c.revoked_at.is_(None)


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
