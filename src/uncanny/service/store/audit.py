"""Who did what, when and from where: written once, never changed.

A line for every change that was asked for and done, and for every login that failed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson
from sqlalchemy import Row, insert, select

from uncanny.service.store.database import Database
from uncanny.service.store.tables import audit as A


@dataclass(frozen=True, slots=True)
class AuditLine:
    """`subject` is the id of what was changed, `address` from where it was asked for; either may be None."""

    seq: int
    at: datetime
    who: str
    role: str
    action: str
    subject: str | None
    address: str | None
    details: Mapping[str, Any]


class AuditLog:
    """The log in the database. Safe from threads and processes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def write(
        self,
        who: str,
        role: str,
        action: str,
        *,
        subject: str | None = None,
        address: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """`details` are a few plain values, never what somebody keeps secret."""
        values = {
            "at": self._database.now(),
            "who": who[:200],
            "role": role,
            "action": action[:64],
            "subject": None if subject is None else subject[:200],
            "address": None if address is None else address[:64],
            "details": orjson.dumps(dict(details)).decode() if details else None,
        }
        with self._database.write() as connection:
            connection.execute(insert(A).values(values))

    def page(self, *, limit: int = 100, before: int | None = None) -> tuple[Sequence[AuditLine], int | None]:
        """The newest first, those older than `before`, and the `before` of the next page."""
        query = select(A).order_by(A.c.seq.desc()).limit(limit + 1)
        if before is not None:
            query = query.where(A.c.seq < before)
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        lines = [_line(row) for row in rows[:limit]]
        return lines, lines[-1].seq if len(rows) > limit else None


def _line(row: Row[Any]) -> AuditLine:
    return AuditLine(
        row.seq,
        datetime.fromtimestamp(row.at, UTC),
        row.who,
        row.role,
        row.action,
        row.subject,
        row.address,
        orjson.loads(row.details) if row.details else {},
    )
