"""The review page as an application: `uncanny review` serves it alone, a service mounts it a run.

Pages and fragments are rendered here, with everything escaped; htmx puts a fragment in its place. Addresses
are relative to where the application is mounted.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

import orjson
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response

from uncanny.errors import ReviewConflictError, UsageError
from uncanny.records.reviews import Decision
from uncanny.schema import KINDS
from uncanny.service import SHOWS, Show
from uncanny.service.assets import Assets, base_of, page_app
from uncanny.service.person import WhoAsks, known, take_names, who_asks
from uncanny.service.pictures import Pictures, serve_pictures
from uncanny.service.review.bodies import (
    SCALE,
    Addition,
    Completion,
    Edit,
    MovedBox,
    Undo,
    Verdict,
)
from uncanny.service.review.findings import (
    FindingId,
    FindingView,
    ImageEnd,
    ImageView,
    Place,
    read_place,
)
from uncanny.service.review.queue import MOVES, ORDERS, Filters, Order
from uncanny.service.review.run import ReviewRun
from uncanny.service.review.sample import Walk
from uncanny.service.review.unaided import PEOPLE
from uncanny.wording import percent_right, percent_sure

SHOW_WORDS: Final[Mapping[Show, str]] = {
    "todo": "not judged by me",
    "unjudged": "not judged by anyone",
    "ties": "ties to decide",
    "all": "all",
    "accepted": "accepted",
    "rejected": "rejected",
    "unsure": "unsure, without ties",
    "changed": "edited by people",
    "added": "added by people",
}
ORDER_WORDS: Final[Mapping[Order, str]] = {"uncertain": "uncertain first", "file": "image by image"}
_ASSETS: Final = Assets(
    "uncanny.service.review",
    ("review.js", "review.css"),
    (
        *("page.html.j2", "panel.html.j2", "agreement.html.j2", "alpha.html.j2", "totals.html.j2"),
        *("image_end.html.j2", "sample_progress.html.j2", "sample_done.html.j2", "export.html.j2"),
    ),
)
# `enter` leads to what is left of the same image, where images are judged whole.
_WALKS: Final[tuple[Walk, ...]] = (*MOVES, "enter")
DECIDED: Final[Mapping[Decision, str]] = {"accept": "accepted", "reject": "rejected", "unsure": "unsure"}


@dataclass(frozen=True, slots=True)
class ReviewSite:
    """The run, and what an application has besides.

    `reviewer` is who judges, or says whose verdicts a request's are: None where that is not known yet.
    Without it the page asks for a name and keeps it in a cookie. `name` is what the run is called on the
    page in place of its folder's name, `home` where a link leads back to. `image_name` makes what people call
    an image of the path that its record has. `export` is the page where whoever asks exports the run, None
    where they may not; without it the page names the command. Who may not judge (`may_judge`) reads: all
    findings, with what everybody says of them; they are to be refused ahead of the application, too.
    `pictures` makes pictures where it is not to be by pictures of its own. With `sample` the page begins with
    the images of the run's sample, which people judge whole.
    """

    run: ReviewRun
    reviewer: str | WhoAsks | None = None
    order: Order = "uncertain"
    name: str | None = None
    home: str | None = None
    image_name: Callable[[str], str] = str
    export: Callable[[Request], str | None] | None = None
    may_judge: Callable[[Request], bool] = lambda _: True
    pictures: Pictures | None = None
    sample: bool = False

    def who(self, request: Request) -> str | None:
        return who_asks(self.reviewer)(request)


def review_app(site: ReviewSite) -> FastAPI:
    """The application for one run. `safety.Guard` is around all that is served."""
    app = page_app(_ASSETS)
    _pages(app, site)
    _steps(app, site)
    serve_pictures(
        app,
        "/{key}",
        lambda request: site.run.picture(request.path_params["key"]),
        "The picture's file is gone, or is no longer the one that was examined.",
        site.pictures,
    )
    return app


def _pages(app: FastAPI, site: ReviewSite) -> None:
    @app.get("/", response_class=HTMLResponse)
    def page(request: Request) -> HTMLResponse:
        site.run.refresh()
        filters, at = _asked(request, site)
        name = site.who(request)
        at = _first(site, filters, name) if at is None else _still_there(site, at, filters, name)
        return _ASSETS.html(request, "page.html.j2", _whole(request, site, name, filters, at))

    @app.get("/finding", response_class=HTMLResponse)
    def finding(request: Request) -> Response:
        filters, at = _asked(request, site)
        name = known(request, site.who)
        move = next((each for each in _WALKS if each == request.query_params.get("move")), None)
        if at is not None and move is not None:
            there = _step(site, at, move, filters, name)
            ends = move in ("next", "next-image") and _first(site, filters, name) is None
            if there is None and not ends:
                return _panel(request, site, name, filters, at, "There is nothing further that way.")
            at = there
        elif at is None:
            back = move in ("previous", "previous-image")
            at = _back(site, filters, name) if back else _first(site, filters, name)
        return _panel(request, site, name, filters, at)

    @app.get("/agreement", response_class=HTMLResponse)
    def agreement(request: Request) -> HTMLResponse:
        name = known(request, site.who)
        content = _summary(site) | {
            "progress": site.run.progress(Filters("all"), name),
            "may_judge": site.may_judge(request),
            **_rule(site),
        }
        return _ASSETS.html(request, "agreement.html.j2", content)


def _steps(app: FastAPI, site: ReviewSite) -> None:
    def step(
        request: Request,
        body: Verdict | Edit | MovedBox,
        act: Callable[[FindingId, str], None],
        notice: str,
    ) -> Response:
        """The panel after what somebody does; without a `notice` that of the next finding."""
        name, at, filters = known(request, site.who), FindingId.read(body.finding), body.filters
        try:
            act(at, name)
        except ReviewConflictError as conflict:
            return _panel(request, site, name, filters, at, str(conflict), status=409)
        now = at if notice else _step(site, at, "on", filters, name)
        return _panel(request, site, name, filters, now, notice)

    @app.post("/verdict")
    def verdict(request: Request, body: Verdict) -> Response:
        return step(request, body, lambda at, name: site.run.judge(at, body.text, body.decision, name), "")

    @app.post("/edit")
    def edit(request: Request, body: Edit) -> Response:
        def act(at: FindingId, name: str) -> None:
            site.run.edit(at, body.text, body.anomaly(), name, body.decision)

        return step(request, body, act, "Kept as a new version." if body.decision is None else "")

    @app.post("/box")
    def box(request: Request, body: MovedBox) -> Response:
        def act(at: FindingId, name: str) -> None:
            site.run.move_box(at, body.text, body.box, name)

        return step(request, body, act, "Box kept." if body.box else "Box removed.")

    @app.post("/add")
    def add(request: Request, body: Addition) -> Response:
        name, filters = known(request, site.who), body.filters
        at: Place | None = site.run.add(read_place(body.finding).image, body.anomaly(body.box), name)
        if filters.sample and at is not None:
            at = site.run.walk(at, "enter", filters, name)
        return _panel(request, site, name, filters, at, "Added, and accepted by you.")

    @app.post("/undo")
    def undo(request: Request, body: Undo) -> Response:
        name, filters = known(request, site.who), body.filters
        here = read_place(body.finding) if body.finding else None
        try:
            at = site.run.undo(name)
        except ReviewConflictError as conflict:
            return _panel(request, site, name, filters, here, str(conflict), status=409)
        if at is None:
            return _panel(request, site, name, filters, here, "There is nothing of yours to take back.")
        if isinstance(at, ImageEnd) and not filters.sample:
            first = FindingId(at.image, 0)
            at = first if site.run.has(first) else _first(site, filters, name)
        return _panel(request, site, name, filters, at, "Taken back.")

    @app.post("/complete")
    def complete(request: Request, body: Completion) -> Response:
        name, filters, at = known(request, site.who), body.filters, read_place(body.finding)
        end = ImageEnd(at.image)
        try:
            site.run.complete(end, body.state, filters, name)
        except ReviewConflictError as conflict:
            left = site.run.walk(end, "enter", filters, name)
            return _panel(request, site, name, filters, left, str(conflict), status=409)
        return _panel(request, site, name, filters, site.run.walk(end, "next-image", filters, name))

    take_names(app, "/reviewer", may_choose=site.reviewer is None)


def _asked(request: Request, site: ReviewSite) -> tuple[Filters, Place | None]:
    """The queue and the place of an address; what it does not know of them is as if it were not there."""
    query = request.query_params
    usual: Show = "todo" if site.may_judge(request) else "all"
    show: Show = next((each for each in SHOWS if each == query.get("show")), usual)
    order: Order = next((each for each in ORDERS if each == query.get("order")), site.order)
    kind = next((each for each in (*site.run.kinds, "none") if each == query.get("kind")), None)
    agent = next((each for each in site.run.agents if each == query.get("agent")), None)
    sample = query.get("sample", "yes" if site.sample else "") == "yes"
    at = query.get("at")
    try:
        place = read_place(at) if at else None
    except UsageError:
        place = None
    if place is not None and not (site.run.has(place) and (sample or isinstance(place, FindingId))):
        place = None
    return Filters(show, order, kind, agent, query.get("doubtful") == "yes", sample), place


def _first(site: ReviewSite, filters: Filters, name: str | None) -> Place | None:
    if filters.sample:
        return site.run.walk(None, "next", filters, name)
    return site.run.first(filters, name)


def _step(site: ReviewSite, at: Place, move: Walk, filters: Filters, name: str | None) -> Place | None:
    if filters.sample:
        return site.run.walk(at, move, filters, name)
    if isinstance(at, ImageEnd) or move == "enter":
        return _first(site, filters, name)
    return site.run.step(at, "next" if move == "on" else move, filters, name)


def _back(site: ReviewSite, filters: Filters, name: str) -> Place | None:
    if filters.sample:
        return site.run.walk(None, "previous", filters, name)
    return site.run.back(filters, name)


def _still_there(site: ReviewSite, at: Place, filters: Filters, name: str | None) -> Place | None:
    """`at`, or what comes after it where whoever added it has taken it back."""
    if not site.run.is_gone(at):
        return at
    return _step(site, at, "enter" if filters.sample else "next", filters, name)


def _whole(
    request: Request, site: ReviewSite, name: str | None, filters: Filters, at: Place | None
) -> dict[str, Any]:
    content: dict[str, Any] = {
        "run": site.name or site.run.name,
        "home": site.home,
        "reviewer": name,
        "may_judge": site.may_judge(request),
        "may_choose": site.reviewer is None,
        "filters": filters,
        "kinds": [*site.run.kinds, *(["none"] if site.run.kinds else [])],
        "agents": site.run.agents,
        "shows": _show_words(site),
        "orders": ORDER_WORDS,
        "all_kinds": KINDS,
        "doubtful": site.run.progress(filters, name).doubtful,
        "below": f"below confidence {site.run.min_confidence:g}",
        "has_sample": filters.sample or site.run.has_sample,
        "scale": SCALE,
    }
    if name is not None:
        content |= _content(request, site, name, filters, at, "")
    return content


def _panel(
    request: Request,
    site: ReviewSite,
    name: str,
    filters: Filters,
    at: Place | None,
    notice: str = "",
    *,
    status: int = 200,
) -> HTMLResponse:
    at = None if at is None else _still_there(site, at, filters, name)
    content = _content(request, site, name, filters, at, notice)
    asked: dict[str, str | None] = {
        "show": filters.show,
        "order": filters.order,
        "kind": filters.kind,
        "agent": filters.agent,
    }
    if filters.sample:
        asked = {"show": filters.show, "sample": "yes"}
    elif site.sample:
        asked["sample"] = "no"
    asked["doubtful"] = "yes" if filters.doubtful else None
    address = {key: value for key, value in (asked | {"at": at and str(at)}).items() if value}
    headers = {"HX-Replace-Url": f"{base_of(request)}/?{urlencode(address)}"}
    return _ASSETS.html(request, "panel.html.j2", content, status=status, headers=headers)


def _content(
    request: Request, site: ReviewSite, name: str, filters: Filters, at: Place | None, notice: str
) -> dict[str, Any]:
    view = site.run.view(at, filters, name) if isinstance(at, FindingId) else None
    end = site.run.image_view(at, filters, name) if isinstance(at, ImageEnd) else None
    seen = view or end
    reads = not site.may_judge(request)
    content: dict[str, Any] = {
        "reviewer": name,
        "may_judge": not reads,
        "filters": filters,
        # Totals of findings are shown beside the sample's only at its end.
        "progress": None if filters.sample and seen else site.run.progress(filters, name),
        "sampled": site.run.sample_progress(filters, name) if filters.sample else None,
        "view": view,
        "end": end,
        "image_name": None if seen is None else site.image_name(seen.record.image),
        "name_of": site.image_name,
        "notice": notice,
        "decided": DECIDED,
        "below": f"below confidence {site.run.min_confidence:g}",
        "percent_sure": percent_sure,
        "percent_right": percent_right,
        "show_word": _show_words(site)[filters.show],
        **_rule(site),
    }
    if end is not None:
        stage = _stage(request, site, end)
        content["unaided"] = end.record.model == PEOPLE
        return content | {"stage": orjson.dumps(stage).decode(), "preview": stage["preview"]}
    if view is None:
        # Where the run is exported, or the folder for the command that does it; neither for who may not.
        export: dict[str, str | None] = {"href": None, "folder": None}
        if site.export is not None:
            export["href"] = site.export(request)
        else:
            export["folder"] = shlex.quote(str(site.run.folder))
        return content | _summary(site) | {"export": export}
    stage = _stage(request, site, view)
    mine = view.finding.votes.get(name)
    others = {who: vote for who, vote in view.finding.votes.items() if who != name}
    decides = filters.show == "ties" and site.run.rule.agree == "majority"
    told = mine is not None or decides or reads
    return content | {
        "mine": mine,
        # What others say is not shown before one has said it oneself, but where there is a tie to decide, and
        # to those who have nothing to say.
        "others": others if told else {},
        "others_hidden": 0 if told else len(others),
        "stage": orjson.dumps(stage).decode(),
        "preview": stage["preview"],
    }


def _rule(site: ReviewSite) -> dict[str, Any]:
    rule = site.run.rule
    return {"unanimous": rule.agree == "all", "least_verdicts": rule.least_verdicts}


def _show_words(site: ReviewSite) -> Mapping[Show, str]:
    if site.run.rule.agree == "majority":
        return SHOW_WORDS
    return {**SHOW_WORDS, "ties": "disagreements"}


def _summary(site: ReviewSite) -> dict[str, Any]:
    run = site.run
    return {"alpha": run.agreement(), "ratings": run.ratings(), "reviewers": run.reviewers}


def _stage(request: Request, site: ReviewSite, view: FindingView | ImageView) -> dict[str, Any]:
    """What the script draws: the picture, its boxes, and the picture to load ahead."""
    base = base_of(request)
    finding = view.finding.anomaly if isinstance(view, FindingView) else None
    others = view.siblings if isinstance(view, FindingView) else view.findings
    boxes = [
        {"id": str(at), "name": each.anomaly.name, "box": each.anomaly.box}
        for at, each in others
        if each.anomaly.box
    ]

    def address(size: str, key: str) -> str:
        return f"{base}/{size}/{key}?v={site.run.image_tag(key)}"

    following = view.next_image
    return {
        "key": str(view.id),
        "image": address("image", view.id.image),
        "preview": address("preview", view.id.image),
        "next": None if following is None else address("preview", following),
        "width": view.record.width,
        "height": view.record.height,
        "alt": site.image_name(view.record.image),
        "box": None if finding is None else finding.box,
        "name": None if finding is None else finding.name,
        "others": boxes,
    }
