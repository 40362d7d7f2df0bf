"""Images and files that clients send: kept under safe names, refused in words, each by itself.

An image that is refused, or that is there already, does not keep the others out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, TypeVar

from fastapi import Query, Request
from pydantic import BaseModel
from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from uncanny.errors import ImageError, writable
from uncanny.service import ID_PATTERNS
from uncanny.service.answers import (
    ImageSet,
    RefusedImage,
    SentImage,
    SentImages,
    SetPage,
    SetsPage,
    StoredFile,
)
from uncanny.service.api.auth import Operator, Who, address_of, for_operators, for_readers
from uncanny.service.api.errors import ApiError, answers
from uncanny.service.api.multipart import Begin, events
from uncanny.service.api.routes import PLAIN, FileId, IdempotencyKey, Kept, Note, Noted, SetId, Title, routes
from uncanny.service.service import Service
from uncanny.service.store.uploads import Incoming, UploadStore

M = TypeVar("M", bound=BaseModel)
ROUTER: Final = routes("uploads")
AfterName = Annotated[
    str, Query(min_length=1, max_length=200, pattern=PLAIN, description="`next` of the page before.")
]
_SHOWN_NAME: Final = 200
_BINARY: Final = {"type": "string", "format": "binary"}


def _form(name: str, part: dict[str, Any]) -> dict[str, Any]:
    """What a route says of its body: a form with one part, or several of one name."""
    schema = {"type": "object", "required": [name], "properties": {name: part}, "additionalProperties": False}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


_IMAGES_FORM: Final = _form("files", {"type": "array", "minItems": 1, "items": _BINARY})


@ROUTER.post(
    "/images",
    summary="Upload images as a new set",
    status_code=201,
    responses=answers(507),
    openapi_extra=_IMAGES_FORM,
)
async def upload_images(
    request: Request,
    service: Kept,
    who: Operator,
    note: Noted,
    name: Annotated[Title | None, Query(description="What people call the set.")] = None,
    idempotency_key: IdempotencyKey = None,
) -> SentImages:
    """Parts named `files`, each with a file's name, which may have folders. Jobs name `upload:SET`."""
    store = service.uploads
    created = await run_in_threadpool(store.new_set, name=name, by=who.name)
    note.subject = created.id
    async with _unless_kept(note, store.delete_set):
        received = _Received()
        answer = await _receive_images(request, store, created, received)
        note.details = received.counts()
        asked = [name or "", *(f"{image.sha256} {image.sent_as}" for image in answer.images)]
        return await _once(request, service, who, idempotency_key, asked, answer, note)


@ROUTER.get("/images", summary="Sets of images", dependencies=for_readers, responses=answers(404))
def list_sets(
    service: Kept,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    before: Annotated[
        str | None, Query(pattern=ID_PATTERNS["set"], description="`next` of the page before.")
    ] = None,
) -> SetsPage:
    """All sets that were uploaded, the newest first."""
    return service.uploads.sets(limit=limit, before=before)


@ROUTER.post(
    "/images/{set_id}",
    summary="Add images to a set",
    status_code=201,
    responses=answers(507),
    openapi_extra=_IMAGES_FORM,
)
async def add_images(request: Request, service: Kept, who: Operator, set_id: SetId) -> SentImages:
    """As a new set. What was kept before a request failed stays; sent again it is told as a duplicate."""
    image_set = await run_in_threadpool(service.uploads.image_set, set_id)
    received = _Received()
    try:
        return await _receive_images(request, service.uploads, image_set, received)
    finally:
        if received.kept:
            await run_in_threadpool(
                service.audit.write,
                *(who.name, who.role, "add_images"),
                subject=set_id,
                address=address_of(request),
                details=received.counts(),
            )


@ROUTER.get("/images/{set_id}", summary="A set and its images", dependencies=for_readers)
def image_set(
    service: Kept,
    set_id: SetId,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    after: AfterName | None = None,
) -> SetPage:
    """The set, and its images in order of their names."""
    return service.uploads.images(set_id, limit=limit, after=after)


@ROUTER.delete("/images/{set_id}", summary="Delete a set", dependencies=for_operators, status_code=204)
def delete_set(service: Kept, set_id: SetId, note: Noted) -> None:
    """The set and its images, unless a job that has not ended asks about them."""
    service.uploads.delete_set(set_id, note)


@ROUTER.post(
    "/files",
    summary="Upload a file of records",
    status_code=201,
    responses=answers(507),
    openapi_extra=_form("file", _BINARY),
)
async def upload_file(
    request: Request, service: Kept, who: Operator, note: Noted, idempotency_key: IdempotencyKey = None
) -> StoredFile:
    """One part named `file`: JSON Lines, JSON, CSV or Parquet. Refer to it as `upload:FILE`."""
    stored = await _receive_file(request, service, who.name)
    note.subject = stored.id
    async with _unless_kept(note, service.uploads.delete_file):
        asked = [stored.name, stored.sha256]
        return await _once(request, service, who, idempotency_key, asked, stored, note)


@ROUTER.get("/files/{file_id}", summary="An uploaded file", dependencies=for_readers)
def file(service: Kept, file_id: FileId) -> StoredFile:
    """Its name, size and digest."""
    return service.uploads.file(file_id)


@ROUTER.delete("/files/{file_id}", summary="Delete a file", dependencies=for_operators, status_code=204)
def delete_file(service: Kept, file_id: FileId, note: Noted) -> None:
    """The file, unless a job that has not ended reads it."""
    service.uploads.delete_file(file_id, note)


@dataclass(frozen=True, slots=True)
class _Received:
    """What has come in so far, also where the request fails later."""

    kept: list[SentImage] = field(default_factory=list)
    refused: list[RefusedImage] = field(default_factory=list)

    def counts(self) -> dict[str, int]:
        """For the audit log."""
        new = sum(not image.duplicate for image in self.kept)
        return {"images": new, "duplicates": len(self.kept) - new, "refused": len(self.refused)}


async def _receive_images(
    request: Request, store: UploadStore, image_set: ImageSet, received: _Received
) -> SentImages:
    limits = store.limits

    def finish(incoming: Incoming, name: str) -> None:
        try:
            stored = store.keep_image(image_set.id, incoming, name)
        except ImageError as error:
            received.refused.append(RefusedImage(name=_shown(name), code=error.kind, message=str(error)))
            return
        if stored is None:
            raise ApiError(413, f"A set takes at most {limits.set_images:,} images; begin another one.")
        image, was_there = stored
        received.kept.append(SentImage(**dict(image), sent_as=_shown(name), duplicate=was_there))

    await _receive(
        request, store, "files", limits.image_bytes, limits.request_bytes, limits.request_images, finish
    )
    if not received.kept and not received.refused:
        raise ApiError(422, "There is no image in the body.", field="files")
    now = await run_in_threadpool(store.image_set, image_set.id)
    return SentImages(**dict(now), images=tuple(received.kept), refused=tuple(received.refused))


async def _receive_file(request: Request, service: Service, by: str) -> StoredFile:
    store = service.uploads
    files: list[StoredFile] = []

    def finish(incoming: Incoming, name: str) -> None:
        if incoming.too_large:
            raise ApiError(413, f"The file is larger than {store.limits.file_bytes:,} bytes.")
        files.append(store.keep_file(incoming, name, by=by))

    most = store.limits.file_bytes
    await _receive(request, store, "file", most, most + 64 * 1024, 1, finish)
    if not files:
        raise ApiError(422, "There is no file in the body.", field="file")
    return files[0]


async def _receive(
    request: Request,
    store: UploadStore,
    field: Literal["files", "file"],
    most: int,
    most_bytes: int,
    most_files: int,
    finish: Callable[[Incoming, str], None],
) -> None:
    """Write each file as it comes in, and hand it to `finish` when it is all there."""
    incoming: Incoming | None = None
    name = ""
    try:
        async for event in events(request, most_bytes=most_bytes, most_files=most_files):
            match event:
                case Begin():
                    if event.field != field:
                        raise ApiError(422, f"Parts are to be named {field}.", field="body")
                    name = event.name
                    incoming = await run_in_threadpool(store.receive, most)
                case bytes():
                    assert incoming is not None
                    await run_in_threadpool(incoming.write, event)
                case _:
                    assert incoming is not None
                    with incoming:
                        await run_in_threadpool(finish, incoming, name)
                    incoming = None
    except ClientDisconnect:
        raise ApiError(400, "The body is cut off.") from None
    finally:
        if incoming is not None:
            with incoming:
                pass


@asynccontextmanager
async def _unless_kept(note: Note, drop: Callable[[str], None]) -> AsyncIterator[None]:
    """Drops a new upload in the end where the request fails, or has the answer of an earlier one."""
    try:
        yield
    finally:
        if not note.written and note.subject is not None:
            await run_in_threadpool(drop, note.subject)


async def _once(
    request: Request, service: Service, who: Who, key: str | None, asked: list[str], answer: M, note: Note
) -> M:
    """`answer`, noted, or that of an earlier request with this key, which sent the same."""
    content = "\n".join([request.url.path, *asked]).encode()

    def act(connection: Connection) -> str:
        note(connection)
        return answer.model_dump_json()

    text, was_kept = await run_in_threadpool(service.idempotency.once, who.name, key, content, act)
    if not was_kept:
        return answer
    note.written = False
    return type(answer).model_validate_json(text)


def _shown(name: str) -> str:
    text = writable(name)
    return text if len(text) <= _SHOWN_NAME else text[: _SHOWN_NAME - 1] + "…"
