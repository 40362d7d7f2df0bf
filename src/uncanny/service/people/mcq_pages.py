"""The page on which people answer MCQ items: one question at a time, one key an answer.

A person sees what a model is sent and nothing else: no right answers, no names of items or files, nothing of
what others answered.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import orjson
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import Field, StringConstraints

from uncanny.errors import ReviewConflictError
from uncanny.service.assets import KEPT, Assets, base_of, page_app
from uncanny.service.people.answers import PeopleAnswers
from uncanny.service.person import WhoAsks, by_cookie, known, take_names, who_asks
from uncanny.service.pictures import Pictures, Shown
from uncanny.service.safety import Body, json_body

_ASSETS: Final = Assets(
    "uncanny.service.people",
    ("people.css", "mcq.js"),
    ("mcq.html.j2", "mcq_panel.html.j2"),
)
_DAY_S: Final = 86_400
_WHICH: Final = ("original", "boxes")


class _Answer(Body):
    key: Annotated[str, StringConstraints(max_length=64)]
    question: Literal["q1", "q2", "q3", "q4"]
    choice: Literal["yes", "no", "A", "B", "C", "D", "E"]
    seconds: Annotated[float, Field(ge=0, le=_DAY_S, allow_inf_nan=False)] | None = None


class _Undo(Body):
    pass


def mcq_people_app(answers: PeopleAnswers, *, person: str | WhoAsks | None = None) -> FastAPI:
    """The application for one set. `person` is who answers, or how to tell that from a request; without it
    the page asks. What guards it (`safety.Guard`) is around it, once for all that is served."""
    who = who_asks(person)
    pictures = Pictures()
    app = page_app(_ASSETS)
    take_names(app, "/person", may_choose=person is None)

    @app.get("/", response_class=HTMLResponse)
    def page(request: Request) -> HTMLResponse:
        name = who(request)
        content: dict[str, Any] = {"person": name, "may_choose": who is by_cookie}
        if name is not None:
            content |= _content(request, answers, name)
        return _ASSETS.html(request, "mcq.html.j2", content)

    def panel(request: Request, name: str, notice: str = "", status: int = 200) -> HTMLResponse:
        content = _content(request, answers, name, notice)
        return _ASSETS.html(request, "mcq_panel.html.j2", content, status=status)

    @app.get("/question", response_class=HTMLResponse)
    def question(request: Request) -> HTMLResponse:
        return panel(request, known(request, who))

    @app.post("/answer")
    def answer(request: Request, body: Annotated[_Answer, Depends(json_body(_Answer))]) -> Response:
        name = known(request, who)
        try:
            answers.answer(name, body.key, body.question, body.choice, body.seconds)
        except ReviewConflictError as conflict:
            return panel(request, name, str(conflict), 409)
        return panel(request, name)

    @app.post("/undo")
    def undo(request: Request, body: Annotated[_Undo, Depends(json_body(_Undo))]) -> Response:  # noqa: ARG001
        name = known(request, who)
        try:
            answers.undo(name)
        except ReviewConflictError as conflict:
            return panel(request, name, str(conflict), 409)
        return panel(request, name, "Taken back: answer it anew.")

    def picture(request: Request, size: Literal["full", "preview"], key: str, which: str) -> Response:
        known(request, who)
        file = answers.picture(key, boxed=which == "boxes") if which in _WHICH else None
        shown = None if file is None else getattr(pictures, size)(file)
        if not isinstance(shown, Shown):
            raise HTTPException(404, "The picture cannot be shown.")
        return Response(shown.data, media_type=shown.media_type, headers=dict(KEPT))

    @app.get("/image/{key}/{which}")
    def full(request: Request, key: str, which: str) -> Response:
        return picture(request, "full", key, which)

    @app.get("/preview/{key}/{which}")
    def preview(request: Request, key: str, which: str) -> Response:
        return picture(request, "preview", key, which)

    return app


def _content(request: Request, answers: PeopleAnswers, name: str, notice: str = "") -> dict[str, Any]:
    view = answers.current(name)
    done, of = answers.progress(name)
    content = {
        "person": name,
        "view": view,
        "done": done,
        "of": of,
        "notice": notice,
        "stage": "",
        "preview": "",
    }
    if view is None:
        return content
    base, which = base_of(request), "boxes" if view.boxed else "original"
    following = answers.following(name)
    ahead = (
        None
        if following is None
        else f"{base}/preview/{following[0]}/{'boxes' if following[1] else 'original'}?v={answers.tag}"
    )
    preview = f"{base}/preview/{view.key}/{which}?v={answers.tag}"
    stage = {
        "key": f"{view.key}-{view.question}",
        "image": f"{base}/image/{view.key}/{which}?v={answers.tag}",
        "preview": preview,
        "next": ahead,
        "width": None,
        "height": None,
        "alt": "The picture that the question is about",
        "box": None,
    }
    return content | {"stage": orjson.dumps(stage).decode(), "preview": preview}
