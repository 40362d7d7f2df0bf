"""Who did what, when and from where: written once, never changed.

A line for every change that was asked for and done, and for every login that failed.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

import orjson
from sqlalchemy import Connection, insert, select
from sqlalchemy.exc import SQLAlchemyError

from uncanny.service.answers import AuditLine, AuditPage
from uncanny.service.store.database import Database
from uncanny.service.store.tables import audit as A

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
