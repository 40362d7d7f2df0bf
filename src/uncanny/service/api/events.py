"""What happens to a job, as it happens: server-sent events `record`, `progress` and `state`.

The id of an event says which records were sent before it, so that a stream that broke goes on where it was
(`Last-Event-ID`). A stream ends after the state in which the job has ended, and when the server ends.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from fastapi import Depends, Header, Query, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.concurrency import run_in_threadpool

from uncanny.errors import ConflictError, NotFoundError, UsageError
from uncanny.service.answers import Job
from uncanny.service.api.auth import Reader, gate_of
from uncanny.service.api.errors import ApiError, answers
from uncanny.service.api.results import PAGE_PLACE
from uncanny.service.api.routes import JobId, Kept, answer_of, routes
from uncanny.service.jobs.kinds import records_file
from uncanny.service.jobs.records import Place, Tail

ROUTER: Final = routes("jobs")
POLL_S: Final = 0.4
MOST_STREAMS: Final = 300
# Of these, those of one person, so that nobody takes them from all others.
MOST_OF_ONE: Final = 100
# Records of one look; there is another look at once where there may be more.
_RECORDS: Final = 200
# After so many looks it is asked again whether the token still holds.
_LOOKS: Final = 25
_END: Final = ".end"


@dataclass(frozen=True, slots=True)
class _Start:
    name: str
    job: Job
    place: Place


def _start(
    request: Request,
    service: Kept,
    who: Reader,
    job_id: JobId,
    after: Annotated[
        str | None, Query(pattern=PAGE_PLACE, description="Records from here on: `end` of a page.")
    ] = None,
    last_event_id: Annotated[
        str | None, Header(description="Sent by browsers that connect again.", max_length=100)
    ] = None,
) -> _Start:
    """What can be wrong is found before the stream begins: after that there is no status to say it.

    Raises ApiError 204 where all has been sent, which ends a browser's attempts.
    """
    streams: Counter[str] = request.app.state.streams
    if streams.total() >= MOST_STREAMS or streams[who.name] >= MOST_OF_ONE:
        raise ApiError(503, "Too many streams are open.", headers={"Retry-After": "5"})
    job = service.jobs.get(job_id)
    place = Place.read(after) if after is not None else Place()
    if last_event_id is not None:
        attempt, _, rest = last_event_id.partition("-")
        same = attempt == str(job.attempt)
        if same and rest.endswith(_END) and job.has_ended:
            raise ApiError(204, "")
        try:
            place = Place.read(rest.removesuffix(_END))
        except UsageError:
            place = Place()  # of nobody's making: as if there were none
    return _Start(who.name, job, place)


@ROUTER.get(
    "/jobs/{job_id}/events",
    summary="What happens to it",
    response_class=EventSourceResponse,
    responses=answer_of(
        "text/event-stream",
        "Events `record` (a line of its records), `progress` and `state` (the job).",
        example='event: progress\ndata: {"total":30,"done":12}\nid: 1-1311768.4096\n\n',
    )
    | {204: {"description": "The job has ended, and everything was sent before `Last-Event-ID`."}}
    | answers(503),
)
async def events(
    request: Request,
    service: Kept,
    start: Annotated[_Start, Depends(_start)],
    records: Annotated[bool, Query(description="Whether records are sent, too.")] = True,
) -> AsyncIterator[ServerSentEvent]:
    """Progress and state at once and whenever they change, and records as they are finished.

    Records of before are sent first, from `after` on. Where a run puts its records in order while a
    stream is broken, they come once more.
    """
    state = request.app.state
    state.streams[start.name] += 1
    tail: Tail | None = None
    try:
        job, shown = start.job, _Shown()
        tail = await run_in_threadpool(_tail, records_file(service, job), start.place)
        looks = 0
        while True:
            lines = await run_in_threadpool(tail.read, _RECORDS)
            for line in lines if records else ():
                name = f"{job.attempt}-{line.after}"
                yield ServerSentEvent(event="record", id=name, raw_data=line.text.decode())
            for event in shown.news(job, tail.place, more=len(lines) == _RECORDS):
                yield event
            if len(lines) < _RECORDS:
                if job.has_ended or state.ending.is_set():
                    return
                await asyncio.sleep(POLL_S)
            if state.ending.is_set():
                return
            looks += 1
            if looks % _LOOKS == 0 and await run_in_threadpool(gate_of(request).who, request) is None:
                return
            job = await run_in_threadpool(service.jobs.get, job.id)
    except NotFoundError:
        return  # it was deleted
    finally:
        state.streams[start.name] -= 1
        if tail is not None:
            tail.close()


def _tail(path: Path | None, place: Place) -> Tail:
    try:
        return Tail(path, place)
    except ConflictError:
        return Tail(path)


class _Shown:
    """What a stream has said of a job so far."""

    def __init__(self) -> None:
        self._progress: object = None
        self._state: object = None

    def news(self, job: Job, place: Place, *, more: bool) -> list[ServerSentEvent]:
        """What has changed. The state in which a job ends waits until there are no `more` records."""
        events: list[ServerSentEvent] = []
        name = f"{job.attempt}-{place}"
        if job.progress is not None and job.progress != self._progress:
            self._progress = job.progress
            events.append(ServerSentEvent(event="progress", id=name, raw_data=job.progress.model_dump_json()))
        state = (job.state, job.attempt)
        ends = job.has_ended
        if state != self._state and not (ends and more):
            self._state = state
            event_id = name + (_END if ends else "")
            events.append(ServerSentEvent(event="state", id=event_id, raw_data=job.model_dump_json()))
        return events
