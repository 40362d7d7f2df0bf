"""What pages are made of: templates, and files beside them that browsers keep until they change.

The common ones lie in this package's `templates` and `static`; an application adds its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from uncanny.errors import StorageError, UncannyError
from uncanny.eval.common.page import breakable, stamp

_SHARED: Final = "uncanny.service"
_COMMON: Final = (
    *("page.js", "page.css", "icon.svg"),
    *("vendor/htmx.min.js", "vendor/annotorious.js", "vendor/annotorious.css"),
)
_MEDIA_TYPES: Final[Mapping[str, str]] = {
    "js": "text/javascript",
    "css": "text/css",
    "svg": "image/svg+xml",
}
# An address that changes with what it leads to.
KEPT: Final[Mapping[str, str]] = {"Cache-Control": "private, max-age=31536000, immutable"}


class Assets:
    """Templates and static files of an application in `package`, `static` by their names there."""

    def __init__(self, package: str, static: Sequence[str], templates: Sequence[str]) -> None:
        self._package, self._templates = package, tuple(templates)
        self._places = {**dict.fromkeys(_COMMON, _SHARED), **dict.fromkeys(static, package)}

    def serve(self, app: FastAPI) -> None:
        """Add the static files to an application, and answer its errors in their own words."""

        @app.get("/static/{name:path}")
        def static(name: str) -> Response:
            if name not in self._places:
                raise HTTPException(404, "There is no such file.")
            media_type = _MEDIA_TYPES[name.rpartition(".")[2]]
            return Response(_bytes(self._places[name], name), media_type=media_type, headers=dict(KEPT))

        app.add_exception_handler(UncannyError, _failed)
        app.add_exception_handler(OSError, _lost)
        app.add_exception_handler(HTTPException, _refused)
        for name in self._templates:
            self._environment.get_template(name)  # compiled now, so that the first page need not wait for it

    def address(self, base: str) -> Callable[[str], str]:
        """From a file's name to its address below `base`."""
        return lambda name: f"{base}/static/{name}?v={_tag(self._places[name], name)}"

    def html(
        self,
        request: Request,
        template: str,
        content: Mapping[str, Any],
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> HTMLResponse:
        """A page, or a piece of one: `base` and `static` are there for addresses."""
        base = base_of(request)
        text = self._environment.get_template(template).render(
            {"base": base, "static": self.address(base), **content}
        )
        return HTMLResponse(text.encode("utf-8", "replace"), status, dict(headers or {}))

    @cached_property
    def _environment(self) -> Environment:
        environment = Environment(
            loader=ChoiceLoader(
                [PackageLoader(self._package, "templates"), PackageLoader(_SHARED, "templates")]
            ),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters |= {
            "number": lambda value: f"{value:,}",
            "breakable": breakable,
            "moment": lambda at: stamp(at.isoformat()),
        }
        return environment


def base_of(request: Request) -> str:
    """Where the application is mounted, without a slash at its end."""
    base = request.scope.get("root_path", "")
    return base if isinstance(base, str) else ""


@cache
def _bytes(package: str, name: str) -> bytes:
    return files(package).joinpath("static", *name.split("/")).read_bytes()


@cache
def _tag(package: str, name: str) -> str:
    return sha256(_bytes(package, name)).hexdigest()[:16]


def _failed(_: Request, error: Exception) -> Response:
    """What went wrong, in its own words, for the line in which the page says so; 409 is a piece of it."""
    return PlainTextResponse(
        str(error).encode("utf-8", "replace"), 507 if isinstance(error, StorageError) else 400
    )


def _lost(_: Request, error: Exception) -> Response:
    """A file that is gone, or was closed to us, while the pages were served."""
    assert isinstance(error, OSError)
    text = f"{error.filename or 'A file'} cannot be read: {error.strerror or error}"
    return PlainTextResponse(text.encode("utf-8", "replace"), 400)


def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return PlainTextResponse(str(error.detail), error.status_code, headers=error.headers)
