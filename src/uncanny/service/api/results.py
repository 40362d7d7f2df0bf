"""What a job has brought: its result, its records page by page, its files, and the words of its command."""

from __future__ import annotations

import os
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import Annotated, Final, Literal

import orjson
from fastapi import Path as PathPart
from fastapi import Query
from fastapi.responses import FileResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from uncanny.errors import NotFoundError
from uncanny.files.beneath import place_of
from uncanny.service.answers import FilePage, RecordPage
from uncanny.service.api.auth import for_readers
from uncanny.service.api.errors import ApiError, answers
from uncanny.service.api.routes import PLAIN, JobId, Kept, answer_of, routes
from uncanny.service.jobs.folder import (
    ANSWERS,
    MOST_FILES,
    RESULT,
    Digests,
    end_of_log,
    list_files,
    open_within,
    paths_within,
    zipped,
)
from uncanny.service.jobs.kinds import records_file
from uncanny.service.jobs.records import Place, Tail

ROUTER: Final = routes("results")
_DIGESTS: Final = Digests()
# What a model wrote is never run: a browser saves a file, and one that it opens after all can do nothing.
_SAVED: Final = "application/octet-stream"
_INERT: Final = {
    "Content-Security-Policy": "default-src 'none'; sandbox; base-uri 'none'; frame-ancestors 'none'"
}
PAGE_PLACE: Final = r"^[0-9]{1,18}\.[0-9]{1,18}$"
AfterRecord = Annotated[
    str | None, Query(pattern=PAGE_PLACE, description="`next` or `end` of the page before.")
]


_BINARY: Final = {"type": "string", "format": "binary"}


@ROUTER.get(
    "/jobs/{job_id}/result",
    summary="What the command found",
    dependencies=for_readers,
    responses=answer_of(
        "application/json",
        "The figures that the command prints as JSON.",
        schema={},
        example={"images": 3, "cost_usd": 0.12},
    )
    | answers(409),
)
def result(service: Kept, job_id: JobId) -> Response:
    """The JSON of the job's command, once it has ended."""
    job = service.jobs.get(job_id)
    if not job.has_ended:
        raise ApiError(409, f"The job is {job.state}.", code="not_ended")
    try:
        with open_within(service.job_folder(job_id), RESULT) as file:
            text = file.read()
        orjson.loads(text)
    except (NotFoundError, orjson.JSONDecodeError):
        why = f": {job.error}" if job.error else "."
        raise ApiError(404, f"The job is {job.state} and has no result{why}", code="no_result") from None
    return Response(text, media_type="application/json")


@ROUTER.get(
    "/jobs/{job_id}/records",
    summary="Its records",
    dependencies=for_readers,
    response_model=RecordPage,
    responses=answers(409),
)
def records(
    service: Kept,
    job_id: JobId,
    after: AfterRecord = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Response:
    """The records of its run, or of what it scored, in the order of their file.

    409 where the run has put its records in order since the page before: begin again then.
    """
    return record_page(records_file(service, service.jobs.get(job_id)), after, limit)


@ROUTER.get("/jobs/{job_id}/files", summary="Its files", dependencies=for_readers)
def files(
    service: Kept,
    job_id: JobId,
    after: Annotated[
        str, Query(max_length=1000, description="`next` of the page before.", pattern=PLAIN)
    ] = "",
    limit: Annotated[int, Query(ge=1, le=MOST_FILES)] = MOST_FILES,
) -> FilePage:
    """All files of its folder: the run, what was scored, the result."""
    service.jobs.get(job_id)
    return list_files(service.job_folder(job_id), _DIGESTS, after=after, limit=limit)


@ROUTER.get(
    "/jobs/{job_id}/archive",
    summary="Its files as one zip file",
    dependencies=for_readers,
    response_class=StreamingResponse,
    responses=answer_of("application/zip", "The zip file, to be saved.", schema=_BINARY),
)
def archive(
    service: Kept,
    job_id: JobId,
    under: Annotated[
        Literal["run", "out"] | None,
        Query(description="Only what lies in this folder of the job, named from there."),
    ] = None,
) -> Response:
    """All its files but the answers that are kept to go on with; made while it is sent.

    404 where there is none yet.
    """
    service.jobs.get(job_id)
    folder, below = service.job_folder(job_id), "" if under is None else f"{under}/"
    paths = [path for path in paths_within(folder, without=ANSWERS) if path.startswith(below)]
    if not paths:
        raise ApiError(404, "The job has written no files yet.", code="no_files")
    headers = _INERT | {"Content-Disposition": f'attachment; filename="{job_id}.zip"'}
    return StreamingResponse(zipped(folder, paths, below=below), 200, headers, "application/zip")


@ROUTER.get(
    "/jobs/{job_id}/files/{path:path}",
    summary="One of its files",
    dependencies=for_readers,
    response_class=FileResponse,
    responses=answer_of(_SAVED, "The file, to be saved.", schema=_BINARY)
    | {206: {"description": "The part of it that `Range` asks for."}}
    | answers(416),
)
def file(
    service: Kept,
    job_id: JobId,
    path: Annotated[str, PathPart(max_length=1000, examples=["run/annotations.jsonl"])],
) -> Response:
    """The file, or the range of it that `Range` asks for. Browsers save it and never show it."""
    service.jobs.get(job_id)
    return _OpenFileResponse(open_within(service.job_folder(job_id), path), PurePosixPath(path).name)


@ROUTER.get(
    "/jobs/{job_id}/log",
    summary="What its command said",
    dependencies=for_readers,
    responses=answer_of(
        "text/plain",
        "The end of its standard error.",
        schema={"type": "string"},
        example="12 images, 3 failed\n",
    ),
)
def log(
    service: Kept,
    job_id: JobId,
    tail: Annotated[int, Query(ge=1, le=1_000_000, description="Bytes from the end.")] = 65_536,
) -> Response:
    """The last of what the command wrote to its standard error; empty before it began."""
    service.jobs.get(job_id)
    text, _ = end_of_log(service.job_folder(job_id), tail)
    return Response(text, media_type="text/plain; charset=utf-8")


class _OpenFileResponse(FileResponse):
    """A file that is open already: its name may stand for another one by the time it is sent."""

    def __init__(self, file: BufferedReader, name: str) -> None:
        self._file = file
        status = os.fstat(file.fileno())
        super().__init__(place_of(file), media_type=_SAVED, filename=name, headers=_INERT, stat_result=status)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._file:
            await super().__call__(scope, receive, send)


def record_page(path: Path | None, after: str | None, limit: int) -> Response:
    """A `RecordPage` of the lines of a file as they are. Raises ConflictError as `Tail`."""
    with Tail(path, None if after is None else Place.read(after)) as tail:
        page, end = tail.read(limit), tail.place
        following = end if tail.read(1) else None
    more = orjson.dumps({"next": following and str(following), "end": str(end)})
    texts = b",".join(line.text for line in page)
    return Response(b'{"records":[' + texts + b"]," + more[1:], media_type="application/json")
