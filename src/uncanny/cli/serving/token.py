"""`uncanny token`: who may use the service, and as what."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from uncanny.cli.common.command import Group
from uncanny.cli.common.options import json_option
from uncanny.cli.common.terminal import complain, harmless, say, say_json
from uncanny.cli.serving.serve import data_options
from uncanny.service import ROLES, Role

if TYPE_CHECKING:
    from uncanny.service.store.tokens import TokenStore


@click.group("token", cls=Group)
def command() -> None:
    """Create, list and revoke the tokens that people and programs use to access the service.

    A reader sees everything; a reviewer also judges findings; an operator also starts and deletes jobs and
    uploads. Changes take effect with the next request, also while the service runs.
    """


@command.command("add", config=False, extra="service")
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), required=True, help="What the holder of the token may do.")
@data_options
def add(name: str, role: Role, data: Path, database: str | None) -> None:
    """Create a token for NAME and print it once. Only its hash is stored.

    NAME appears in jobs, verdicts and the audit log: 1 to 64 letters, digits and . _ - @ +
    """
    with _tokens(data, database) as kept:
        token = kept.add(name, role)
    say(token)
    complain("Keep it, it is not shown again. Programs take it as UNCANNY_SERVER_TOKEN, the page at /login.")


@command.command("list", config=False, extra="service")
@json_option
@data_options
def list_command(as_json: bool, data: Path, database: str | None) -> None:
    """Show all tokens, those that were revoked as well. The tokens themselves are kept nowhere."""
    with _tokens(data, database) as kept:
        tokens = kept.all()
    if as_json:
        say_json(
            [
                {
                    "name": token.name,
                    "role": token.role,
                    "created_at": token.created_at,
                    "used_at": token.used_at,
                    "revoked_at": token.revoked_at,
                }
                for token in tokens
            ]
        )
        return
    if not tokens:
        say("There is no token.")
    width = max((len(token.name) for token in tokens), default=0)
    for token in tokens:
        used = "never used" if token.used_at is None else f"last used {token.used_at:%Y-%m-%d %H:%M} UTC"
        if token.revoked_at is not None:
            used = f"revoked {token.revoked_at:%Y-%m-%d %H:%M} UTC"
        say(f"{harmless(token.name):<{width}}  {token.role:<8}  made {token.created_at:%Y-%m-%d}  {used}")


@command.command("revoke", config=False, extra="service")
@click.argument("name")
@data_options
def revoke(name: str, data: Path, database: str | None) -> None:
    """End the token of NAME, and all sessions of browsers that were opened with it."""
    with _tokens(data, database) as kept:
        kept.revoke(name)


@contextmanager
def _tokens(data: Path, database: str | None) -> Iterator[TokenStore]:
    """The tokens in the database, whether or not a service uses it."""
    from uncanny.service.store.database import Database
    from uncanny.service.store.tokens import TokenStore

    opened = Database.open(data, database, beside=True)
    try:
        yield TokenStore(opened)
    finally:
        opened.close()
