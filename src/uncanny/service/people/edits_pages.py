"""The page on which people tell edited images from originals, and draw where the edit is."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, Response
from pydantic import Field, StringConstraints

from uncanny.schema import Box
from uncanny.service.people.judging import MOST_BOXES, PeopleJudging
from uncanny.service.people.page import Key, PeoplePage, Seconds, stage
from uncanny.service.person import WhoAsks, known
from uncanny.service.safety import Body, Words


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

    page.take_back(judging.undo, "Taken back: judge it anew.")
    page.show("/{key}", lambda parts: judging.picture(parts["key"]))
    return page.app


def _content(request: Request, judging: PeopleJudging, name: str, notice: str) -> dict[str, Any]:
    view = judging.current(name)
    done, of = judging.progress(name)
    content: dict[str, Any] = {"person": name, "view": view, "done": done, "of": of, "notice": notice}
    rested = "rested" in request.query_params
    content["resting"] = view is not None and view.after_break and not rested and not notice
    if view is None or content["resting"]:
        return content
    alt, size = "The picture to judge", (view.width, view.height)
    return content | stage(
        request, judging.tag, key=view.key, picture=view.key, following=view.next, alt=alt, size=size
    )
