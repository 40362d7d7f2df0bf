"""The pages of MCQ: items are answered on one, question by question, checked on another, written on a third.

A person who answers sees what a model is sent and nothing else: no right answers, no names of items or files,
nothing of what others answered. What is written there is checked at every stroke.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal, get_args
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import Field, StringConstraints

from uncanny.errors import Problem
from uncanny.eval.mcq.data.items import OPTIONS, ArtifactType, Letter, Split
from uncanny.files import dump_json
from uncanny.records.reviews import Decision
from uncanny.schema import Box
from uncanny.service.assets import Assets, base_of, page_app
from uncanny.service.people.answers import ItemsSession, PeopleAnswers, QuestionView
from uncanny.service.people.authoring import Entry, ItemsFile
from uncanny.service.people.checking import ItemView, PeopleChecks
from uncanny.service.people.page import Key, PeoplePage, Seconds, stage
from uncanny.service.person import WhoAsks
from uncanny.service.pictures import Picture, serve_pictures
from uncanny.service.safety import Body, Words

_ASSETS: Final = Assets("uncanny.service.people", ("people.css", "author.js"), ("author.html.j2",))
_Right = Literal["", "A", "B", "C", "D", "E"]
_Line = Annotated[Words, StringConstraints(max_length=2_000)]
_LETTERS: Final = get_args(Letter)


class _Texts(Body):
    A: _Line = ""
    B: _Line = ""
    C: _Line = ""
    D: _Line = ""
    answer: _Right = ""


class _Boxes(Body):
    A: Box | None = None
    B: Box | None = None
    C: Box | None = None
    D: Box | None = None
    answer: _Right = ""


class _Fields(Body):
    id: Annotated[Words, StringConstraints(max_length=200)]
    image: Annotated[Words, StringConstraints(max_length=2_000)] = ""
    split: Split
    pair_id: Annotated[Words, StringConstraints(max_length=200)] = ""
    artifact_type: ArtifactType | Literal[""] = ""
    q1: Literal["", "yes", "no"] = ""
    q2: _Texts = Field(default_factory=_Texts)
    q3: _Boxes = Field(default_factory=_Boxes)
    q4: _Texts = Field(default_factory=_Texts)
    draft: bool = False


class _Change(Body):
    key: Key | None = None
    fields: _Fields


class _Removal(Body):
    key: Key


def mcq_author_app(items: ItemsFile) -> FastAPI:
    """The application for one item file. What guards it (`safety.Guard`) is around it."""
    app = page_app(_ASSETS)

    @app.get("/", response_class=HTMLResponse)
    def page(request: Request) -> HTMLResponse:
        return _ASSETS.html(request, "author.html.j2", _content(request, items))

    @app.post("/check")
    def check(body: _Change) -> Response:
        return JSONResponse({"problems": _problems(items.check(body.key, body.fields.model_dump()))})

    @app.post("/save")
    def save(body: _Change) -> Response:
        entry = items.save(body.key, body.fields.model_dump())
        return JSONResponse({"key": entry.key, "problems": _problems(items.problems(entry))})

    @app.post("/remove")
    def remove(body: _Removal) -> Response:
        items.remove(body.key)
        return JSONResponse({})

    @app.get("/size")
    def size(request: Request) -> Response:
        found = items.size(request.query_params.get("image"))
        return JSONResponse(None if found is None else {"width": found[0], "height": found[1]})

    def picture(request: Request) -> Picture | None:
        path = items.picture(request.query_params.get("image"))
        return None if path is None else Picture(path, None)

    serve_pictures(app, "", picture)
    return app


def _problems(problems: tuple[Problem, ...]) -> list[dict[str, str | None]]:
    return [{"field": each.field, "message": each.message, "severity": each.severity} for each in problems]


def _content(request: Request, items: ItemsFile) -> dict[str, Any]:
    """The item that the address names, a new one, or the first."""
    query = request.query_params
    listed = items.listed()
    entries = items.entries()
    entry: Entry | None = None
    data: dict[str, Any] | None = None
    if (copied := items.find(query.get("partner", ""))) is not None:
        data = items.partner(copied)
    elif "new" in query or not entries:
        unused = items.unused()
        data = {"id": "", "image": unused[0] if unused else "", "split": "art_dg"}
    else:
        entry = items.find(query.get("at", "")) or next(
            (each for each in entries if each.id == query.get("id")), entries[0]
        )
        data = entry.data
    place = next((n for n, each in enumerate(listed) if entry and each.key == entry.key), None)
    image = data.get("image") if data else None
    chosen = image if isinstance(image, str) else ""
    return {
        "file": items.path.name,
        "listed": listed,
        "entry": entry,
        "place": place,
        "previous": listed[place - 1].key if place else None,
        "following": listed[place + 1].key if place is not None and place + 1 < len(listed) else None,
        "faulty": _next_faulty(listed, place),
        "errors": sum(each.errors for each in listed),
        "data": data,
        "fields": dump_json(_as_fields(data or {})).decode(),
        "images": [*([chosen] if chosen and chosen not in items.images else []), *items.images],
        "image": chosen,
        "may_add": bool(items.images),
        "splits": get_args(Split),
        "types": get_args(ArtifactType),
        "letters": _LETTERS,
        "options": OPTIONS,
        "tag": items.tag,
        "has_texts": bool(data and data.get("prompts")),
        "address": lambda key: f"{base_of(request)}/?at={quote(key)}",
    }


def _next_faulty(listed: list[Any], place: int | None) -> str | None:
    at = -1 if place is None else place
    order = [*range(at + 1, len(listed)), *range(max(at, 0))]
    return next((listed[n].key for n in order if listed[n].errors), None)


def _as_fields(data: Mapping[str, Any]) -> dict[str, Any]:
    """What a form shows of an item, as far as it can be read."""

    def text(value: object) -> str:
        return value if isinstance(value, str) else ""

    def part(name: str) -> Mapping[str, Any]:
        value = data.get(name)
        return value if isinstance(value, dict) else {}

    def options(question: str, name: str) -> Mapping[str, Any]:
        value = part(question).get(name)
        return value if isinstance(value, dict) else {}

    def box(value: object) -> list[int] | None:
        try:
            return [round(float(each)) for each in value]  # type: ignore[attr-defined]
        except (TypeError, ValueError, OverflowError):
            return None

    return {
        **{name: text(data.get(name)) for name in ("id", "image", "split", "pair_id", "artifact_type")},
        "q1": text(part("q1").get("answer")),
        **{
            question: {letter: text(options(question, "options").get(letter)) for letter in OPTIONS}
            | {"answer": text(part(question).get("answer"))}
            for question in ("q2", "q4")
        },
        "q3": {letter: box(options("q3", "boxes").get(letter)) for letter in OPTIONS}
        | {"answer": text(part("q3").get("answer"))},
        "draft": bool(data.get("draft")),
    }


# Answering.


class _Answer(Body):
    key: Key
    question: Literal["q1", "q2", "q3", "q4"]
    choice: Literal["yes", "no", "A", "B", "C", "D", "E"]
    seconds: Seconds | None = None


def mcq_people_app(answers: PeopleAnswers, *, person: str | WhoAsks | None = None) -> FastAPI:
    """The application for one set. `person` is who answers, or how to tell that from a request; without it
    the page asks. What guards it (`safety.Guard`) is around it, once for all that is served."""

    def asked(request: Request, view: QuestionView) -> dict[str, str]:
        return stage(
            request,
            answers.tag,
            key=f"{view.key}-{view.question}",
            picture=_picture_address(view.key, boxed=view.boxed),
            following=None if view.next is None else _picture_address(view.next[0], boxed=view.next[1]),
            alt="The picture that the question is about",
        )

    page = PeoplePage("mcq", answers, asked, person)

    @page.app.post("/answer")
    def answer(request: Request, body: _Answer) -> Response:
        return page.step(
            request, lambda name: answers.answer(name, body.key, body.question, body.choice, body.seconds)
        )

    page.show("/{key}/{which}", _picture_of(answers))
    return page.app


# Checking.


class _Check(Body):
    key: Key
    decision: Decision
    note: Annotated[Words, StringConstraints(max_length=2_000)] | None = None
    seconds: Seconds | None = None


def mcq_check_app(checks: PeopleChecks, *, person: str | WhoAsks | None = None) -> FastAPI:
    """The application on which the items of one set are checked; `person` is as in `mcq_people_app`."""

    def shown(request: Request, view: ItemView) -> dict[str, str]:
        return stage(
            request,
            checks.tag,
            key=view.key,
            picture=_picture_address(view.key, boxed=view.boxed),
            following=None if view.next is None else _picture_address(view.next[0], boxed=view.next[1]),
            alt="The picture that the item is about",
        )

    page = PeoplePage("check", checks, shown, person)

    @page.app.post("/check")
    def check(request: Request, body: _Check) -> Response:
        return page.step(
            request, lambda name: checks.check(name, body.key, body.decision, body.note, body.seconds)
        )

    page.show("/{key}/{which}", _picture_of(checks))
    return page.app


def _picture_address(key: str, *, boxed: bool) -> str:
    return f"{key}/{'boxes' if boxed else 'original'}"


def _picture_of(session: ItemsSession[Any, Any, Any]) -> Callable[[Mapping[str, str]], Picture | None]:
    def picture(parts: Mapping[str, str]) -> Picture | None:
        if parts["which"] not in ("original", "boxes"):
            return None
        return session.picture(parts["key"], boxed=parts["which"] == "boxes")

    return picture
