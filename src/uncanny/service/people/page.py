"""What the pages share that put one thing after another to a person: name, steps, the way back, pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final

import orjson
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import Field, StringConstraints

from uncanny.errors import ReviewConflictError
from uncanny.eval.edits.people.data import Form
from uncanny.service.assets import Assets, base_of, page_app
from uncanny.service.person import WhoAsks, by_cookie, known, take_names, who_asks
from uncanny.service.pictures import Picture, serve_pictures
from uncanny.service.safety import Body

_DAY_S: Final = 86_400
# What a page calls an item or a picture by.
Key = Annotated[str, StringConstraints(max_length=64)]
# How long a person took, by the page's clock.
Seconds = Annotated[float, Field(ge=0, le=_DAY_S, allow_inf_nan=False)]


class _Undo(Body):
    pass


class PeoplePage:
    """An application (`app`) with a page of which each step brings the next panel.

    `task` is what its templates are called: `TASK.html.j2` and `TASK_panel.html.j2`, which get what `content`
    gives for a request, a person and a notice. `form` is what a person has to be asked first. `person` is who
    answers, or how to tell that from a request; without it the page asks. What guards the application
    (`safety.Guard`) is around it, once for all that is served.
    """

    def __init__(
        self,
        task: str,
        content: Callable[[Request, str, str], Mapping[str, Any]],
        person: str | WhoAsks | None,
        form: Callable[[str], Form | None] = lambda _: None,
    ) -> None:
        page, self._panel = f"{task}.html.j2", f"{task}_panel.html.j2"
        self._assets = Assets("uncanny.service.people", ("people.css", f"{task}.js"), (page, self._panel))
        self._content = content
        self.who = who_asks(person)
        self.app: Final[FastAPI] = page_app(self._assets)
        take_names(self.app, "/person", may_choose=person is None)

        @self.app.get("/", response_class=HTMLResponse)
        def whole(request: Request) -> HTMLResponse:
            name = self.who(request)
            about: dict[str, Any] = {"person": name, "may_choose": self.who is by_cookie, "form": None}
            if name is not None:
                first = form(name)
                about |= content(request, name, "") if first is None else {"form": first}
            return self._assets.html(request, page, about)

    def panel(self, request: Request, name: str, notice: str = "", status: int = 200) -> HTMLResponse:
        """Where this person is now."""
        content = self._content(request, name, notice)
        return self._assets.html(request, self._panel, content, status=status)

    def step(self, request: Request, act: Callable[[str], None], notice: str = "") -> Response:
        """Do what somebody asks for in their name, and show what comes then; 409 where that cannot be now."""
        name = known(request, self.who)
        try:
            act(name)
        except ReviewConflictError as conflict:
            return self.panel(request, name, str(conflict), 409)
        return self.panel(request, name, notice)

    def take_back(self, undo: Callable[[str], None], notice: str) -> None:
        """Add the way back: `undo` for a person."""

        @self.app.post("/undo")
        def take_back(
            request: Request,
            body: _Undo,  # noqa: ARG001
        ) -> Response:
            return self.step(request, undo, notice)

    def show(self, path: str, picture: Callable[[Mapping[str, str]], Picture | None]) -> None:
        """Add pictures at `/image` and `/preview` with `path`: `picture` says which one from its parts."""

        def of(request: Request) -> Picture | None:
            known(request, self.who)
            return picture(request.path_params)

        serve_pictures(self.app, path, of)


def stage(
    request: Request,
    tag: str,
    *,
    key: str,
    picture: str,
    following: str | None,
    alt: str,
    size: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """What the script draws, and the picture that is there before it: `following` is loaded ahead."""

    def address(which: str, name: str) -> str:
        return f"{base_of(request)}/{which}/{name}?v={tag}"

    width, height = size or (None, None)
    content = {
        "key": key,
        "image": address("image", picture),
        "preview": address("preview", picture),
        "next": None if following is None else address("preview", following),
        "width": width,
        "height": height,
        "alt": alt,
        "box": None,
    }
    return {"stage": orjson.dumps(content).decode(), "preview": content["preview"]}
