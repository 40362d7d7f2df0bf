"""`uncanny serve`: the service, which runs jobs for people and programs; `uncanny token`: who may use it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from uncanny.cli.common.command import Command, Group
from uncanny.cli.common.options import PATH, Whole, json_option
from uncanny.cli.common.places import name_and_path
from uncanny.cli.common.terminal import complain, say, say_json
from uncanny.errors import UsageError
from uncanny.service import ROLES, Role
from uncanny.wording import harmless, option

if TYPE_CHECKING:
    from uncanny.service.store.tokens import TokenStore

DATA = Path("uncanny-data")


def data_options(command: click.decorators.FC) -> click.decorators.FC:
    """Where the service keeps things, as all its commands say it."""
    for each in (
        click.option(
            "--database",
            metavar="URL",
            envvar="UNCANNY_DATABASE",
            help="PostgreSQL, as postgresql://USER@HOST/NAME. UNCANNY_DATABASE sets it, too, and keeps a "
            "password out of the list of processes.  [default: SQLite in the data folder]",
        ),
        click.option(
            "--data",
            type=PATH,
            default=DATA,
            show_default=True,
            help="Folder of jobs, uploads and the database.",
        ),
    ):
        command = each(command)
    return command


@click.command("serve", cls=Command, extra="service")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on. To listen beyond this machine, first create a token: `uncanny token add`.",
)
@click.option(
    "--port", type=Whole(0, 65_535), default=8765, show_default=True, help="Port; 0 takes a free one."
)
@data_options
@click.option(
    "--root",
    "roots",
    type=PATH,
    multiple=True,
    help="Folder whose files jobs may read; repeatable.  [default: uploads only]",
)
@click.option(
    "--weights",
    "weights",
    metavar="[NAME=]DIR",
    multiple=True,
    help="Folder of model weights that jobs may load by name; repeatable. Loading may run code in "
    "the folder.",
)
@click.option(
    "--jobs",
    type=Whole(0, 64),
    default=2,
    show_default=True,
    help="Number of jobs that run at once; 0 leaves them to other processes on the same database.",
)
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="HOST",
    help="Host name that users reach the service by, such as that of a proxy; repeatable.",
)
@click.option(
    "--proxy",
    "proxies",
    multiple=True,
    metavar="ADDRESS",
    help="Address of a proxy whose X-Forwarded-For and -Proto are trusted; repeatable.",
)
def command(
    host: str,
    port: int,
    data: Path,
    database: str | None,
    roots: tuple[Path, ...],
    weights: tuple[str, ...],
    jobs: int,
    names: tuple[str, ...],
    proxies: tuple[str, ...],
) -> None:
    """Serve web pages and an HTTP API to upload images, start runs, watch them and review findings.

    Each job is an uncanny command in its own process. API keys come from the environment of this command;
    users never see them. The first line printed is `listening on http://…`. Ctrl-C stops the service; jobs
    resume when it starts again.

    \b
    uncanny token add ann --role operator    # create a token and set its role
    uncanny serve --root /data/photos        # for people on this machine
    uncanny serve --name lab.example.org --proxy 127.0.0.1    # for others, behind a proxy
    """
    from uncanny.service.api.app import guarded, service_app
    from uncanny.service.jobs.worker import Worker
    from uncanny.service.listen import is_loopback, serve
    from uncanny.service.service import Service
    from uncanny.service.web.pages import add_pages

    with Service.open(data, database=database, roots=roots, weights=_named(weights)) as service:
        beyond = not is_loopback(host) or bool(names) or bool(proxies)
        # An address may have a password in it.
        where_kept = "" if data == DATA else f" --data {quote(str(data))}"
        make_one = f"uncanny token add NAME --role operator{' --database URL' if database else where_kept}."
        if beyond and not any(token.revoked_at is None for token in service.tokens.all()):
            where = "By a proxy" if is_loopback(host) else f"On {host}"
            raise UsageError(
                f"{where} others can reach the service, but it has no token yet",
                remedy=f"Make one first: {make_one}",
            )
        if not service.tokens.any():
            complain(
                "There is no token: everyone with an account on this machine can use this service as an "
                f"operator. If other people have accounts, make a token: {make_one}"
            )
        service.uploads.sweep()
        worker = Worker(service, jobs=jobs) if jobs else None
        app = service_app(
            service, tokens_needed=beyond, worker_alive=lambda: None if worker is None else worker.alive
        )
        add_pages(app, service)

        started: list[Worker] = []

        def start(_: str) -> None:
            if worker is not None:
                worker.start()
                started.append(worker)

        try:
            serve(
                guarded(app, host=host, names=names),
                port,
                host=host,
                ready=start,
                ending=app.state.ending.set,
                proxies=proxies,
            )
        finally:
            for each in started:
                each.stop()


def _named(weights: tuple[str, ...]) -> dict[str, Path]:
    """Folders of weights by name. Raises UsageError where two have the same one."""
    named: dict[str, Path] = {}
    for argument in weights:
        name, folder = name_and_path(argument)
        name = name or folder.resolve().name
        if name in named:
            raise UsageError(
                f"{option('weights')} names {name!r} twice", remedy="Give each a different name: NAME=DIR."
            )
        named[name] = folder
    return named


@click.group("token", cls=Group)
def token_command() -> None:
    """Create, list and revoke the tokens that people and programs use to access the service.

    A reader sees everything; a reviewer also judges findings; an operator also starts and deletes jobs and
    uploads. Changes take effect with the next request, also while the service runs.
    """


@token_command.command("add", config=False, extra="service")
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


@token_command.command("list", config=False, extra="service")
@json_option
@data_options
def list_command(as_json: bool, data: Path, database: str | None) -> None:
    """Show all tokens, those that were revoked as well. The tokens themselves are kept nowhere."""
    with _tokens(data, database) as kept:
        tokens = kept.all()
    if as_json:
        say_json([token.model_dump(exclude={"id"}) for token in tokens])
        return
    if not tokens:
        say("There is no token.")
    width = max((len(token.name) for token in tokens), default=0)
    for token in tokens:
        used = "never used" if token.used_at is None else f"last used {token.used_at:%Y-%m-%d %H:%M} UTC"
        if token.revoked_at is not None:
            used = f"revoked {token.revoked_at:%Y-%m-%d %H:%M} UTC"
        say(f"{harmless(token.name):<{width}}  {token.role:<8}  made {token.created_at:%Y-%m-%d}  {used}")


@token_command.command("revoke", config=False, extra="service")
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
