"""Findings of a job, what people say of them, and how far they agree: the review page's work for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Final

from fastapi import Depends, Query, Request, Response
from pydantic import ConfigDict, Field, StringConstraints, ValidationError

from uncanny.records.reviews import REVIEWS, Decision
from uncanny.schema import Anomaly, Box, Kind
from uncanny.service import Show
from uncanny.service.answers import Answer, RecordPage
from uncanny.service.api.auth import Reader, Reviewer, address_of, for_readers
from uncanny.service.api.errors import ApiError, answers
from uncanny.service.api.results import AfterRecord, record_page
from uncanny.service.api.routes import PLAIN, Bounded, JobId, Kept, routes
from uncanny.service.jobs.kinds import KINDS, records_file
from uncanny.service.review.findings import FindingId, FindingView
from uncanny.service.review.queue import Filters, Order
from uncanny.service.review.run import ReviewRun
from uncanny.service.review.runs import ReviewRuns
from uncanny.service.safety import Words

ROUTER: Final = routes("review")
_FINDING: Final = "^[0-9a-f]{16}-[0-9]{1,9}$"
_EXAMPLE: Final = "0a1b2c3d4e5f6071-0"
Finding = Annotated[str, StringConstraints(pattern=_FINDING)]


class AnomalyAnswer(Answer):
    """What is said to be wrong, as people have left it. `severity` is 0, unreal, to 100, realistic;
    `confidence`, 0 to 1, is how sure the model is of it, null if it did not say; `probability`, 0 to 1, is
    how likely people accept it, null without a calibration."""

    model_config = ConfigDict(from_attributes=True)

    name: Annotated[str, Field(examples=["Cup floats"])]
    phenomenon: str
    reasoning: str
    severity: int
    objects: list[str]
    box: tuple[int, int, int, int] | None
    kind: str | None
    found_by: list[str] | None
    confidence: float | None
    probability: float | None


class FindingAnswer(Answer):
    """A finding: `text` is the hash of what a verdict is about, `decision` the majority's."""

    id: Annotated[str, Field(examples=[_EXAMPLE])]
    image: Annotated[str, Field(examples=["a/cat.png"])]
    width: int | None
    height: int | None
    text: str
    anomaly: AnomalyAnswer
    doubt: Annotated[
        float | None, Field(description="How much it needs a look, 0 to 1; null if people added it.")
    ]
    votes: Annotated[dict[str, Decision], Field(examples=[{"ann": "accept"}])]
    decision: Decision | None
    tied: bool
    added_by: str | None
    edited_by: str | None


class FindingPage(Answer):
    """Findings in the order they are put to people, and `next` for those after them."""

    findings: list[FindingAnswer]
    next: str | None


class NewText(Bounded):
    """A finding as a reviewer rewrites it."""

    name: Annotated[Words, StringConstraints(min_length=1, max_length=200)]
    phenomenon: Annotated[Words, StringConstraints(min_length=1)]
    reasoning: Annotated[Words, StringConstraints(min_length=1)]
    severity: Annotated[int, Field(ge=0, le=100)]
    kind: Kind | None = None


class NewVerdict(Bounded):
    """What somebody says of a finding: `text` is the hash that came with it, and shows what was judged.

    With `version` it is rewritten, and the decision, if there is one, is about the new text. With `box` it is
    moved, or has no box any more where that is null; decisions stand.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"finding": _EXAMPLE, "text": "0" * 64, "decision": "accept"}],
            "anyOf": [
                {"required": ["decision"], "properties": {"decision": {"type": "string"}}},
                {"required": ["version"], "properties": {"version": {"type": "object"}}},
                {"required": ["box"]},
            ],
        }
    )

    finding: Finding
    text: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
    decision: Decision | None = None
    version: NewText | None = None
    box: Box | None = None


class AgreementAnswer(Answer):
    """How far reviewers agree, and how far they are.

    `alpha` is Krippendorff's for nominal data, 1 for full agreement, 0 for chance; null where nothing was
    judged twice. `judged_twice` counts the findings that went into it. `judged` is the sum of `accepted`,
    `rejected`, `unsure` and `ties`.
    """

    alpha: float | None
    judged_twice: int
    reviewers: list[str]
    findings: int
    judged: int
    accepted: int
    rejected: int
    unsure: int
    ties: int


def runs_of(request: Request) -> ReviewRuns:
    runs = request.app.state.review_runs
    assert isinstance(runs, ReviewRuns)
    return runs


def reviewed_run(request: Request, service: Kept, job_id: JobId) -> ReviewRun:
    """The run of a job, to be reviewed. Raises ApiError 409 for a kind without findings, or before any."""
    job = service.jobs.get(job_id)
    if job.kind not in KINDS or not KINDS[job.kind].protocol.reviewed:
        raise ApiError(409, f"Jobs of the kind {job.kind} have no findings to review.", code="no_findings")
    records = records_file(service, job)
    if records is None or not records.is_file():
        raise ApiError(409, "The job has no annotations yet.", code="no_findings")
    return runs_of(request).get(records.parent)


Run = Annotated[ReviewRun, Depends(reviewed_run)]


@ROUTER.get("/jobs/{job_id}/findings", summary="Its findings", responses=answers(409))
def findings(
    who: Reader,
    run: Run,
    show: Annotated[Show, Query(description="Which: what I have not judged, all, by decision, …")] = "all",
    order: Annotated[Order, Query(description="The uncertain first, or as in the file.")] = "file",
    kind: Annotated[
        str | None,
        Query(
            max_length=40, pattern=PLAIN, description="Of this kind of anomaly; `none` for those without one."
        ),
    ] = None,
    agent: Annotated[
        str | None, Query(max_length=200, pattern=PLAIN, description="Found by this agent.")
    ] = None,
    after: Annotated[str | None, Query(pattern=_FINDING, description="`next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> FindingPage:
    """As the review page puts them to people; verdicts of others are in them."""
    start = None if after is None else _known(run, after)
    ids = run.page(start, Filters(show, order, kind, agent, doubtful=True), who.name, limit + 1)
    page = [_answer(run.view(at, None, None)) for at in ids[:limit]]
    return FindingPage(findings=page, next=page[-1].id if len(ids) > limit else None)


@ROUTER.post(
    "/jobs/{job_id}/verdicts",
    summary="Judge or rewrite a finding",
    status_code=201,
    responses=answers(507),
)
def judge(
    request: Request, service: Kept, who: Reviewer, job_id: JobId, run: Run, body: NewVerdict
) -> FindingAnswer:
    """In one's own name, beside what others say; the last word of each counts.

    409 where the text is another one by now: read it, and judge that.
    """
    at = _known(run, body.finding)
    version = None if body.version is None else _anomaly(body.version)
    moves = "box" in body.model_fields_set
    if version is None and body.decision is None and not moves:
        raise ApiError(422, "A decision, a version or a box is needed.", field="decision")
    steps = 0
    try:
        if moves:
            run.move_box(at, body.text, body.box, who.name)
            steps += 1
        if version is not None:
            run.edit(at, body.text, version, who.name, body.decision)
            steps += 1
        elif body.decision is not None:
            run.judge(at, body.text, body.decision, who.name)
            steps += 1
    finally:
        if steps:
            address = address_of(request)
            service.audit.write(who.name, who.role, "judge", subject=job_id, address=address)
    return _answer(run.view(at, None, None))


@ROUTER.get(
    "/jobs/{job_id}/reviews",
    summary="The log of all that people said",
    dependencies=for_readers,
    response_model=RecordPage,
    responses=answers(409),
)
def reviews(
    service: Kept,
    job_id: JobId,
    after: AfterRecord = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """The lines of `reviews.jsonl`, in the order they were written; nothing is ever taken out of it."""
    service.jobs.get(job_id)
    return record_page(service.run_folder(job_id) / REVIEWS, after, limit)


@ROUTER.get("/jobs/{job_id}/agreement", summary="How far reviewers agree", responses=answers(409))
def agreement(who: Reader, run: Run) -> AgreementAnswer:
    """Krippendorff's α over all findings that two or more have judged, and the counts of decisions."""
    alpha = run.agreement()
    counts = asdict(run.progress(Filters("all", doubtful=True), who.name))
    return AgreementAnswer(alpha=alpha.alpha, judged_twice=alpha.units, reviewers=run.reviewers, **counts)


def _anomaly(version: NewText) -> Anomaly:
    try:
        return Anomaly.model_validate(version.model_dump())
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise ApiError(422, f"{first['msg']}.", field=f"version.{first['loc'][0]}") from None


def _known(run: ReviewRun, finding: str) -> FindingId:
    at = FindingId.read(finding)
    if not run.has(at):
        raise ApiError(404, "The job has no such finding.")
    return at


def _answer(view: FindingView) -> FindingAnswer:
    finding = view.finding
    return FindingAnswer(
        id=str(view.id),
        image=view.record.image,
        width=view.record.width,
        height=view.record.height,
        text=view.text,
        anomaly=AnomalyAnswer.model_validate(finding.anomaly),
        doubt=None if view.doubt is None else view.doubt.value,
        votes=dict(finding.votes),
        decision=finding.decision,
        tied=finding.tied,
        added_by=finding.added_by,
        edited_by=finding.edited_by,
    )
