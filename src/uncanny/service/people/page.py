"""Pages that put one thing after another to a person, and those on which edits are told from originals, and
rated beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal, get_args

import orjson
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from pydantic import Field, StringConstraints

from uncanny.errors import ReviewConflictError
from uncanny.eval.edits.people.data import Change, Form, Side
from uncanny.schema import Box
from uncanny.service.assets import Assets, base_of, page_app
from uncanny.service.people.judging import MOST_BOXES, PeopleJudging
from uncanny.service.people.rating import PairView, PeopleRating
from uncanny.service.person import WhoAsks, by_cookie, known, take_names, who_asks
from uncanny.service.pictures import Picture, serve_pictures
from uncanny.service.safety import Body, Words

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


class _Judgement(Body):
    key: Key
    judged: Literal["real", "edited"]
    boxes: Annotated[tuple[Box, ...], Field(max_length=MOST_BOXES)] = ()
    seconds: Seconds | None = None


class _Profile(Body):
    answers: Annotated[
        dict[Annotated[str, StringConstraints(max_length=60)], Words | None], Field(max_length=40)
    ]


def edits_people_app(judging: PeopleJudging, *, person: str | WhoAsks | None = None) -> FastAPI:
    """The application for one set of pairs. `person` is who judges, or how to tell that from a request;
    without it the page asks. What guards it (`safety.Guard`) is around it, once for all that is served."""
    page = PeoplePage(
        "edits",
        lambda request, name, notice: _content(request, judging, name, notice),
        person,
        form=lambda name: judging.form if judging.wants_profile(name) else None,
    )

    @page.app.get("/picture", response_class=HTMLResponse)
    def trial(request: Request) -> HTMLResponse:
        return page.panel(request, known(request, page.who))

    @page.app.post("/profile")
    def profile(request: Request, body: _Profile) -> Response:
        judging.keep_profile(known(request, page.who), body.answers)
        return PlainTextResponse("")

    @page.app.post("/judge")
    def judge(request: Request, body: _Judgement) -> Response:
        return page.step(
            request, lambda name: judging.judge(name, body.key, body.judged, body.boxes, body.seconds)
        )

    page.take_back(judging.undo, "Undone. Judge it again.")
    page.show("/{key}", lambda parts: judging.picture(parts["key"]))
    return page.app


def _content(request: Request, judging: PeopleJudging, name: str, notice: str) -> dict[str, Any]:
    view = judging.current(name)
    done, of = judging.progress(name)
    content: dict[str, Any] = {"person": name, "view": view, "done": done, "of": of, "notice": notice}
    content["unshown"] = judging.unshown(name)
    rested = "rested" in request.query_params
    content["resting"] = view is not None and view.after_break and not rested and not notice
    if view is None or content["resting"]:
        return content
    alt, size = "The picture to judge", (view.width, view.height)
    return content | stage(
        request, judging.tag, key=view.key, picture=view.key, following=view.next, alt=alt, size=size
    )


class _Rated(Body):
    key: Key
    change: Change
    seconds: Seconds | None = None


def edits_rate_app(rating: PeopleRating, *, person: str | WhoAsks | None = None) -> FastAPI:
    """The application on which the pairs of `rating` are rated; `person` is as in `edits_people_app`."""
    page = PeoplePage(
        "rate", lambda request, name, notice: _pair_content(request, rating, name, notice), person
    )

    @page.app.get("/pair", response_class=HTMLResponse)
    def pair(request: Request) -> HTMLResponse:
        return page.panel(request, known(request, page.who))

    @page.app.post("/rate")
    def rate(request: Request, body: _Rated) -> Response:
        return page.step(request, lambda name: rating.rate(name, body.key, body.change, body.seconds))

    def picture(parts: Mapping[str, str]) -> Picture | None:
        side = next((each for each in _SIDES if each == parts["side"]), None)
        return None if side is None else rating.picture(parts["key"], side)

    page.take_back(rating.undo, "Undone. Rate it again.")
    page.show("/{key}/{side}", picture)
    return page.app


_SIDES: Final[tuple[Side, ...]] = get_args(Side)


def _pair_content(request: Request, rating: PeopleRating, name: str, notice: str) -> dict[str, Any]:
    view = rating.current(name)
    done, of = rating.progress(name)
    resting = view is not None and view.after_break and "rested" not in request.query_params and not notice
    return {
        **{"person": name, "view": view, "done": done, "of": of, "notice": notice, "resting": resting},
        "unshown": rating.unshown(name),
        "stage": None if view is None or resting else _both(request, rating.tag, view),
    }


def _both(request: Request, tag: str, view: PairView) -> str:
    """Where the two pictures of a pair are, and those that come after them, which the script loads ahead."""

    def address(which: str, key: str, side: Side) -> str:
        return f"{base_of(request)}/{which}/{key}/{side}?v={tag}"

    sides = {
        side: {
            **{which: address(which, view.key, side) for which in ("image", "preview")},
            "size": getattr(view, side),
        }
        for side in _SIDES
    }
    ahead = [] if view.next is None else [address("preview", view.next, side) for side in _SIDES]
    return orjson.dumps({"key": view.key, "sides": sides, "next": ahead}).decode()
