"""Jobs: what kinds there are, and submitting, listing, cancelling, retrying and deleting them."""

from __future__ import annotations

from typing import Annotated, Any, Final

import orjson
from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from sqlalchemy import Connection

from uncanny.service import State
from uncanny.service.api.auth import Operator, for_operators, for_readers
from uncanny.service.api.errors import ApiError, answers
from uncanny.service.api.routes import Bounded, IdempotencyKey, JobId, Kept, Noted, Title, answer
from uncanny.service.jobs.kinds import KINDS
from uncanny.service.store.jobs import Job

_READ: Final = (400, 401, 403, 422, 429)
_CHANGE: Final = (*_READ, 404, 409)
_BODY: Final = (408, 413, 415)
EXAMPLE: Final[dict[str, Any]] = {
    "id": "job_aaaaaaaaaaaaaaaaaaaa",
    "kind": "annotate",
    "name": "Batch 7",
    "params": {"images": ["upload:set_aaaaaaaaaaaaaaaaaaaa"], "model": "openai/gpt-4o", "max_cost_usd": 20.0},
    "state": "running",
    "created_at": "2026-01-01T12:00:00Z",
    "created_by": "ann",
    "started_at": "2026-01-01T12:00:01Z",
    "ended_at": None,
    "attempt": 1,
    "worker": "host:4711:0a1b2c3d",
    "exit_code": None,
    "error": None,
    "progress": {
        "total": 30,
        "done": 12,
        "failed": 0,
        "calls": 410,
        "cost_usd": 0.41,
        "input_tokens": 512_000,
        "output_tokens": 20_400,
        "rate": 6.5,
        "eta_s": 95.0,
    },
}
_NEW: Final = {key: EXAMPLE[key] for key in ("kind", "params", "name")}


class NewJob(Bounded):
    """A job to be: its kind, the parameters of that kind (`GET /kinds`), and what people call it."""

    model_config = ConfigDict(json_schema_extra={"examples": [_NEW]})

    kind: Annotated[str, StringConstraints(pattern="^[a-z_]{1,32}$")]
    params: Annotated[dict[str, Any], Field(max_length=100)]
    name: Title | None = None


class Limits(Bounded):
    """Limits that say how much of a job is done, and not what it does. What is left out stays as it is."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"max_cost_usd": 50.0}]})

    max_cost_usd: Annotated[float | None, Field(gt=0, le=1e9, allow_inf_nan=False)] = None
    max_tokens_total: Annotated[int | None, Field(ge=1, le=10**15)] = None
    limit: Annotated[int | None, Field(ge=1, le=10**12)] = None
    concurrency: Annotated[int | None, Field(ge=1, le=10_000)] = None


class JobPage(BaseModel):
    """Jobs, the newest first; `next` is the `before` of the next page, None where this is the last."""

    model_config = ConfigDict(frozen=True)

    jobs: list[Job]
    next: str | None


class KindAnswer(BaseModel):
    """A kind of job: what it does, and the JSON schema of its parameters."""

    model_config = ConfigDict(frozen=True)

    kind: Annotated[str, Field(examples=["annotate"])]
    title: Annotated[str, Field(examples=["Find anomalies"])]
    description: Annotated[str, Field(examples=["Find what is wrong in images."])]
    asks_models: bool
    params: dict[str, Any]


class KindsAnswer(BaseModel):
    model_config = ConfigDict(frozen=True)

    kinds: list[KindAnswer]


def _with_example(status: int, words: str) -> dict[int | str, dict[str, Any]]:
    return {status: {"description": words, "content": {"application/json": {"example": EXAMPLE}}}}


def add_job_routes(api: APIRouter) -> None:
    _reading(api)
    _changing(api)


def _reading(api: APIRouter) -> None:
    @api.get(
        "/kinds",
        tags=["jobs"],
        summary="Kinds of jobs",
        dependencies=for_readers,
        response_model=KindsAnswer,
        responses=answers(*_READ),
    )
    def kinds() -> Any:
        """What can be asked for, each with the JSON schema of its parameters."""
        return {
            "kinds": [
                {
                    "kind": kind.name,
                    "title": kind.title,
                    "description": (kind.params.__doc__ or "").strip(),
                    "asks_models": kind.asks,
                    "params": kind.params.model_json_schema(),
                }
                for kind in KINDS.values()
            ]
        }

    @api.get(
        "/jobs",
        tags=["jobs"],
        summary="Jobs, the newest first",
        dependencies=for_readers,
        response_model=JobPage,
        responses=answers(*_READ, 404),
    )
    def list_jobs(
        service: Kept,
        state: Annotated[State | None, Query(description="Only those in this state.")] = None,
        kind: Annotated[str | None, Query(pattern="^[a-z_]{1,32}$", description="Only of this kind.")] = None,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        before: Annotated[
            str | None, Query(pattern="^job_[a-z2-7]{20}$", description="`next` of the page before.")
        ] = None,
    ) -> Any:
        """All jobs, those in a state or of a kind; page by page."""
        jobs, following = service.jobs.page(state=state, kind=kind, limit=limit, before=before)
        return answer(JobPage(jobs=list(jobs), next=following))

    @api.get(
        "/jobs/{job_id}",
        tags=["jobs"],
        summary="A job",
        dependencies=for_readers,
        response_model=Job,
        responses={**_with_example(200, "The job."), **answers(*_READ, 404)},
    )
    def job(service: Kept, job_id: JobId) -> Any:
        """How it is now."""
        return answer(service.jobs.get(job_id))


def _changing(api: APIRouter) -> None:
    @api.post(
        "/jobs",
        tags=["jobs"],
        summary="Submit a job",
        status_code=201,
        response_model=Job,
        responses={**_with_example(201, "The job, in the queue."), **answers(*_CHANGE, *_BODY)},
    )
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
            params = service.check(body.kind, body.params)
            kept, _ = service.idempotency.once(who.name, key, asked, act)
        if job is not None:
            service.jobs.queued.set()
        return Response(kept, 201, media_type="application/json")

    @api.post(
        "/jobs/{job_id}/cancel",
        tags=["jobs"],
        summary="Cancel a job",
        dependencies=for_operators,
        response_model=Job,
        responses={**_with_example(200, "The job."), **answers(*_CHANGE)},
    )
    def cancel(service: Kept, job_id: JobId, note: Noted) -> Any:
        """One in the queue is cancelled at once, a running one as soon as calls in flight are back.

        What is finished stays; one that has ended stays as it is.
        """
        return answer(service.jobs.cancel(job_id, note))

    @api.post(
        "/jobs/{job_id}/retry",
        tags=["jobs"],
        summary="Go on with a job that has ended",
        dependencies=for_operators,
        response_model=Job,
        responses={**_with_example(200, "The job, in the queue again."), **answers(*_CHANGE)},
    )
    def retry(service: Kept, job_id: JobId, note: Noted) -> Any:
        """What failed is asked again, what is finished is not."""
        return answer(service.jobs.retry(job_id, note))

    @api.post(
        "/jobs/{job_id}/limits",
        tags=["jobs"],
        summary="Give a job that has ended other limits",
        dependencies=for_operators,
        response_model=Job,
        responses={**_with_example(200, "The job, as ended as it was."), **answers(*_CHANGE, *_BODY)},
    )
    def limits(service: Kept, job_id: JobId, body: Limits, note: Noted) -> Any:
        """For one that was over its budget: limits are put up, then it is retried. Null takes one away."""
        job = service.jobs.get(job_id)
        params = job.params | body.model_dump(exclude_unset=True)
        kept = {name: value for name, value in params.items() if value is not None or name in job.params}
        service.check(job.kind, kept)
        return answer(service.jobs.change(job, kept, note))

    @api.delete(
        "/jobs/{job_id}",
        tags=["jobs"],
        summary="Delete a job",
        dependencies=for_operators,
        status_code=204,
        responses=answers(*_CHANGE),
    )
    def delete(request: Request, service: Kept, job_id: JobId, note: Noted) -> Response:
        """A job that has ended, with its files."""
        service.delete_job(job_id, note)
        request.app.state.review_runs.forget(service.run_folder(job_id))
        return Response(status_code=204)


def with_params(schema: dict[str, Any]) -> dict[str, Any]:
    """The description of the interface, with the parameters of every kind in that of a new job."""
    schemas: dict[str, Any] = schema["components"]["schemas"]
    variants = []
    for kind in KINDS.values():
        own = kind.params.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas |= own.pop("$defs", {})
        schemas[kind.params.__name__] = own
        variants.append(
            {
                "title": kind.title,
                "properties": {
                    "kind": {"const": kind.name},
                    "params": {"$ref": f"#/components/schemas/{kind.params.__name__}"},
                },
            }
        )
    schemas["NewJob"]["oneOf"] = variants
    return schema
