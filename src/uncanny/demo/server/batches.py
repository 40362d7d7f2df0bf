"""Batch APIs of the fake server: `/v1/batches`, OpenAI's of responses and Anthropic's `/v1/messages/batches`.

A batch ends after `batch_seconds`. Its results come in another order than its lines, as both APIs allow, and
some go wrong on purpose: see `BatchFault`. All is kept in memory.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any

import orjson
from aiohttp import web

from uncanny.demo.server.api import BadRequestError, ProviderApi, Reply
from uncanny.demo.server.faults import BatchFault, FakeServerOptions, batch_fault
from uncanny.demo.server.files import Files
from uncanny.demo.server.responses import as_chat, as_response

Answer = Callable[[ProviderApi, Mapping[str, Any], BatchFault | None], Reply]
"""The reply to the body of one line."""
Tokens = Callable[[ProviderApi, Mapping[str, Any]], int]
"""Input tokens of the body of one line."""

MOST_LINES = 50_000
_CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class _Line:
    key: str
    body: Mapping[str, Any]


@dataclass
class _Batch:
    """A batch of either API; `problem` is what OpenAI rejects it for as a whole, as code and message."""

    id: str
    lines: Sequence[_Line]
    ends: float
    answer: Callable[[_Line, int], tuple[BatchFault | None, Reply | None]]
    input_file: str = ""
    endpoint: str = ""
    metadata: Mapping[str, str] | None = None
    problem: tuple[str, str] | None = None
    tokens: int = 0
    created: float = field(default_factory=time.time)
    cancelled: bool = False
    files: dict[str, str] = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        return self.cancelled or self.problem is not None or time.monotonic() >= self.ends

    @cached_property
    def results(self) -> list[tuple[_Line, BatchFault | None, Reply | None]]:
        """What came of each line, in another order; no reply to a line that has expired."""
        results = [(line, *self.answer(line, number)) for number, line in enumerate(self.lines)]
        random.Random(self.id).shuffle(results)
        return [each for each in results if each[1] != "missing"]


class Batches:
    """The batches and files of one server."""

    def __init__(
        self,
        options: FakeServerOptions,
        answer: Answer,
        tokens: Tokens,
        openai: ProviderApi,
        anthropic: ProviderApi,
    ) -> None:
        self._options, self._answer, self._tokens = options, answer, tokens
        self._openai, self._anthropic = openai, anthropic
        self._files = Files()
        self._batches: dict[str, _Batch] = {}
        self._made = 0
        self._lines = self._bytes = 0
        self._to_lose = options.lost_batches

    def stats(self) -> dict[str, int]:
        """Batches that were accepted, the lines in them, and lines of batches that have ended whose key had
        an answer in another one already. `upload_bytes` are all that came with files and batches."""
        uploads = self._files.stats()
        accepted = [each for each in self._batches.values() if each.problem is None]
        answered = [
            line.key
            for each in accepted
            if each.ended and not each.cancelled
            for line, _, reply in each.results
            if reply is not None and reply.status < 400
        ]
        return {
            "batches": len(accepted),
            "batch_lines": sum(len(each.lines) for each in accepted),
            "batch_lines_answered_again": len(answered) - len(set(answered)),
            **uploads,
            "upload_bytes": uploads["upload_bytes"] + self._bytes,
        }

    def add_routes(self, router: web.UrlDispatcher) -> None:
        for method, path, handler in (
            ("POST", "/v1/files", self._files.upload),
            ("GET", "/v1/files/{id}", self._files.get),
            ("DELETE", "/v1/files/{id}", self._files.delete),
            ("GET", "/v1/files/{id}/content", self._files.content),
            ("POST", "/v1/batches", self._create),
            ("GET", "/v1/batches", self._list),
            ("GET", "/v1/batches/{id}", self._get),
            ("POST", "/v1/batches/{id}/cancel", self._cancel),
        ):
            router.add_route(method, path, partial(self._guarded, self._openai, handler))
        for method, path, handler in (
            ("POST", "/v1/messages/batches", self._create_messages),
            ("GET", "/v1/messages/batches", self._list_messages),
            ("GET", "/v1/messages/batches/{id}", self._get_messages),
            ("GET", "/v1/messages/batches/{id}/results", self._results),
            ("POST", "/v1/messages/batches/{id}/cancel", self._cancel_messages),
        ):
            router.add_route(method, path, partial(self._guarded, self._anthropic, handler))

    async def _guarded(self, api: ProviderApi, handler: Any, request: web.Request) -> web.StreamResponse:
        status, message = 400, ""
        try:
            response: web.StreamResponse = await handler(request)
            return response
        except KeyError as error:
            status, message = 404, f"There is no file or batch {error}"
        except BadRequestError as error:
            message = str(error)
        if "anthropic-version" in request.headers:
            api = self._anthropic
        return web.Response(
            status=status, body=api.error(status, message, 0), content_type="application/json"
        )

    def _number(self) -> int:
        self._made += 1
        return self._made

    def _line_answer(
        self, api: ProviderApi
    ) -> Callable[[_Line, int], tuple[BatchFault | None, Reply | None]]:
        before = self._lines

        def answer(line: _Line, number: int) -> tuple[BatchFault | None, Reply | None]:
            fault = batch_fault(self._options, before + number)
            gone = fault in ("expired", "missing")
            return fault, None if gone else self._reply(api, line, fault)

        return answer

    def _reply(self, api: ProviderApi, line: _Line, fault: BatchFault | None) -> Reply:
        try:
            body = self._single(api, line)
        except BadRequestError as error:
            return Reply(error.status, api.error(error.status, str(error), 0))
        reply = self._answer(api, body, fault)
        if api is not self._openai or reply.status >= 400:
            return reply
        return Reply(reply.status, orjson.dumps(as_response(f"resp_{line.key}", body, reply)))

    def _single(self, api: ProviderApi, line: _Line) -> Mapping[str, Any]:
        """The body of a single call that asks what the line does. Raises BadRequestError."""
        if api is self._openai:
            return as_chat(self._files.filled(line.body, status=400))
        filled: dict[str, Any] = self._files.filled(line.body, status=404)
        return filled

    def _size(self, line: _Line) -> int:
        try:
            return self._tokens(self._openai, self._single(self._openai, line))
        except BadRequestError:
            return 0

    def _add(self, batch: _Batch) -> None:
        self._batches[batch.id] = batch
        self._lines += len(batch.lines)

    def _lose(self, request: web.Request) -> None:
        """Drop the connection after a batch was made: its maker does not hear of it."""
        if self._to_lose and request.transport is not None:
            self._to_lose -= 1
            request.transport.close()

    # OpenAI

    async def _create(self, request: web.Request) -> web.Response:
        body = orjson.loads(await request.read())
        endpoint, source = body.get("endpoint"), body.get("input_file_id")
        if endpoint != "/v1/responses":
            raise BadRequestError(f"endpoint: {endpoint!r} cannot be used in a batch of the fake server")
        lines, problem = self._read_lines(self._files.data(source), endpoint)
        tokens = sum(map(self._size, lines))
        queued = sum(each.tokens for each in self._batches.values() if not each.ended)
        most = self._options.batch_tokens
        if problem is None and most is not None and queued + tokens > most:
            problem = "token_limit_exceeded", f"Enqueued token limit reached: {most:,} tokens"
        batch = _Batch(
            f"batch_fake{self._number()}",
            lines,
            time.monotonic() + self._options.batch_seconds,
            self._line_answer(self._openai),
            input_file=source,
            endpoint=endpoint,
            metadata=body.get("metadata"),
            problem=problem,
            tokens=tokens,
        )
        self._add(batch)
        self._lose(request)
        # What is wrong with it shows later: creation succeeds.
        return web.json_response(self._batch_json(batch) | {"status": "validating", "errors": None})

    @staticmethod
    def _read_lines(data: bytes, endpoint: str) -> tuple[list[_Line], tuple[str, str] | None]:
        lines: list[_Line] = []
        keys: set[str] = set()
        for number, text in enumerate(data.splitlines(), start=1):
            try:
                line = orjson.loads(text)
                key, body = line["custom_id"], line["body"]
            except (orjson.JSONDecodeError, KeyError, TypeError):
                return [], ("invalid_json_line", f"Line {number} is not a request")
            if line.get("method") != "POST" or line.get("url") != endpoint:
                return [], ("mismatched_url", f"Line {number} is not for {endpoint}")
            if key in keys:
                return [], ("duplicate_custom_id", f"Line {number} has the custom_id of an earlier line")
            keys.add(key)
            lines.append(_Line(key, body))
        if len(lines) > MOST_LINES:
            return [], ("too_many_tasks", f"More than {MOST_LINES:,} lines")
        return lines, None if lines else ("empty_file", "The file has no lines")

    def _batch_json(self, batch: _Batch) -> dict[str, Any]:
        failed = (
            [each for each in batch.results if each[2] is None or each[2].status >= 400]
            if batch.ended
            else []
        )
        status = "in_progress"
        if batch.problem is not None:
            status = "failed"
        elif batch.cancelled:
            status = "cancelled"
        elif batch.ended:
            self._write_files(batch)
            status = "expired" if any(fault == "expired" for _, fault, _ in batch.results) else "completed"
        errors = None
        if batch.problem is not None:
            code, message = batch.problem
            errors = {
                "object": "list",
                "data": [{"code": code, "message": message, "line": None, "param": None}],
            }
        created, completed = round(batch.created), len(batch.results) - len(failed) if batch.ended else 0
        return {
            "id": batch.id,
            "object": "batch",
            "endpoint": batch.endpoint,
            "errors": errors,
            "input_file_id": batch.input_file,
            "completion_window": "24h",
            "status": status,
            "output_file_id": batch.files.get("output"),
            "error_file_id": batch.files.get("error"),
            "created_at": created,
            "expires_at": created + _DAY_S,
            "request_counts": {"total": len(batch.lines), "completed": completed, "failed": len(failed)},
            "metadata": batch.metadata,
        }

    def _write_files(self, batch: _Batch) -> None:
        """The two files of results; one without lines is not made."""
        if batch.files or batch.cancelled:
            return
        content: dict[str, list[bytes]] = {"output": [], "error": []}
        for number, (line, _, reply) in enumerate(batch.results):
            entry: dict[str, Any] = {"id": f"batch_req_{number}", "custom_id": line.key}
            if reply is None:
                message = "This request could not be executed before the completion window expired."
                entry |= {"response": None, "error": {"code": "batch_expired", "message": message}}
            else:
                response = {
                    "status_code": reply.status,
                    "request_id": f"req_fake_{number}",
                    "body": orjson.Fragment(reply.body),
                }
                entry |= {"response": response, "error": None}
            good = reply is not None and reply.status < 400
            content["output" if good else "error"].append(orjson.dumps(entry) + b"\n")
        for kind, lines in content.items():
            if lines:
                filename = f"{batch.id}_{kind}.jsonl"
                batch.files[kind] = self._files.add(filename, b"".join(lines), "batch_output")

    async def _get(self, request: web.Request) -> web.Response:
        return web.json_response(self._batch_json(self._batches[request.match_info["id"]]))

    async def _list(self, request: web.Request) -> web.Response:
        return self._page(request, "batch_", self._batch_json)

    async def _cancel(self, request: web.Request) -> web.Response:
        batch = self._batches[request.match_info["id"]]
        batch.cancelled = not batch.ended or batch.cancelled
        return web.json_response(self._batch_json(batch))

    def _page(
        self, request: web.Request, prefix: str, shown: Callable[[_Batch], dict[str, Any]]
    ) -> web.Response:
        """Newest first, as both APIs list them."""
        every = [each for each in reversed(self._batches.values()) if each.id.startswith(prefix)]
        after = request.query.get("after") or request.query.get("after_id")
        if after is not None:
            every = every[[each.id for each in every].index(after) + 1 :]
        limit = int(request.query.get("limit", "20"))
        page = [shown(each) for each in every[:limit]]
        ends = {"first_id": page[0]["id"], "last_id": page[-1]["id"]} if page else {}
        return web.json_response(
            {
                "object": "list",
                "data": page,
                "has_more": len(every) > limit,
                "first_id": None,
                "last_id": None,
            }
            | ends
        )

    # Anthropic

    async def _create_messages(self, request: web.Request) -> web.Response:
        body = orjson.loads(await request.read())
        self._bytes += request.content_length or 0
        lines: dict[str, _Line] = {}
        for number, each in enumerate(body.get("requests") or ()):
            key = each.get("custom_id")
            if not isinstance(key, str) or _CUSTOM_ID.fullmatch(key) is None or key in lines:
                raise BadRequestError(f"requests.{number}.custom_id: must be unique, of 1 to 64 characters")
            lines[key] = _Line(key, each.get("params") or {})
        if not lines:
            raise BadRequestError("requests: must have at least one")
        batch = _Batch(
            f"msgbatch_fake{self._number()}",
            list(lines.values()),
            time.monotonic() + self._options.batch_seconds,
            self._line_answer(self._anthropic),
        )
        self._add(batch)
        self._lose(request)
        return web.json_response(self._messages_json(request, batch) | {"processing_status": "in_progress"})

    def _messages_json(self, request: web.Request, batch: _Batch) -> dict[str, Any]:
        kinds = ("processing", "succeeded", "errored", "canceled", "expired")
        counts = dict.fromkeys(kinds, 0)
        if batch.cancelled:
            counts["canceled"] = len(batch.lines)
        elif batch.ended:
            for _, _, reply in batch.results:
                kind = "expired" if reply is None else "succeeded" if reply.status < 400 else "errored"
                counts[kind] += 1
        else:
            counts["processing"] = len(batch.lines)
        created = datetime.fromtimestamp(batch.created, UTC)
        url = f"{request.url.origin()}/v1/messages/batches/{batch.id}/results"
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if batch.ended else "in_progress",
            "request_counts": counts,
            "created_at": created.isoformat(),
            "expires_at": datetime.fromtimestamp(batch.created + _DAY_S, UTC).isoformat(),
            "ended_at": created.isoformat() if batch.ended else None,
            "archived_at": None,
            "cancel_initiated_at": None,
            "results_url": url if batch.ended else None,
        }

    async def _get_messages(self, request: web.Request) -> web.Response:
        return web.json_response(self._messages_json(request, self._batches[request.match_info["id"]]))

    async def _list_messages(self, request: web.Request) -> web.Response:
        return self._page(request, "msgbatch_", partial(self._messages_json, request))

    async def _cancel_messages(self, request: web.Request) -> web.Response:
        batch = self._batches[request.match_info["id"]]
        batch.cancelled = not batch.ended or batch.cancelled
        return web.json_response(self._messages_json(request, batch))

    async def _results(self, request: web.Request) -> web.Response:
        batch = self._batches[request.match_info["id"]]
        if not batch.ended:
            raise BadRequestError("the batch has not ended")
        lines = []
        for line, _, reply in batch.results:
            result: dict[str, Any]
            if batch.cancelled:
                result = {"type": "canceled"}
            elif reply is None:
                result = {"type": "expired"}
            elif reply.status < 400:
                result = {"type": "succeeded", "message": orjson.Fragment(reply.body)}
            else:
                result = {"type": "errored", "error": orjson.Fragment(reply.body)}
            lines.append(orjson.dumps({"custom_id": line.key, "result": result}) + b"\n")
        return web.Response(body=b"".join(lines), content_type="application/x-jsonl")
