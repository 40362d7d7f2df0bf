"""Images and files that clients send: kept under safe names, refused in words, each by itself.

An image that is refused, or that is there already, does not keep the others out.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Final, Literal, TypeVar

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import Connection
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from uncanny.errors import ImageError, ImageFault, writable
from uncanny.service.api.auth import Operator, Who, address_of, for_operators, for_readers
from uncanny.service.api.errors import ApiError, answers
from uncanny.service.api.multipart import Begin, Data, events
from uncanny.service.api.routes import PLAIN, IdempotencyKey, Kept, Note, Noted, Title
from uncanny.service.service import Service
from uncanny.service.store.uploads import ImageSet, Incoming, StoredFile, UploadStore

M = TypeVar("M", bound=BaseModel)
SetId = Annotated[str, Path(pattern="^set_[a-z2-7]{20}$", examples=["set_aaaaaaaaaaaaaaaaaaaa"])]
FileId = Annotated[str, Path(pattern="^file_[a-z2-7]{20}$", examples=["file_aaaaaaaaaaaaaaaaaaaa"])]
AfterName = Annotated[
    str, Query(min_length=1, max_length=200, pattern=PLAIN, description="`next` of the page before.")
]
_SHOWN_NAME: Final = 200
_READ: Final = (400, 401, 403, 422, 429)
_CHANGE: Final = (*_READ, 404)
_UPLOAD: Final = (*_READ, 408, 409, 413, 415, 507)
_BINARY: Final = {"type": "string", "format": "binary"}


def _form(name: str, part: dict[str, Any]) -> dict[str, Any]:
    """What a route says of its body: a form with one part, or several of one name."""
    schema = {"type": "object", "required": [name], "properties": {name: part}, "additionalProperties": False}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


_IMAGES_FORM: Final = _form("files", {"type": "array", "minItems": 1, "items": _BINARY})
_FILE_FORM: Final = _form("file", _BINARY)


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, from_attributes=True)


class SetAnswer(_Answer):
    """A set of uploaded images; `size` is bytes of all together."""

    id: Annotated[str, Field(examples=["set_aaaaaaaaaaaaaaaaaaaa"])]
    name: Annotated[str | None, Field(examples=["Batch 7"])]
    created_at: datetime
    created_by: Annotated[str, Field(examples=["ann"])]
    count: Annotated[int, Field(examples=[2])]
    size: Annotated[int, Field(examples=[120_554])]


class ImageAnswer(_Answer):
    """An image of a set; `size` in bytes, width and height in pixels as stored."""

    name: Annotated[str, Field(examples=["a/cat.png"])]
    sha256: Annotated[
        str, Field(examples=["9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"])
    ]
    size: Annotated[int, Field(examples=[60_277])]
    width: Annotated[int, Field(examples=[1024])]
    height: Annotated[int, Field(examples=[768])]


class SentImage(ImageAnswer):
    """An image that the set has, and the name it was sent under. A `duplicate` was there already."""

    sent_as: Annotated[str, Field(examples=["a/cat.png"])]
    duplicate: bool


class RefusedImage(_Answer):
    """An image that was not kept, under the name it was sent, and why: `code` for programs."""

    name: Annotated[str, Field(examples=["notes.txt"])]
    code: Annotated[ImageFault, Field(examples=["not_an_image"])]
    message: Annotated[str, Field(examples=["not an image: text. Give files in JPEG, PNG or WebP."])]


class SentImages(SetAnswer):
    """The set as it is now, and what became of the images of a request."""

    images: list[SentImage]
    refused: list[RefusedImage]


class SetPage(SetAnswer):
    """A set with some of its images in order of their names, `next` for those after them."""

    images: list[ImageAnswer]
    next: str | None


class SetsPage(_Answer):
    """Sets, the newest first."""

    sets: list[SetAnswer]
    next: str | None


class FileAnswer(_Answer):
    """An uploaded file; `size` in bytes."""

    id: Annotated[str, Field(examples=["file_aaaaaaaaaaaaaaaaaaaa"])]
    name: Annotated[str, Field(examples=["items.jsonl"])]
    sha256: str
    size: int
    created_at: datetime
    created_by: str


def add_upload_routes(api: APIRouter) -> None:
    _sets(api)
    _files(api)


def _sets(api: APIRouter) -> None:
    @api.post(
        "/images",
        tags=["uploads"],
        summary="Upload images as a new set",
        status_code=201,
        response_model=SentImages,
        responses=answers(*_UPLOAD),
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
            answer = await _receive_images(request, store, created)
            note.details = _counts(answer.images, answer.refused)
            asked = [name or "", *(f"{image.sha256} {image.sent_as}" for image in answer.images)]
            return await _once(request, service, who, idempotency_key, asked, answer, note)

    @api.get(
        "/images",
        tags=["uploads"],
        summary="Sets of images",
        dependencies=for_readers,
        response_model=SetsPage,
        responses=answers(*_CHANGE),
    )
    def list_sets(
        service: Kept,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        before: Annotated[
            str | None, Query(pattern="^set_[a-z2-7]{20}$", description="`next` of the page before.")
        ] = None,
    ) -> Any:
        """All sets that were uploaded, the newest first."""
        page, following = service.uploads.sets(limit=limit, before=before)
        return {"sets": page, "next": following}

    @api.post(
        "/images/{set_id}",
        tags=["uploads"],
        summary="Add images to a set",
        status_code=201,
        response_model=SentImages,
        responses=answers(*_UPLOAD, 404),
        openapi_extra=_IMAGES_FORM,
    )
    async def add_images(request: Request, service: Kept, who: Operator, set_id: SetId) -> SentImages:
        """As a new set. What was kept before a request failed stays; sent again it is told as a duplicate."""
        image_set = await run_in_threadpool(service.uploads.image_set, set_id)
        kept: list[SentImage] = []
        refused: list[RefusedImage] = []
        try:
            return await _receive_images(request, service.uploads, image_set, kept, refused)
        finally:
            if kept:
                await run_in_threadpool(
                    partial(
                        service.audit.write,
                        *(who.name, who.role, "add_images"),
                        subject=set_id,
                        address=address_of(request),
                        details=_counts(kept, refused),
                    )
                )

    @api.get(
        "/images/{set_id}",
        tags=["uploads"],
        summary="A set and its images",
        dependencies=for_readers,
        response_model=SetPage,
        responses=answers(*_CHANGE),
    )
    def image_set(
        service: Kept,
        set_id: SetId,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        after: AfterName | None = None,
    ) -> Any:
        """The set, and its images in order of their names."""
        image_set = service.uploads.image_set(set_id)
        images, following = service.uploads.images(set_id, limit=limit, after=after)
        return {**asdict(image_set), "images": images, "next": following}

    @api.delete(
        "/images/{set_id}",
        tags=["uploads"],
        summary="Delete a set",
        dependencies=for_operators,
        status_code=204,
        responses=answers(*_CHANGE, 409),
    )
    def delete_set(service: Kept, set_id: SetId, note: Noted) -> Response:
        """The set and its images, unless a job that has not ended asks about them."""
        service.uploads.delete_set(set_id, note)
        return Response(status_code=204)


def _files(api: APIRouter) -> None:
    @api.post(
        "/files",
        tags=["uploads"],
        summary="Upload a file of records",
        status_code=201,
        response_model=FileAnswer,
        responses=answers(*_UPLOAD),
        openapi_extra=_FILE_FORM,
    )
    async def upload_file(
        request: Request, service: Kept, who: Operator, note: Noted, idempotency_key: IdempotencyKey = None
    ) -> FileAnswer:
        """One part named `file`: JSON Lines, JSON, CSV or Parquet. Refer to it as `upload:FILE`."""
        stored = await _receive_file(request, service, who.name)
        note.subject = stored.id
        async with _unless_kept(note, service.uploads.delete_file):
            answer = FileAnswer.model_validate(stored)
            asked = [answer.name, answer.sha256]
            return await _once(request, service, who, idempotency_key, asked, answer, note)

    @api.get(
        "/files/{file_id}",
        tags=["uploads"],
        summary="An uploaded file",
        dependencies=for_readers,
        response_model=FileAnswer,
        responses=answers(*_CHANGE),
    )
    def file(service: Kept, file_id: FileId) -> Any:
        """Its name, size and digest."""
        return service.uploads.file(file_id)

    @api.delete(
        "/files/{file_id}",
        tags=["uploads"],
        summary="Delete a file",
        dependencies=for_operators,
        status_code=204,
        responses=answers(*_CHANGE, 409),
    )
    def delete_file(service: Kept, file_id: FileId, note: Noted) -> Response:
        """The file, unless a job that has not ended reads it."""
        service.uploads.delete_file(file_id, note)
        return Response(status_code=204)


async def _receive_images(
    request: Request,
    store: UploadStore,
    image_set: ImageSet,
    kept: list[SentImage] | None = None,
    refused: list[RefusedImage] | None = None,
) -> SentImages:
    """`kept` and `refused` are filled as images come in, for who wants to know also where it fails."""
    limits = store.limits
    kept = [] if kept is None else kept
    refused = [] if refused is None else refused

    def finish(incoming: Incoming, name: str) -> None:
        try:
            stored = store.keep_image(image_set.id, incoming, name)
        except ImageError as error:
            refused.append(RefusedImage(name=_shown(name), code=error.kind, message=str(error)))
            return
        if stored is None:
            raise ApiError(413, f"A set takes at most {limits.set_images:,} images; begin another one.")
        image, was_there = stored
        kept.append(SentImage(**asdict(image), sent_as=_shown(name), duplicate=was_there))

    await _receive(
        request, store, "files", limits.image_bytes, limits.request_bytes, limits.request_images, finish
    )
    if not kept and not refused:
        raise ApiError(422, "There is no image in the body.", field="files")
    now = await run_in_threadpool(store.image_set, image_set.id)
    return SentImages(**asdict(now), images=kept, refused=refused)


def _counts(kept: Sequence[SentImage], refused: Sequence[RefusedImage]) -> dict[str, int]:
    """For the audit log."""
    new = sum(not image.duplicate for image in kept)
    return {"images": new, "duplicates": len(kept) - new, "refused": len(refused)}


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
                case Data():
                    assert incoming is not None
                    await run_in_threadpool(incoming.write, event.data)
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
    """The name that a client sent, fit for an answer."""
    text = writable(name)
    return text if len(text) <= _SHOWN_NAME else text[: _SHOWN_NAME - 1] + "…"
