"""Batch APIs of providers: many requests handed in at once, answered within a day at half price.

A `BatchApi` knows the wire, nothing of a run: one line of JSON for a request, a file of lines handed in, its
state, its results. Lines are known by a key of the caller's, which comes back with the answer. An image that
was uploaded is named in them instead of being there. What survives a kill, and who waits, is
`uncanny.client.batches`'s.

Calls go through the SDKs, and bodies are read here, as those of single calls are. A file of results is loaded
as a whole, which `MOST_LINES` keeps small enough.
"""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Container, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx2
import orjson
from openai import AsyncOpenAI

from uncanny.errors import ModelUnusableError, ProviderError, RequestRejectedError, TransientError
from uncanny.files import read_file
from uncanny.models.base import Files, ModelRequest, ModelResponse, SentImage
from uncanny.models.discount.responses import as_body, outcome, read_response
from uncanny.models.error_body import one_line
from uncanny.models.http import Exchange, checked_id, read_body
from uncanny.models.http_errors import ErrorContext, NothingThereError, bad_body, from_response
from uncanny.models.openai_chat import count

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

# OpenAI takes 50,000 lines in 200 MB, Anthropic 100,000 in 256 MB. Files are held in memory on the way.
MOST_LINES: Final = 10_000
MOST_BYTES: Final = 100_000_000
LARGEST_RESULTS: Final = 512 * 1024 * 1024
"""Bytes of the results of a batch after which no more is read."""
TIMEOUT_S: Final = 900.0
"""Of one upload or download, in seconds."""
SMALLEST_FILE: Final = 50_000
"""Bytes of base64 from which an image is worth a file: uploading and deleting it are requests, too."""
FILES_LAST: Final = timedelta(days=3)
"""After that the provider deletes a file by itself."""
_PAGE = 100
_CLOCKS_DIFFER = timedelta(minutes=10)

Body = Callable[[ModelRequest, Files], Any]
"""The body of a single call, as JSON or to be written as such."""
Read = Callable[[dict[str, Any], str | None], ModelResponse]
"""The response in the body of an answer, with the provider's id of the call. Raises ProviderError."""


@dataclass(frozen=True, slots=True)
class BatchState:
    """`ended`: there are results, or none will come. `rejected` is why nothing in it was asked, None where
    that is not so; `over_limit`: it may be taken when other batches have ended, or in parts."""

    ended: bool
    rejected: str | None = None
    over_limit: bool = False


@dataclass(frozen=True, slots=True)
class LostBatch:
    """A batch that may have been handed in as `tag`, with `number` lines, at `since` at the earliest.

    The ids `known` are those of others.
    """

    tag: str
    number: int
    since: datetime
    known: Container[str]


class BatchApi(ABC):
    """The batches of one model's provider. All calls raise `ProviderError`, as single calls do."""

    def __init__(self, client: AsyncOpenAI | AsyncAnthropic, context: ErrorContext, body: Body) -> None:
        self._files = client.files.with_raw_response
        self._context, self._body = context, body

    @abstractmethod
    async def upload(self, image: SentImage) -> str:
        """Store an image for `FILES_LAST`; the id of the file."""

    async def delete(self, file: str) -> None:
        """Delete what was uploaded, if it is still there."""
        with suppress(NothingThereError):
            await self._json(lambda: self._files.delete(file))

    @abstractmethod
    def line(self, key: str, request: ModelRequest, files: Files) -> bytes:
        """A line of JSON for `submit`. `key` has at most 64 letters, digits, `_` and `-`."""

    @abstractmethod
    async def submit(self, tag: str, lines: Path) -> str:
        """Hand in a file of lines; the id of the batch. `tag` is the caller's own name of it."""

    @abstractmethod
    async def find(self, lost: LostBatch) -> str | None:
        """Its id; None where it was never handed in."""

    @abstractmethod
    async def state(self, batch: str) -> BatchState:
        """How far it is."""

    @abstractmethod
    async def results(self, batch: str) -> bytes:
        """The results of a batch that has ended, in lines of JSON in any order."""

    async def forget(self, batch: str) -> None:  # noqa: B027 - not all keep anything
        """Delete what was uploaded for it."""

    @abstractmethod
    def answer(self, result: Mapping[str, Any]) -> ModelResponse | ProviderError:
        """What a line of the results holds: an answer, a refusal among them, or why there is none."""

    def _failed(self, status: int, body: object) -> ModelResponse | ProviderError:
        def failed() -> ModelResponse:
            raise from_response(status, {}, as_body(body), self._context)

        return outcome(failed)

    def _unanswered(self, why: str) -> ProviderError:
        return TransientError(f"{self._context.name}: a batch has no answer to it: {why}", kind="batch")

    async def _exchange(self, call: Callable[[], Any]) -> httpx2.Response:
        """The response to an SDK's raw call."""
        async with Exchange(self._context, TIMEOUT_S) as exchange:
            exchange.response = (await call()).http_response
        return exchange.checked()

    async def _json(self, call: Callable[[], Any]) -> dict[str, Any]:
        response = await self._exchange(call)
        return read_body(response.content, response.headers, self._context)

    def _state(self, status: object, under_way: tuple[str, ...], ended: tuple[str, ...]) -> BatchState:
        """Raises TransientError for a status that nobody knows: it must not be waited for without end."""
        if status in under_way:
            return BatchState(False)
        if status in ended:
            return BatchState(True)
        raise bad_body(self._context, f"a batch has the unknown status {str(status)[:50]!r}")

    async def _uploaded(self, upload: Callable[..., Any], image: SentImage, **more: object) -> str:
        kind = image.media_type.partition("/")[2]
        file = f"{image.sha256}.{kind}", base64.b64decode(image.base64), image.media_type
        return self._id(await self._json(partial(upload, file=file, **more)))

    def _whole(self, results: bytes) -> bytes:
        """Raises TransientError for what was cut off on the way, or is another page."""
        for line in map(bytes.strip, BytesIO(results)):
            if line and not (line.startswith(b"{") and line.endswith(b"}")):
                raise bad_body(self._context, "the results of a batch are not whole")
        return results

    def _id(self, content: Mapping[str, Any]) -> str:
        return self._checked(content.get("id"))

    def _checked(self, name: object) -> str:
        return checked_id(name, self._context)


class OpenAIBatches(BatchApi):
    """OpenAI's batches of responses: chat completions know no files for images. The caller's tag is in the
    `metadata` of a batch."""

    ENDPOINT: Final = "/v1/responses"
    _ENDED: Final = ("completed", "expired", "cancelled")
    _UNDER_WAY: Final = ("validating", "in_progress", "finalizing", "cancelling")

    def __init__(self, client: AsyncOpenAI, context: ErrorContext, body: Body) -> None:
        super().__init__(client, context, body)
        self._client = client
        # What is uploaded and in no batch yet, by tag.
        self._sources: dict[str, str] = {}

    async def upload(self, image: SentImage) -> str:
        lasts = {"anchor": "created_at", "seconds": round(FILES_LAST.total_seconds())}
        return await self._uploaded(
            self._client.files.with_raw_response.create, image, purpose="vision", expires_after=lasts
        )

    def line(self, key: str, request: ModelRequest, files: Files) -> bytes:
        body = self._body(request, files) | {"store": False}
        line = {"custom_id": key, "method": "POST", "url": self.ENDPOINT, "body": body}
        return orjson.dumps(line)

    async def submit(self, tag: str, lines: Path) -> str:
        files, batches = self._client.files.with_raw_response, self._client.batches.with_raw_response
        if tag not in self._sources:
            data = read_file(lines)
            uploaded = await self._json(lambda: files.create(file=(f"{tag}.jsonl", data), purpose="batch"))
            self._sources[tag] = self._id(uploaded)
        source = self._sources[tag]
        try:
            made = await self._json(
                lambda: batches.create(
                    input_file_id=source,
                    endpoint=self.ENDPOINT,
                    completion_window="24h",
                    metadata={"uncanny": tag},
                )
            )
        except (ModelUnusableError, RequestRejectedError):
            with suppress(ProviderError):
                await self.delete(source)
            raise
        name = self._id(made)
        del self._sources[tag]
        return name

    async def find(self, lost: LostBatch) -> str | None:
        listed = self._client.batches.with_raw_response.list
        async for each in _listed(self._json, listed, "after", lost.since):
            metadata = each.get("metadata")
            if isinstance(metadata, dict) and metadata.get("uncanny") == lost.tag:
                return self._id(each)
        return None

    async def state(self, batch: str) -> BatchState:
        content = await self._batch(batch)
        status = content.get("status")
        if status != "failed":
            return self._state(status, self._UNDER_WAY, self._ENDED)
        match content:
            case {"errors": {"data": [{"code": str(code), "message": str(message)}, *_]}}:
                why = one_line(f"{code}: {message}", self._context.secrets)
                return BatchState(True, why[:300], over_limit=code == "token_limit_exceeded")
        return BatchState(True, "no reason given")

    async def results(self, batch: str) -> bytes:
        content = await self._batch(batch)
        raw = self._client.files.with_raw_response
        parts: list[bytes] = []
        for name in ("output_file_id", "error_file_id"):
            if content.get(name):
                file = self._checked(content[name])
                parts.append((await self._exchange(partial(raw.content, file))).content)
        return self._whole(b"\n".join(parts))

    async def forget(self, batch: str) -> None:
        source = self._checked((await self._batch(batch)).get("input_file_id"))
        await self.delete(source)

    async def _batch(self, batch: str) -> dict[str, Any]:
        name = self._checked(batch)
        return await self._json(lambda: self._client.batches.with_raw_response.retrieve(name))

    def answer(self, result: Mapping[str, Any]) -> ModelResponse | ProviderError:
        match result:
            case {"response": {"status_code": 200, "body": dict(body)}}:
                return outcome(read_response, body, self._context)
            case {"response": {"status_code": int(status), "body": body}}:
                return self._failed(status, body)
            case {"error": {"code": str(code)}}:
                return self._unanswered(code)
        return self._unanswered("a line of the results has neither a response nor an error")


class AnthropicBatches(BatchApi):
    """Anthropic's batches of messages. They carry no tag: a lost one is known by its time and size."""

    def __init__(self, client: AsyncAnthropic, context: ErrorContext, body: Body, read: Read) -> None:
        # The SDK has files outside its beta, documentation still asks for the header.
        self._client = client.with_options(default_headers={"anthropic-beta": "files-api-2025-04-14"})
        super().__init__(self._client, context, body)
        self._read = read

    async def upload(self, image: SentImage) -> str:
        upload = self._client.files.with_raw_response.upload
        return await self._uploaded(upload, image, expires_in_seconds=round(FILES_LAST.total_seconds()))

    def line(self, key: str, request: ModelRequest, files: Files) -> bytes:
        return orjson.dumps({"custom_id": key, "params": orjson.Fragment(self._body(request, files))})

    async def submit(self, tag: str, lines: Path) -> str:  # noqa: ARG002
        requests = read_file(lines).splitlines()
        body = b'{"requests":[%b]}' % b",".join(requests)
        async with Exchange(self._context, TIMEOUT_S) as exchange:
            exchange.response = await self._client.post(
                "/v1/messages/batches", cast_to=httpx2.Response, content=body
            )
        content, _ = exchange.result()
        return self._id(content)

    async def find(self, lost: LostBatch) -> str | None:
        oldest = None
        listed = self._client.messages.batches.with_raw_response.list
        async for each in _listed(self._json, listed, "after_id", lost.since):
            counts = each.get("request_counts")
            number = sum(count(each) or 0 for each in counts.values()) if isinstance(counts, dict) else 0
            if number == lost.number and each.get("id") not in lost.known:
                oldest = self._id(each)
        return oldest

    async def state(self, batch: str) -> BatchState:
        name = self._checked(batch)
        raw = self._client.messages.batches.with_raw_response
        content = await self._json(lambda: raw.retrieve(name))
        return self._state(content.get("processing_status"), ("in_progress", "canceling"), ("ended",))

    async def results(self, batch: str) -> bytes:
        # Not from the address that the answer names: the key goes to the user's server and nowhere else.
        path = f"/v1/messages/batches/{self._checked(batch)}/results"
        async with Exchange(self._context, TIMEOUT_S) as exchange:
            exchange.response = await self._client.get(path, cast_to=httpx2.Response)
        return self._whole(exchange.checked().content)

    def answer(self, result: Mapping[str, Any]) -> ModelResponse | ProviderError:
        match result:
            case {"result": {"type": "succeeded", "message": dict(message)}}:
                name = message.get("id")
                return outcome(self._read, message, name if isinstance(name, str) else None)
            case {"result": {"type": "errored", "error": error}}:
                return self._failed(_status(error), error)
            case {"result": {"type": str(kind)}}:
                return self._unanswered(f"the request was {kind}")
        return self._unanswered("a line of the results has no result")


# Lines of a batch have types of errors, and no statuses.
_STATUSES: Final = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "overloaded_error": 529,
}


def _status(error: object) -> int:
    match error:
        case {"error": {"type": str(kind)}}:
            return _STATUSES.get(kind, 500)
    return 500


def _moment(given: object) -> datetime | None:
    """In seconds, as OpenAI has it, or in words, as Anthropic."""
    try:
        if isinstance(given, int):
            return datetime.fromtimestamp(given, UTC)
        moment = datetime.fromisoformat(given) if isinstance(given, str) else None
    except (ValueError, OverflowError, OSError):
        return None
    return moment if moment is None or moment.tzinfo else moment.replace(tzinfo=UTC)


async def _listed(
    json: Callable[[Callable[[], Any]], Any], page: Callable[..., Any], cursor: str, since: datetime
) -> AsyncIterator[dict[str, Any]]:
    """Batches of the account, the newest first, back to `since`."""
    after: dict[str, Any] = {}
    while True:
        content = await json(partial(page, limit=_PAGE, **after))
        data = content.get("data")
        batches = [each for each in data if isinstance(each, dict)] if isinstance(data, list) else []
        for each in batches:
            created = _moment(each.get("created_at"))
            if created is None or created < since - _CLOCKS_DIFFER:
                return
            yield each
        following = {cursor: batches[-1].get("id")} if batches else after
        if following == after or content.get("has_more") is not True:
            return
        after = following
