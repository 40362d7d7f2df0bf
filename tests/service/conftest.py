"""What tests of the service share: one PostgreSQL a test process, started when the first test asks for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.eval.common.page_in_browser import CHROMIUM
from tests.service.postgres import Postgres, binaries, postgres

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from uncanny.service.service import Service


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    assert CHROMIUM is not None, "UNCANNY_BROWSER=1, but there is no chromium"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    """Skips where there is none, unless `UNCANNY_POSTGRES` is set, as in CI, where nobody would see that."""
    if binaries() is None and not os.environ.get("UNCANNY_POSTGRES"):
        pytest.skip("PostgreSQL is not installed")
    with postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest) -> str | None:
    """`--database` of an empty database: None for SQLite, so each test that takes it runs on both."""
    if request.param == "sqlite":
        return None
    server: Postgres = request.getfixturevalue("postgres_server")
    return server.database()


@pytest.fixture
def postgres_address(postgres_server: Postgres) -> str:
    """The address of an empty database on PostgreSQL."""
    return postgres_server.database()


@pytest.fixture
def service(tmp_path: Path, address: str | None) -> Iterator[Service]:
    """An empty service on either database."""
    from uncanny.service.service import Service

    with Service.open(tmp_path / "data", database=address) as opened:
        yield opened


@pytest.fixture
def open_service(tmp_path: Path, address: str | None) -> Iterator[Callable[[], Service]]:
    """Opens one more process's view of the same service; on SQLite only after the last one was closed."""
    from uncanny.service.service import Service

    opened: list[Service] = []

    def make() -> Service:
        opened.append(Service.open(tmp_path / "data", database=address))
        return opened[-1]

    yield make
    for each in opened:
        each.close()
