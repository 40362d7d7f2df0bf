"""Starting a job: a form made from the parameters of its kind, checked while it is filled in.

The form itself starts nothing: its script hands the checked parameters to the HTTP interface. A forecast is
the same command with `--dry-run`, which asks no model.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from threading import Semaphore
from typing import Annotated, Any, Final

from fastapi import APIRouter, Request, Response
from pydantic import Field, StringConstraints

from uncanny.errors import ParamsError
from uncanny.models.presets import ALL
from uncanny.service.answers import Job
from uncanny.service.api.auth import Operator, for_operators, gate_of
from uncanny.service.api.errors import ApiError
from uncanny.service.folders import listing
from uncanny.service.jobs.child import FORECAST
from uncanny.service.jobs.kinds import KINDS, Kind, check_params, has_records, kind_named, values_of
from uncanny.service.jobs.run import child_environment, order
from uncanny.service.safety import Body
from uncanny.service.web.forms import ONE_MODEL, form_fields, read_form, sentence
from uncanny.service.web.job_page import has_findings
from uncanny.service.web.site import Site
from uncanny.service.web.views import JobView, command_line

_FORECAST_S: Final = 60
_MOST_FORECAST: Final = 20_000
_RESULTS: Final = 100
_MODELS: Final = 10
_EXPORTS: Final = 10

Text = Annotated[str, StringConstraints(max_length=20_000)]


class _Values(Body):
    values: Annotated[list[tuple[Text, Text]], Field(max_length=500)]


def add_new_pages(router: APIRouter, site: Site) -> None:
    """Adds `/new`, `/new/{kind}` with what its script asks for, and `/jobs/{id}/export`."""
    forecasts = Semaphore(1)

    @router.get("/new", dependencies=for_operators)
    def kinds(request: Request) -> Response:
        source = request.query_params.get("from")
        if source is not None:
            job = site.service.jobs.get(source)
            return _form(request, site, KINDS[job.kind], job.params, job.name)
        known = {name: (kind.protocol.title, kind.protocol.summary) for name, kind in KINDS.items()}
        return site.page(request, "kinds.html.j2", here="new", title="New job", kinds=known)

    @router.get("/new/folder", dependencies=for_operators)
    def folder(request: Request, path: str = "") -> Response:
        return site.page(request, "folder.html.j2", listing=listing(site.service.roots, path))

    @router.get("/new/{kind}", dependencies=for_operators)
    def form(request: Request, kind: str) -> Response:
        return _form(request, site, kind_named(kind), dict(request.query_params), None)

    @router.get("/jobs/{job_id}/export", dependencies=for_operators)
    def export(request: Request, job_id: str) -> Response:
        job = site.service.jobs.get(job_id)
        if not has_findings(site, job):
            raise ApiError(404, "There is nothing to export from this job, or not yet.")
        reference = f"job:{job.id}"
        params = {"run": reference, "to": ["jsonl"]}
        made = [
            each
            for each in site.service.jobs.page(kind="export", limit=200).jobs
            if each.params.get("run") == reference
        ]
        return _form(request, site, KINDS["export"], params, None, source=job, exports=made[:_EXPORTS])

    @router.post("/new/{kind}/check", dependencies=for_operators)
    def check(kind: str, body: _Values) -> Any:
        """The parameters, what is wrong with them by field, and the command they are."""
        params, wrong = _checked(site, kind_named(kind), body.values)
        return {"params": params, "wrong": wrong, "command": command_line(site.service, kind, params)}

    @router.post("/new/{kind}/forecast")
    def forecast(request: Request, who: Operator, kind: str, body: _Values) -> Any:
        """What the command would ask and what that costs, in its own words."""
        gate_of(request).rates.hit("writes", who.name)
        params, wrong = _checked(site, kind_named(kind), body.values)
        if wrong or not KINDS[kind].protocol.asks:
            raise ApiError(422, next(iter(wrong.values()), "This kind of job asks no model."))
        job = Job.model_construct(kind=kind, params=dict(params))
        if not forecasts.acquire(timeout=_FORECAST_S):
            raise ApiError(503, "Other forecasts are being made. Try again in a moment.")
        try:
            values = values_of(site.service, job)
            words = _dry_run(KINDS[kind], values, site.service.child_settings())
            return {"text": site.service.without_paths(words)}
        finally:
            forecasts.release()


def _form(
    request: Request,
    site: Site,
    kind: Kind,
    params: Mapping[str, Any],
    name: str | None,
    *,
    source: Job | None = None,
    exports: Sequence[Job] = (),
) -> Response:
    recent = site.service.jobs.page(limit=_RESULTS).jobs
    results = [JobView(job) for job in recent if job.has_ended and has_records(site.service, job)]
    return site.page(
        request,
        "form.html.j2",
        here="" if source else "new",
        title=kind.protocol.title,
        kind=kind.protocol.name,
        about=kind.protocol.summary,
        fields=form_fields(kind.params, params, list(site.service.weights), models=_models(recent)),
        results=results,
        name=name or "",
        can_forecast=kind.protocol.asks,
        source=None if source is None else JobView(source),
        exports=[JobView(job) for job in exports],
    )


def _models(recent: Sequence[Job]) -> list[str]:
    """What can be asked here: models of recent jobs, and providers whose key or address is set."""
    ready = [f"{each.name}/" for each in ALL.values() if each.configured]
    named = [str(job.params[name]) for job in recent for name in ONE_MODEL if job.params.get(name)]
    asked = [name for name in dict.fromkeys(named) if name.startswith(tuple(ready))]
    return ["demo", *asked[:_MODELS], *ready]


def _checked(
    site: Site, kind: Kind, values: Sequence[tuple[str, str]]
) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    filled = read_form(kind.params, values)
    if filled.wrong:
        return filled.params, filled.wrong
    try:
        return check_params(site.service, kind.protocol.name, filled.params), {}
    except ParamsError as error:
        known = kind.params.model_fields
        wrong: dict[str, str] = {}
        for place, why in error.fields:
            name = place.partition(".")[0]
            wrong.setdefault(name if name in known else "", sentence(why))
        return filled.params, wrong


def _dry_run(kind: Kind, values: Mapping[str, Any], settings: Mapping[str, str]) -> str:
    """What the command says when it is to ask nothing. Raises ApiError."""
    asked = {name: value for name, value in values.items() if name not in ("as_json", "json_file")}
    with tempfile.TemporaryDirectory(prefix="uncanny-forecast-") as folder:
        # It may read what it finds there, too.
        readable = os.pathsep.join([settings["UNCANNY_INPUT_FOLDERS"], folder])
        environment = {**child_environment(), **settings, "UNCANNY_INPUT_FOLDERS": readable}
        try:
            done = subprocess.run(
                [sys.executable, "-P", "-m", "uncanny.service.jobs.child", FORECAST],
                cwd=folder,
                input=order(kind.protocol.command, asked | {"dry_run": True}),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=_FORECAST_S,
                check=False,
                env=environment | {"NO_COLOR": "1", "COLUMNS": "1000"},
            )
        except subprocess.TimeoutExpired:
            raise ApiError(
                503, f"Counting took longer than {_FORECAST_S} s. Set a limit to see a part."
            ) from None
    return done.stdout.decode("utf-8", "replace")[:_MOST_FORECAST].strip()
