"""What commands share that serve a page on this machine: options, listening."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from uncanny.cli.common.options import port_option
from uncanny.errors import UsageError, writable

if TYPE_CHECKING:
    from starlette.types import ASGIApp

F = TypeVar("F", bound=Callable[..., Any])


def page_server_options(function: F) -> F:
    """`--port` and `--open`, as `port` and `opens`."""
    opens = click.option("--open", "opens", is_flag=True, help="Open the page in the browser.")
    return port_option(opens(function))


def check_name(name: str | None, option: str) -> None:
    """Raises UsageError for a name that is none, is too long, or cannot be written down."""
    if name is not None and (not 1 <= len(name.strip()) <= 200 or writable(name) != name):
        raise UsageError(f"{option} must be a name of 1 to 200 characters")


def serve_page(app: ASGIApp, port: int, *, opens: bool) -> None:
    """Serve an application on the loopback address until Ctrl-C or SIGTERM. Raises UsageError."""
    from uncanny.service.listen import serve
    from uncanny.service.safety import Guard

    serve(Guard(app), port, ready=_open if opens else lambda _: None)


def _open(address: str) -> None:
    import webbrowser

    webbrowser.open(address)
