"""Jobs: what kinds there are, and submitting, listing, cancelling, retrying and deleting them."""

from __future__ import annotations

from typing import Annotated, Any, Final

import orjson
from fastapi import Query, Request, Response
from pydantic import AfterValidator, ConfigDict, Field, StringConstraints
from sqlalchemy import Connection

from uncanny.runs.parameters import Calls, Inputs, Tokens, Usd
from uncanny.service import ID_PATTERNS, State
from uncanny.service.answers import JOB_EXAMPLE, Job, JobPage, KindAnswer, KindsAnswer
from uncanny.service.api.auth import Operator, for_operators, for_readers
from uncanny.service.api.errors import ApiError, answers
from uncanny.service.api.routes import Bounded, IdempotencyKey, JobId, Kept, Noted, Title, routes
from uncanny.service.jobs.kinds import KINDS, check_params

ROUTER: Final = routes("jobs")
_NEW: Final = {key: JOB_EXAMPLE[key] for key in ("kind", "params", "name")}


def _known(kind: str) -> str:
    if kind not in KINDS:
        raise ValueError(f"must be one of {', '.join(KINDS)}")
    return kind


KindName = Annotated[str, AfterValidator(_known), Field(json_schema_extra={"enum": [*KINDS]})]


class NewJob(Bounded):
    """A job to be: its kind, the parameters of that kind (`GET /kinds`), and what people call it."""

    model_config = ConfigDict(json_schema_extra={"examples": [_NEW]})

    kind: Annotated[str, StringConstraints(max_length=32)]
    params: Annotated[dict[str, Any], Field(max_length=100)]
    name: Title | None = None


class Limits(Bounded):
    """Limits that say how much of a job is done, and not what it does. What is left out stays as it is."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"max_cost_usd": 50.0}]})

    max_cost_usd: Usd | None = None
    max_tokens_total: Tokens | None = None
    limit: Inputs | None = None
    concurrency: Calls | None = None


@ROUTER.get("/kinds", summary="Kinds of jobs", dependencies=for_readers)
def kinds() -> KindsAnswer:
    """What can be asked for, each with the JSON schema of its parameters."""
    return KindsAnswer(
        kinds=tuple(
            KindAnswer(
                kind=kind.protocol.name,
                title=kind.protocol.title,
                description=kind.protocol.summary,
                asks_models=kind.protocol.asks,
                params=kind.params.model_json_schema(),
            )
            for kind in KINDS.values()
        )
    )


@ROUTER.get("/jobs", summary="Jobs, the newest first", dependencies=for_readers, responses=answers(404))
def list_jobs(
    service: Kept,
    state: Annotated[State | None, Query(description="Only those in this state.")] = None,
    kind: Annotated[KindName | None, Query(description="Only of this kind.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    before: Annotated[
        str | None, Query(pattern=ID_PATTERNS["job"], description="`next` of the page before.")
    ] = None,
) -> JobPage:
    """All jobs, those in a state or of a kind; page by page."""
    return service.jobs.page(state=state, kind=kind, limit=limit, before=before)


@ROUTER.get("/jobs/{job_id}", summary="A job", dependencies=for_readers)
def job(service: Kept, job_id: JobId) -> Job:
    """How it is now."""
    return service.jobs.get(job_id)


@ROUTER.post("/jobs", summary="Submit a job", status_code=201, response_model=Job, responses=answers(404))
def submit(
    service: Kept, who: Operator, body: NewJob, note: Noted, idempotency_key: IdempotencyKey = None
) -> Response:
    """Check what is asked for, and put it into the queue. With a key sent again it is the same job."""
    key = idempotency_key
    try:
        asked = orjson.dumps(body.model_dump(), option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:  # what can be read nests deeper than what can be written
        raise ApiError(422, "The parameters nest too deeply.", field="params") from None
    job: Job | None = None

    def act(connection: Connection) -> str:
        nonlocal job
        job = service.jobs.add(connection, body.kind, params, name=body.name, by=who.name)
        note.subject, note.details = job.id, {"kind": body.kind}
        note(connection)
        return job.model_dump_json()

    kept = service.idempotency.kept(who.name, key, asked)
    if kept is None:
        params = check_params(service, body.kind, body.params)
        kept, _ = service.idempotency.once(who.name, key, asked, act)
    if job is not None:
        service.jobs.queued.set()
    return Response(kept, 201, media_type="application/json")


@ROUTER.post("/jobs/{job_id}/cancel", summary="Cancel a job", dependencies=for_operators)
def cancel(service: Kept, job_id: JobId, note: Noted) -> Job:
    """One in the queue is cancelled at once, a running one as soon as calls in flight are back.

    What is finished stays; one that has ended stays as it is.
    """
    return service.jobs.cancel(job_id, note)


@ROUTER.post("/jobs/{job_id}/retry", summary="Go on with a job that has ended", dependencies=for_operators)
def retry(service: Kept, job_id: JobId, note: Noted) -> Job:
    """What failed is asked again, what is finished is not."""
    return service.jobs.retry(job_id, note)


@ROUTER.post(
    "/jobs/{job_id}/limits", summary="Give a job that has ended other limits", dependencies=for_operators
)
def limits(service: Kept, job_id: JobId, body: Limits, note: Noted) -> Job:
    """For one that was over its budget: limits are put up, then it is retried. Null takes one away."""
    job = service.jobs.get(job_id)
    params = job.params | body.model_dump(exclude_unset=True)
    kept = {name: value for name, value in params.items() if value is not None or name in job.params}
    check_params(service, job.kind, kept)
    return service.jobs.change(job, kept, note)


@ROUTER.delete("/jobs/{job_id}", summary="Delete a job", dependencies=for_operators, status_code=204)
def delete(request: Request, service: Kept, job_id: JobId, note: Noted) -> None:
    """A job that has ended, with its files."""
    service.delete_job(job_id, note)
    request.app.state.review_runs.forget(service.run_folder(job_id))
