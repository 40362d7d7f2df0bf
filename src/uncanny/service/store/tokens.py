"""API tokens and the sessions of browsers: who may do what."""

from __future__ import annotations

from uncanny.service.store.database import Database


class TokenStore:
    """API tokens and the sessions of browsers: who may do what."""

    def __init__(self, database: Database) -> None:
        self._database = database
