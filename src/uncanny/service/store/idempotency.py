"""Answers that were given, so that a request that comes again gets the same one and nothing is done twice.

A client that does not know whether its request arrived sends it again under the same key. Key, answer and
what was done are written in one transaction, so that no kill comes in between.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Final

from sqlalchemy import Connection, delete, insert, select
from sqlalchemy.exc import IntegrityError

from uncanny.errors import ConflictError
from uncanny.service.store.database import Database
from uncanny.service.store.tables import idempotency_keys as K

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
