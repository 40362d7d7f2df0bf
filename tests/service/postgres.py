"""A PostgreSQL of our own for tests: in a folder of /tmp, on a socket there, gone with the tests.

Debian's server (`postgresql-15`) is started by itself; no service of the machine is touched. It does not run
as root, so that it is given to the account `postgres` where tests do.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

_START_S = 60


@dataclass(frozen=True, slots=True)
class Postgres:
    """A server; `database()` makes an empty database and returns its address."""

    socket: Path
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def database(self) -> str:
        name = f"test{next(self._numbers)}"
        with psycopg.connect(self._address("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self._address(name)

    def database_of_few(self, connections: int) -> str:
        """The same for a user who gets no more than so many connections at once."""
        name = f"test{next(self._numbers)}"
        with psycopg.connect(self._address("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE ROLE {name} LOGIN CONNECTION LIMIT {connections}".encode())
            connection.execute(f"CREATE DATABASE {name} OWNER {name}".encode())
        return self._address(name, name)

    def _address(self, name: str, user: str = "postgres") -> str:
        return f"postgresql://{user}@/{name}?host={self.socket}"


def binaries() -> Path | None:
    """The folder with `initdb` and `postgres`; None where PostgreSQL is not installed."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    if folders:
        return folders[-1]
    initdb = shutil.which("initdb")
    return None if initdb is None else Path(initdb).resolve().parent


@contextmanager
def postgres() -> Iterator[Postgres]:
    """A server while the context is open. It ends with this process even where that is killed."""
    programs = binaries()
    if programs is None:
        raise RuntimeError("PostgreSQL is not installed: apt-get install --no-install-recommends postgresql")
    home = Path(tempfile.mkdtemp(prefix="uncanny_pg_", dir="/tmp"))
    who: dict[str, Any] = {}
    if os.geteuid() == 0:
        who = {"user": "postgres", "group": "postgres", "extra_groups": []}
        shutil.chown(home, "postgres", "postgres")
    data = home / "data"
    # The rest of its environment may name files that the account cannot read.
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    quick = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=200")
    try:
        subprocess.run(
            [programs / "initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8"],
            check=True,
            capture_output=True,
            cwd="/",
            env=environment,
            **who,
        )
        with (home / "log").open("wb") as log:
            server = subprocess.Popen(
                [
                    *("setpriv", "--pdeathsig", "QUIT", programs / "postgres", "-D", data),
                    *("-k", home, "-c", "listen_addresses="),
                    *(part for each in quick for part in ("-c", each)),
                ],
                stdout=log,
                stderr=log,
                cwd="/",
                env=environment,
                **who,
            )
        try:
            made = Postgres(home)
            _wait(made, server, home / "log")
            yield made
        finally:
            server.terminate()
            try:
                server.wait(timeout=10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _wait(made: Postgres, server: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _START_S
    while True:
        try:
            psycopg.connect(made._address("postgres")).close()
            return
        except psycopg.OperationalError:
            if server.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"PostgreSQL does not start:\n{log.read_text()}") from None
            time.sleep(0.05)
