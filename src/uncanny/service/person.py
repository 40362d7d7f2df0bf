"""Whose words a request brings: the name that a page has asked for, kept in a cookie."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import PlainTextResponse, Response
from pydantic import StringConstraints

from uncanny.service.safety import Body, Words

COOKIE: Final = "uncanny_reviewer"
_YEAR_S: Final = 365 * 24 * 3600
_LONGEST: Final = 200

# Who a request is from; None where that is not known yet.
WhoAsks = Callable[[Request], str | None]


class _Name(Body):
    name: Annotated[Words, StringConstraints(max_length=_LONGEST)]


def by_cookie(request: Request) -> str | None:
    """The name that the page has asked for."""
    try:
        name = bytes.fromhex(request.cookies.get(COOKIE, "")).decode().strip()
    except ValueError:
        return None
    return name[:_LONGEST] or None


def who_asks(name: str | WhoAsks | None) -> WhoAsks:
    """From a name that is the same for all requests, a way to tell it, or None: the page asks."""
    if name is None:
        return by_cookie
    return name if callable(name) else lambda _: name


def known(request: Request, who: WhoAsks) -> str:
    """Who asks. Raises HTTPException where that is not known."""
    name = who(request)
    if name is None:
        raise HTTPException(401, "Say who you are first: load the page again.")
    return name


def take_names(app: FastAPI, path: str, *, may_choose: bool) -> None:
    """Add to an application what keeps the name that a person gives."""

    @app.post(path)
    def choose(body: _Name) -> Response:
        name = " ".join(body.name.split())
        if not may_choose or not name:
            raise HTTPException(422, "Give a name.")
        response = PlainTextResponse("")
        # Cookies take few characters, names have all.
        response.set_cookie(
            COOKIE, name.encode().hex(), max_age=_YEAR_S, path="/", httponly=True, samesite="strict"
        )
        return response
