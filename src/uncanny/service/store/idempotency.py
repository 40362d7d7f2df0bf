"""Answers that were given, so that a request that comes again gets the same one."""

from __future__ import annotations

from uncanny.service.store.database import Database


class IdempotencyStore:
    """Answers that were given, so that a request that comes again gets the same one."""

    def __init__(self, database: Database) -> None:
        self._database = database
