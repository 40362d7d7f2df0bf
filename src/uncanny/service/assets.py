"""What pages are made of: templates, and files beside them that browsers keep until they change.

The common ones lie in this package's `templates` and `static`; an application adds its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final
from urllib.parse import quote

from fastapi import APIRouter, FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from uncanny.errors import StorageError, UncannyError
from uncanny.eval.common.pages.page import breakable, stamp
from uncanny.service.safety import BoundedRoute
from uncanny.wording import rendered

_SHARED: Final = "uncanny.service"
# Where a file lies: package, then folders and name within.
_Place = tuple[str, ...]
_COMMON: Final = (
    *("page.js", "page.css", "icon.svg"),
    *("vendor/htmx.min.js", "vendor/annotorious.js", "vendor/annotorious.css"),
)
# The style that pages of the service share with the pages that commands write.
_RUN_STYLE: Final[Mapping[str, _Place]] = {"run.css": ("uncanny.eval.common", "templates", "run.css")}
_MEDIA_TYPES: Final[Mapping[str, str]] = {
    "js": "text/javascript",
    "css": "text/css",
    "svg": "image/svg+xml",
}
# An address that changes with what it leads to.
KEPT: Final[Mapping[str, str]] = {"Cache-Control": "private, max-age=31536000, immutable"}


class Assets:
    """Templates and static files of an application in `package`, `static` by their names there."""

    def __init__(self, package: str, static: Sequence[str], templates: Sequence[str] = ()) -> None:
        """`templates` are compiled as soon as the files are served, so that no page has to wait for it."""
        self._package, self._templates = package, tuple(templates)
        of_package = {**dict.fromkeys(_COMMON, _SHARED), **dict.fromkeys(static, package)}
        self._places: dict[str, _Place] = {
            **{name: (where, "static", *name.split("/")) for name, where in of_package.items()},
            **_RUN_STYLE,
        }

    def serve(self, app: FastAPI | APIRouter) -> None:
        """Add the static files to an application."""

        @app.get("/static/{name:path}")
        def static(name: str) -> Response:
            if name not in self._places:
                raise HTTPException(404, "There is no such file.")
            media_type = _MEDIA_TYPES[name.rpartition(".")[2]]
            return Response(_bytes(self._places[name]), media_type=media_type, headers=dict(KEPT))

        for name in self._templates:
            self._environment.get_template(name)

    def address(self, base: str) -> Callable[[str], str]:
        """From a file's name to its address below `base`."""
        return lambda name: f"{base}/static/{name}?v={_tag(self._places[name])}"

    def html(
        self,
        request: Request,
        template: str,
        content: Mapping[str, Any],
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> HTMLResponse:
        """A page, or a piece of one: `base` and `static` are there for addresses.

        `content` may have a `base` of its own.
        """
        base = content.get("base", base_of(request))
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
    """Where the application is mounted, as addresses have it, without a slash at its end."""
    return quote(request.scope.get("root_path", ""))


def app_base_of(request: Request) -> str:
    """The same of the outermost application, also where a request goes to one that is mounted in it."""
    return quote(request.scope.get("app_root_path", request.scope.get("root_path", "")))


def page_app(assets: Assets) -> FastAPI:
    """An application of pages made with `assets`, which answers errors in their own words."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    app.router.route_class = BoundedRoute
    assets.serve(app)
    app.add_exception_handler(UncannyError, _failed)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(OSError, _lost)
    app.add_exception_handler(HTTPException, _refused)
    return app


@cache
def _bytes(place: _Place) -> bytes:
    package, *path = place
    return files(package).joinpath(*path).read_bytes()


@cache
def _tag(place: _Place) -> str:
    return sha256(_bytes(place)).hexdigest()[:16]


def _failed(_: Request, error: Exception) -> Response:
    """What went wrong, in its own words, for the line in which the page says so; 409 is a piece of it."""
    assert isinstance(error, UncannyError)
    text = rendered(error.text, "service")
    return PlainTextResponse(text.encode("utf-8", "replace"), 507 if isinstance(error, StorageError) else 400)


def _lost(_: Request, error: Exception) -> Response:
    """A file that is gone, or was closed to us, while the pages were served."""
    assert isinstance(error, OSError)
    text = f"{error.filename or 'A file'} cannot be read: {error.strerror or error}"
    return PlainTextResponse(text.encode("utf-8", "replace"), 400)


def _invalid(_: Request, error: Exception) -> Response:
    """What does not fit, by its field, and never what was in it."""
    assert isinstance(error, RequestValidationError)
    problems = error.errors()
    if (problems[0]["type"], *problems[0]["loc"]) == ("missing", "body") or problems[0][
        "type"
    ] == "json_invalid":
        return PlainTextResponse("The body is not valid JSON.", 400)
    wrong = "; ".join(
        f"{'.'.join(map(str, each['loc'][1:])) or 'body'}: {each['msg']}" for each in problems[:5]
    )
    return PlainTextResponse(f"{wrong}.", 422)


def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return PlainTextResponse(str(error.detail), error.status_code, headers=error.headers)
