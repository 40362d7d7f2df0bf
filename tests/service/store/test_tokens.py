"""Tokens and sessions, on SQLite and on PostgreSQL, and by way of a running service."""

from __future__ import annotations

import stat
import time
from pathlib import Path

import pytest
from sqlalchemy import update

from uncanny.errors import ConflictError, NotFoundError, UsageError
from uncanny.service.service import Service
from uncanny.service.store.tables import sessions
from uncanny.service.store.tokens import CHANGES, TokenChanges, hash_of, open_tokens


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


def test_the_command_line_changes_tokens_while_the_service_runs(tmp_path: Path) -> None:
    with Service.open(tmp_path) as service:
        assert not service.tokens.any()
        with open_tokens(tmp_path, None) as keeper:
            assert isinstance(keeper, TokenChanges)
            ann, _ = keeper.add("ann", "reader"), keeper.add("bob", "reader")
            with pytest.raises(ConflictError):
                keeper.add("ann", "reader")
            keeper.revoke("bob")
            with pytest.raises(NotFoundError):
                keeper.revoke("bob")
            assert [(token.name, token.revoked_at is None) for token in keeper.all()] == [
                ("ann", True),
                ("bob", False),
            ]
        left = tmp_path / CHANGES
        assert ann.encode() not in left.read_bytes()
        assert stat.S_IMODE(left.stat().st_mode) == 0o600
        assert service.tokens.any()
        assert not left.exists()
        found = service.tokens.find(ann)
        assert found is not None
        assert [(token.name, token.revoked_at is None) for token in service.tokens.all()] == [
            ("ann", True),
            ("bob", False),
        ]
    with open_tokens(tmp_path, None) as keeper:
        assert not isinstance(keeper, TokenChanges)
        assert [token.name for token in keeper.all()] == ["ann", "bob"]


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


def test_a_token_is_revoked_also_where_the_clock_was_put_back(tmp_path: Path) -> None:
    with Service.open(tmp_path) as service:
        secret = "unc_of_an_hour_to_come"
        service.tokens.add_hash("ann", "operator", hash_of(secret), time.time() + 3600)
        assert service.tokens.find(secret) is not None
        TokenChanges(tmp_path / CHANGES).revoke("ann")
        assert service.tokens.find(secret) is None


def test_changes_that_come_twice_are_made_once(tmp_path: Path) -> None:
    """A kill between taking up and removing leaves them there."""
    with Service.open(tmp_path) as service:
        changes = TokenChanges(tmp_path / CHANGES)
        changes.add("ann", "reader")
        changes.revoke("ann")
        second = changes.add("ann", "operator")
        left = (tmp_path / CHANGES).read_bytes()
        assert service.tokens.find(second) is not None
        (tmp_path / CHANGES).write_bytes(left + b"rubbish\n{}\n")
        token = service.tokens.find(second)
        assert token is not None
        assert [each.role for each in service.tokens.all()] == ["reader", "operator"]
