"""Pages that put one thing after another to a person, and those on which edits are told from originals, and
rated beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Generic, Literal, TypeVar, get_args

import orjson
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from pydantic import Field, StringConstraints

from uncanny.errors import ReviewConflictError
from uncanny.eval.edits.people.data import Change, Form, Side
from uncanny.schema import Box
from uncanny.service.assets import Assets, base_of, page_app
from uncanny.service.people.judging import MOST_BOXES, PeopleJudging
from uncanny.service.people.rating import PeopleRating
from uncanny.service.people.session import PeopleSession
from uncanny.service.people.trials import TrialView
from uncanny.service.person import WhoAsks, by_cookie, known, take_names, who_asks
from uncanny.service.pictures import Picture, serve_pictures
from uncanny.service.safety import Body, Words

V = TypeVar("V")
_DAY_S: Final = 86_400
# What a page calls an item or a picture by.
Key = Annotated[str, StringConstraints(max_length=64)]
# How long a person took, by the page's clock.
Seconds = Annotated[float, Field(ge=0, le=_DAY_S, allow_inf_nan=False)]


class _Undo(Body):
    pass


class PeoplePage(Generic[V]):
    """An application (`app`) with a page of which each step brings the next panel.

    `task` is what its script and its templates are called: `TASK.js`, `TASK.html.j2`, `TASK_panel.html.j2`.
    `session` says what comes now, and `stage` what the script draws of it. `form` is what a person has to be
    asked first. `person` is who answers, or how to tell that from a request; without it the page asks. What
    guards the application (`safety.Guard`) is around it, once for all that is served.
    """

    def __init__(
        self,
        task: str,
        session: PeopleSession[Any, Any, V],
        stage: Callable[[Request, V], Mapping[str, str]],
        person: str | WhoAsks | None,
        form: Callable[[str], Form | None] = lambda _: None,
    ) -> None:
        page, self._panel = f"{task}.html.j2", f"{task}_panel.html.j2"
        static = ("people.css", "steps.js", f"{task}.js")
        self._assets = Assets("uncanny.service.people", static, (page, self._panel))
        self._session, self._stage = session, stage
        self.who = who_asks(person)
        self.app: Final[FastAPI] = page_app(self._assets)
        take_names(self.app, "/person", may_choose=person is None)

        @self.app.get("/", response_class=HTMLResponse)
        def whole(request: Request) -> HTMLResponse:
            name = self.who(request)
            about: dict[str, Any] = {"task": task, "person": name, "form": None, "stage": "", "preview": ""}
            about["may_choose"] = self.who is by_cookie
            if name is not None:
                first = form(name)
                about |= self._content(request, name, "") if first is None else {"form": first}
            return self._assets.html(request, page, about)

        @self.app.get("/panel", response_class=HTMLResponse)
        def panel(request: Request) -> HTMLResponse:
            return self.panel(request, known(request, self.who))

        @self.app.post("/undo")
        def take_back(
            request: Request,
            body: _Undo,  # noqa: ARG001
        ) -> Response:
            return self.step(request, session.undo, "Undone. Answer it again.")

    def panel(self, request: Request, name: str, notice: str = "", status: int = 200) -> HTMLResponse:
        """Where this person is now."""
        return self._assets.html(request, self._panel, self._content(request, name, notice), status=status)

    def _content(self, request: Request, name: str, notice: str) -> Mapping[str, Any]:
        view = self._session.current(name)
        done, of = self._session.progress(name)
        rests = self._session.rests(name) and "rested" not in request.query_params and not notice
        content = {
            **{"person": name, "view": view, "done": done, "of": of, "notice": notice},
            **{"unshown": self._session.unshown(name), "resting": view is not None and rests},
            **{"stage": "", "preview": ""},
        }
        return content if view is None or rests else {**content, **self._stage(request, view)}

    def step(self, request: Request, act: Callable[[str], None], notice: str = "") -> Response:
        """Do what somebody asks for in their name, and show what comes then; 409 where that cannot be now."""
        name = known(request, self.who)
        try:
            act(name)
        except ReviewConflictError as conflict:
            return self.panel(request, name, str(conflict), 409)
        return self.panel(request, name, notice)

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
) -> dict[str, str]:
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
    return {"stage": orjson.dumps(content).decode(), "preview": address("preview", picture)}


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

    def one(request: Request, view: TrialView) -> dict[str, str]:
        (size,) = view.sizes.values()
        alt = "The picture to judge"
        return stage(
            request, judging.tag, key=view.key, picture=view.key, following=view.next, alt=alt, size=size
        )

    def form(name: str) -> Form | None:
        return judging.form if judging.wants_profile(name) else None

    page = PeoplePage("edits", judging, one, person, form)

    @page.app.post("/profile")
    def profile(request: Request, body: _Profile) -> Response:
        judging.keep_profile(known(request, page.who), body.answers)
        return PlainTextResponse("")

    @page.app.post("/judge")
    def judge(request: Request, body: _Judgement) -> Response:
        return page.step(
            request, lambda name: judging.judge(name, body.key, body.judged, body.boxes, body.seconds)
        )

    page.show("/{key}", lambda parts: judging.picture(parts["key"]))
    return page.app


class _Rated(Body):
    key: Key
    change: Change
    seconds: Seconds | None = None


def edits_rate_app(rating: PeopleRating, *, person: str | WhoAsks | None = None) -> FastAPI:
    """The application on which the pairs of `rating` are rated; `person` is as in `edits_people_app`."""
    page = PeoplePage("rate", rating, lambda request, view: _both(request, rating.tag, view), person)

    @page.app.post("/rate")
    def rate(request: Request, body: _Rated) -> Response:
        return page.step(request, lambda name: rating.rate(name, body.key, body.change, body.seconds))

    def picture(parts: Mapping[str, str]) -> Picture | None:
        side = next((each for each in _SIDES if each == parts["side"]), None)
        return None if side is None else rating.picture(parts["key"], side)

    page.show("/{key}/{side}", picture)
    return page.app


_SIDES: Final[tuple[Side, ...]] = get_args(Side)


def _both(request: Request, tag: str, view: TrialView) -> dict[str, str]:
    """Where the two pictures of a pair are, and those that come after them, which the script loads ahead."""

    def address(which: str, key: str, side: Side) -> str:
        return f"{base_of(request)}/{which}/{key}/{side}?v={tag}"

    sides = {
        side: {
            **{which: address(which, view.key, side) for which in ("image", "preview")},
            "size": view.sizes[side],
        }
        for side in _SIDES
    }
    ahead = [] if view.next is None else [address("preview", view.next, side) for side in _SIDES]
    return {"stage": orjson.dumps({"key": view.key, "sides": sides, "next": ahead}).decode()}
