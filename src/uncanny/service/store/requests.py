"""What requests did: the audit log, and answers kept so that a request that comes again does nothing twice.

The log has a line for every change that was asked for and done, and for every login that failed. No line is
ever changed. A client that does not know whether its request arrived sends it again under the same key. Key,
answer and what was done are written in one transaction, so that no kill comes in between.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Final

import orjson
from sqlalchemy import Connection, delete, insert, select
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from uncanny.errors import ConflictError
from uncanny.service.answers import AuditLine, AuditPage
from uncanny.service.store.database import Database
from uncanny.service.store.tables import audit as A
from uncanny.service.store.tables import idempotency_keys as K

_MOST_WAITING: Final = 10_000


class AuditLog:
    """The log in the database. Safe from threads and processes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # Lines of what was done outside the database, while that could not be written.
        self._waiting: deque[dict[str, Any]] = deque(maxlen=_MOST_WAITING)

    def add(self, connection: Connection, who: str, role: str, action: str, **about: Any) -> None:
        """Write a line in the transaction that does what it tells.

        `about` are `subject`, `address` and `details`: a few plain values, never what somebody keeps secret.
        """
        line = _values(who, role, action, **about)
        connection.execute(insert(A).values({"at": self._database.now(), **line}))

    def write(self, who: str, role: str, action: str, **about: Any) -> None:
        """Write a line about what was done already, and outside the database, as a verdict in its file.

        Where the database does not take it, it waits for the next one, in this process. `about` as of `add`.
        """
        self._waiting.append({"at": time.time(), **_values(who, role, action, **about)})
        with contextlib.suppress(SQLAlchemyError):
            self.flush()

    def flush(self) -> None:
        """Write what waits. Raises SQLAlchemyError where the database does not take it."""
        lines: list[dict[str, Any]] = []
        with contextlib.suppress(IndexError):
            while True:
                lines.append(self._waiting.popleft())
        if not lines:
            return
        try:
            with self._database.write(counts=False) as connection:
                connection.execute(insert(A), lines)
        except SQLAlchemyError:
            self._waiting.extendleft(reversed(lines))
            raise

    def page(self, *, limit: int = 100, before: int | None = None) -> AuditPage:
        """The newest first, those older than `before`."""
        self.flush()
        query = select(A).order_by(A.c.seq.desc()).limit(limit + 1)
        if before is not None:
            query = query.where(A.c.seq < before)
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        lines = tuple(
            AuditLine(**{**row._mapping, "details": orjson.loads(row.details or "{}")})
            for row in rows[:limit]
        )
        return AuditPage(lines=lines, next=lines[-1].seq if len(rows) > limit else None)


def _values(
    who: str,
    role: str,
    action: str,
    subject: str | None = None,
    address: str | None = None,
    details: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    return {
        "who": who[:200],
        "role": role,
        "action": action[:64],
        "subject": None if subject is None else subject[:200],
        "address": None if address is None else address[:64],
        "details": orjson.dumps(dict(details)).decode() if details else None,
    }


KEPT_S: Final = 30 * 24 * 3600.0


class IdempotencyStore:
    """Keys in the database. Safe from threads and processes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def once(
        self, who: str, key: str | None, request: bytes, act: Callable[[Connection], str]
    ) -> tuple[str, bool]:
        """What `act` answered to the first request with this `key`, and whether that was an earlier one.

        `act` does all it does by the connection. Keys are each user's own and kept for 30 days. Without a
        key it is always done. Raises ConflictError where the key came with another `request`.
        """
        if key is None:
            with self._database.write() as connection:
                return act(connection), False
        digest = sha256(request).hexdigest()
        try:
            with self._database.write() as connection:
                kept = self._kept(connection, who, key, digest)
                if kept is not None:
                    return kept, True
                answer = act(connection)
                now = self._database.now()
                connection.execute(delete(K).where(K.c.created_at < now - KEPT_S))
                connection.execute(
                    insert(K).values(who=who, key=key, request=digest, answer=answer, created_at=now)
                )
                return answer, False
        except IntegrityError:  # the same request came twice at once; what the other one did stands
            with self._database.read() as connection:
                kept = self._kept(connection, who, key, digest)
            if kept is None:
                raise
            return kept, True

    def kept(self, who: str, key: str | None, request: bytes) -> str | None:
        """The answer that `once` would find, None without one. Raises ConflictError as that does."""
        if key is None:
            return None
        with self._database.read() as connection:
            return self._kept(connection, who, key, sha256(request).hexdigest())

    def _kept(self, connection: Connection, who: str, key: str, digest: str) -> str | None:
        row = connection.execute(
            select(K.c.request, K.c.answer).where(K.c.who == who, K.c.key == key)
        ).one_or_none()
        if row is None:
            return None
        if row.request != digest:
            raise ConflictError(
                "This idempotency key came with another request before", remedy="Take a new key for it."
            )
        answer: str = row.answer
        return answer
