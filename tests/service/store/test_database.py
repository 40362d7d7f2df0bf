"""The database: its schema, and who may open it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from tests.service.postgres import Postgres
from uncanny.errors import UsageError
from uncanny.service.service import Service
from uncanny.service.store.database import FILE, Database
from uncanny.service.store.tables import metadata


def _differences(database: Database) -> list[object]:
    with database.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert context.get_current_revision() is not None
        return list(compare_metadata(context, metadata))


def test_a_new_database_has_the_tables_as_they_are_declared(service: Service) -> None:
    assert _differences(service.database) == []


def test_migrations_lead_from_the_first_version_to_the_tables(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / FILE)) as first:
        first.executescript((Path(__file__).parent / "schema_1.sql").read_text(encoding="utf-8"))
    with Service.open(tmp_path) as service:
        assert _differences(service.database) == []


def test_what_was_written_is_there_after_a_restart(open_service: Callable[[], Service]) -> None:
    first = open_service()
    job = first.jobs.submit("annotate", {}, by="ann")
    first.close()
    assert open_service().jobs.get(job.id) == job


def test_many_open_a_new_postgresql_at_once(tmp_path: Path, postgres_server: Postgres) -> None:
    address = postgres_server.database()
    with ThreadPoolExecutor(6) as pool:
        opened = list(pool.map(lambda _: Service.open(tmp_path, database=address), range(6)))
    for each in opened:
        each.close()


def test_one_process_a_file(tmp_path: Path) -> None:
    with Service.open(tmp_path), pytest.raises(UsageError, match="Another process is using"):
        Service.open(tmp_path)
    Service.open(tmp_path).close()


def test_a_database_of_another_folder_is_refused(tmp_path: Path, postgres_server: Postgres) -> None:
    address = postgres_server.database()
    Service.open(tmp_path / "a", database=address).close()
    with pytest.raises(UsageError, match="belongs to another data folder"):
        Service.open(tmp_path / "b", database=address)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("nonsense", "not the address"),
        ("mysql://u@h/d", "names 'mysql'"),
        ("postgresql://u:secret@127.0.0.1:1/d", "cannot be used"),
    ],
)
def test_a_wrong_address_is_said_and_its_password_is_not(tmp_path: Path, address: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as error:
        Database.open(tmp_path, address)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("version", ["9999", "0001", "0002"])
def test_a_database_of_another_version_is_left_alone(
    tmp_path: Path, address: str | None, version: str
) -> None:
    database = Database.open(tmp_path, address)
    with database.write() as connection:
        connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{version}'")
    database.close()
    words = f"has version {version}, which this version .* does not know.*update uncanny.*name another"
    with pytest.raises(UsageError, match=words):
        Database.open(tmp_path, address)
