"""The page on which people tell edited images from originals, and draw where the edit is."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import orjson
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from pydantic import Field, StringConstraints

from uncanny.errors import ReviewConflictError
from uncanny.schema import Box
from uncanny.service.assets import KEPT, Assets, base_of, page_app
from uncanny.service.people.judging import MOST_BOXES, PeopleJudging
from uncanny.service.person import WhoAsks, by_cookie, known, take_names, who_asks
from uncanny.service.pictures import Pictures, Shown
from uncanny.service.safety import Body, Words, json_body

_ASSETS: Final = Assets(
    "uncanny.service.people",
    ("people.css", "edits.js"),
    ("edits.html.j2", "edits_panel.html.j2"),
)
_DAY_S: Final = 86_400


class _Judgement(Body):
    key: Annotated[str, StringConstraints(max_length=64)]
    judged: Literal["real", "edited"]
    boxes: Annotated[tuple[Box, ...], Field(max_length=MOST_BOXES)] = ()
    seconds: Annotated[float, Field(ge=0, le=_DAY_S, allow_inf_nan=False)] | None = None


class _Profile(Body):
    answers: Annotated[
        dict[Annotated[str, StringConstraints(max_length=60)], Words | None], Field(max_length=40)
    ]


class _Undo(Body):
    pass


def edits_people_app(judging: PeopleJudging, *, person: str | WhoAsks | None = None) -> FastAPI:
    """The application for one set of pairs. `person` is who judges, or how to tell that from a request;
    without it the page asks. What guards it (`safety.Guard`) is around it, once for all that is served."""
    who = who_asks(person)
    pictures = Pictures()
    app = page_app(_ASSETS)
    take_names(app, "/person", may_choose=person is None)

    @app.get("/", response_class=HTMLResponse)
    def page(request: Request) -> HTMLResponse:
        name = who(request)
        content: dict[str, Any] = {"person": name, "may_choose": who is by_cookie, "form": None}
        if name is not None and judging.wants_profile(name):
            content |= {"form": judging.form}
        elif name is not None:
            content |= _content(request, judging, name)
        return _ASSETS.html(request, "edits.html.j2", content)

    def panel(request: Request, name: str, notice: str = "", status: int = 200) -> HTMLResponse:
        content = _content(request, judging, name, notice, rested="rested" in request.query_params)
        return _ASSETS.html(request, "edits_panel.html.j2", content, status=status)

    @app.get("/picture", response_class=HTMLResponse)
    def trial(request: Request) -> HTMLResponse:
        return panel(request, known(request, who))

    @app.post("/profile")
    def profile(request: Request, body: Annotated[_Profile, Depends(json_body(_Profile))]) -> Response:
        judging.keep_profile(known(request, who), body.answers)
        return PlainTextResponse("")

    @app.post("/judge")
    def judge(request: Request, body: Annotated[_Judgement, Depends(json_body(_Judgement))]) -> Response:
        name = known(request, who)
        try:
            judging.judge(name, body.key, body.judged, body.boxes, body.seconds)
        except ReviewConflictError as conflict:
            return panel(request, name, str(conflict), 409)
        return panel(request, name)

    @app.post("/undo")
    def undo(request: Request, body: Annotated[_Undo, Depends(json_body(_Undo))]) -> Response:  # noqa: ARG001
        name = known(request, who)
        try:
            judging.undo(name)
        except ReviewConflictError as conflict:
            return panel(request, name, str(conflict), 409)
        return panel(request, name, "Taken back: judge it anew.")

    def picture(request: Request, size: Literal["full", "preview"], key: str) -> Response:
        known(request, who)
        file = judging.picture(key)
        shown = None if file is None else getattr(pictures, size)(file)
        if not isinstance(shown, Shown):
            raise HTTPException(404, "The picture cannot be shown.")
        return Response(shown.data, media_type=shown.media_type, headers=dict(KEPT))

    @app.get("/image/{key}")
    def full(request: Request, key: str) -> Response:
        return picture(request, "full", key)

    @app.get("/preview/{key}")
    def preview(request: Request, key: str) -> Response:
        return picture(request, "preview", key)

    return app


def _content(
    request: Request, judging: PeopleJudging, name: str, notice: str = "", *, rested: bool = False
) -> dict[str, Any]:
    view = judging.current(name)
    done, of = judging.progress(name)
    content: dict[str, Any] = {"person": name, "view": view, "done": done, "of": of, "notice": notice}
    content["resting"] = view is not None and view.after_break and not rested and not notice
    if view is None or content["resting"]:
        return content
    base = base_of(request)

    def address(size: str, key: str) -> str:
        return f"{base}/{size}/{key}?v={judging.tag}"

    stage = {
        "key": view.key,
        "image": address("image", view.key),
        "preview": address("preview", view.key),
        "next": None if view.next is None else address("preview", view.next),
        "width": view.width,
        "height": view.height,
        "alt": "The picture to judge",
        "box": None,
    }
    return content | {"stage": orjson.dumps(stage).decode(), "preview": stage["preview"]}
