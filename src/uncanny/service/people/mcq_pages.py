"""The page on which people answer MCQ items: one question at a time, one key an answer.

A person sees what a model is sent and nothing else: no right answers, no names of items or files, nothing of
what others answered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response

from uncanny.service.people.answers import PeopleAnswers
from uncanny.service.people.page import Key, PeoplePage, Seconds, stage
from uncanny.service.person import WhoAsks, known
from uncanny.service.pictures import Picture
from uncanny.service.safety import Body


class _Answer(Body):
    key: Key
    question: Literal["q1", "q2", "q3", "q4"]
    choice: Literal["yes", "no", "A", "B", "C", "D", "E"]
    seconds: Seconds | None = None


def mcq_people_app(answers: PeopleAnswers, *, person: str | WhoAsks | None = None) -> FastAPI:
    """The application for one set. `person` is who answers, or how to tell that from a request; without it
    the page asks. What guards it (`safety.Guard`) is around it, once for all that is served."""
    page = PeoplePage("mcq", lambda request, name, notice: _content(request, answers, name, notice), person)

    @page.app.get("/question", response_class=HTMLResponse)
    def question(request: Request) -> HTMLResponse:
        return page.panel(request, known(request, page.who))

    @page.app.post("/answer")
    def answer(request: Request, body: _Answer) -> Response:
        return page.step(
            request, lambda name: answers.answer(name, body.key, body.question, body.choice, body.seconds)
        )

    def picture(parts: Mapping[str, str]) -> Picture | None:
        if parts["which"] not in ("original", "boxes"):
            return None
        return answers.picture(parts["key"], boxed=parts["which"] == "boxes")

    page.take_back(answers.undo, "Taken back: answer it anew.")
    page.show("/{key}/{which}", picture)
    return page.app


def _content(request: Request, answers: PeopleAnswers, name: str, notice: str) -> dict[str, Any]:
    view = answers.current(name)
    done, of = answers.progress(name)
    content = {"person": name, "view": view, "done": done, "of": of, "notice": notice}
    if view is None:
        return content | {"stage": "", "preview": ""}

    def address(key: str, *, boxed: bool) -> str:
        return f"{key}/{'boxes' if boxed else 'original'}"

    return content | stage(
        request,
        answers.tag,
        key=f"{view.key}-{view.question}",
        picture=address(view.key, boxed=view.boxed),
        following=None if view.next is None else address(view.next[0], boxed=view.next[1]),
        alt="The picture that the question is about",
    )
