"""Who did what, and when: written once, never changed."""

from __future__ import annotations

from uncanny.service.store.database import Database


class AuditLog:
    """Who did what, and when: written once, never changed."""

    def __init__(self, database: Database) -> None:
        self._database = database
