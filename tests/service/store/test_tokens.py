"""Tokens and sessions, on SQLite and on PostgreSQL, and beside a running service."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import update

from uncanny.errors import ConflictError, NotFoundError, UsageError
from uncanny.service.service import Service
from uncanny.service.store.database import Database
from uncanny.service.store.tables import sessions
from uncanny.service.store.tokens import TokenStore, hash_of


def test_a_token_is_found_by_itself_only(service: Service) -> None:
    tokens = service.tokens
    assert not tokens.any()
    ann, bob = tokens.add("ann", "reader"), tokens.add("bob", "operator")
    assert ann != bob
    assert tokens.any()
    token = tokens.find(ann)
    assert token is not None
    assert (token.name, token.role) == ("ann", "reader")
    for other in ("", "unc_", ann[:-1], ann + "a", hash_of(ann), ann.upper(), "\ud800", "ä", "\0"):
        assert tokens.find(other) is None
    assert [(each.name, each.used_at is not None) for each in tokens.all()] == [("ann", True), ("bob", False)]


def test_a_name_has_one_token_at_a_time(service: Service) -> None:
    first = service.tokens.add("ann", "reader")
    with pytest.raises(ConflictError, match="already"):
        service.tokens.add("ann", "operator")
    service.tokens.revoke("ann")
    with pytest.raises(NotFoundError):
        service.tokens.revoke("ann")
    second = service.tokens.add("ann", "operator")
    assert service.tokens.find(first) is None
    assert service.tokens.find(second) is not None
    assert service.tokens.any()


@pytest.mark.parametrize("name", ["", "a b", "a" * 65, "../x", "a\n", "<b>", "a\0"])
def test_odd_names_are_refused(service: Service, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be the name"):
        service.tokens.add(name, "reader")


def test_a_session_that_would_outlast_its_time_has_ended(service: Service) -> None:
    """As when the clock was a year ahead while it was opened."""
    session = service.tokens.open_session(service.tokens.add("ann", "reader"))
    assert session is not None
    assert service.tokens.session(session) is not None
    with service.database.write() as connection:
        connection.execute(update(sessions).values(expires_at=sessions.c.expires_at + 365 * 86_400.0))
    assert service.tokens.session(session) is None


def test_a_session_ends_with_its_token(service: Service) -> None:
    tokens = service.tokens
    secret = tokens.add("ann", "reviewer")
    one, two = tokens.open_session(secret), tokens.open_session(secret)
    assert one is not None
    assert two is not None
    assert tokens.open_session("unc_x") is None
    assert tokens.find(one) is None
    assert tokens.session(secret) is None
    session = tokens.session(one)
    assert session is not None
    assert session.name == "ann"
    tokens.close_session(one)
    assert tokens.session(one) is None
    assert tokens.session(two) is not None
    tokens.revoke("ann")
    assert tokens.session(two) is None


def test_tokens_are_changed_beside_a_running_service(tmp_path: Path) -> None:
    with Service.open(tmp_path) as service:
        assert not service.tokens.any()
        beside = Database.open(tmp_path, beside=True)
        tokens = TokenStore(beside)
        ann, bob = tokens.add("ann", "reader"), tokens.add("bob", "reader")
        assert service.tokens.any()
        found = service.tokens.find(ann)
        assert found is not None
        assert found.name == "ann"
        session = service.tokens.open_session(bob)
        assert session is not None
        tokens.revoke("bob")
        assert service.tokens.find(bob) is None
        assert service.tokens.session(session) is None
        assert [(token.name, token.revoked_at is None) for token in tokens.all()] == [
            ("ann", True),
            ("bob", False),
        ]
        beside.close()
        assert service.tokens.find(ann) is not None
        with pytest.raises(UsageError, match="Another process is using"):
            Service.open(tmp_path)


def test_many_make_tokens_at_once(tmp_path: Path) -> None:
    def made(number: int) -> None:
        database = Database.open(tmp_path, beside=True)
        try:
            TokenStore(database).add(f"{number % 4}", "reader")
        except ConflictError:
            pass
        finally:
            database.close()

    with Service.open(tmp_path) as service:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(made, range(16)))
        assert sorted(token.name for token in service.tokens.all()) == ["0", "1", "2", "3"]


def test_beside_a_service_of_another_version_nothing_is_changed(tmp_path: Path) -> None:
    with Service.open(tmp_path) as service:
        with service.database.write() as connection:
            connection.exec_driver_sql("DELETE FROM alembic_version")
        with pytest.raises(UsageError, match=r"of another version of uncanny\. Try again"):
            Database.open(tmp_path, beside=True)
        with service.database.read() as connection:
            assert connection.exec_driver_sql("SELECT * FROM alembic_version").all() == []


def test_a_token_holds_also_where_nothing_can_be_written(tmp_path: Path) -> None:
    with Service.open(tmp_path) as service:
        secret = service.tokens.add("ann", "reader")
        with service.database.write() as connection:
            connection.exec_driver_sql(
                "CREATE TRIGGER full BEFORE UPDATE ON tokens BEGIN SELECT RAISE(ABORT, 'full'); END"
            )
        token = service.tokens.find(secret)
        assert token is not None
        assert token.used_at is None
