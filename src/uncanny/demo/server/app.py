"""`uncanny fake-server`: two providers' APIs on loopback, answered by the demo model, with faults on demand.

See docs/fake-server.md. Nothing it is sent is kept, except digests for the counts in `/stats`.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

import orjson
from aiohttp import web

from uncanny.demo.character import character_of
from uncanny.demo.model import DemoAnswer, answer, warm_up
from uncanny.demo.server.anthropic import AnthropicApi
from uncanny.demo.server.api import (
    WRONG_KEY,
    ApiAnswer,
    ApiRequest,
    BadRequestError,
    ImageDigests,
    ProviderApi,
    Reply,
)
from uncanny.demo.server.background import Background
from uncanny.demo.server.batches import Batches
from uncanny.demo.server.dialects import DIALECTS, DialectApi
from uncanny.demo.server.faults import (
    FAULT_NAMES,
    MESSAGES,
    STATUSES,
    BatchFault,
    FakeServerOptions,
    FaultName,
    RequestPlan,
    parse_faults,
    plan_request,
)
from uncanny.demo.server.images import MARK, EditRequest, ImageEditsApi
from uncanny.demo.server.images import PATH as EDITS
from uncanny.demo.server.openai import OpenAIApi
from uncanny.errors import RequestRejectedError, UsageError

__all__ = ["FakeServerOptions", "FaultName", "application", "parse_faults", "running", "serve"]

MAX_BODY: Final = 128 * 1024 * 1024
UNKNOWN_MODEL: Final = "unknown-model"
_HANG_SECONDS: Final = 600.0
_HOST: Final = "127.0.0.1"


class FakeServer:
    """The state of one server: counts, digests of prefixes seen, and the APIs it speaks."""

    def __init__(self, options: FakeServerOptions) -> None:
        warm_up()
        digests = ImageDigests()
        self.openai, self.anthropic = OpenAIApi(digests), AnthropicApi(digests)
        self.edits = ImageEditsApi(digests)
        if options.provider is not None:
            self.openai = DialectApi(digests, DIALECTS[options.provider])
        self._options = options
        self._requests = self._open = self._most_open = self._refused = 0
        self._began: float | None = None
        self._prefixes: set[bytes] = set()
        self._finished: set[bytes] = set()
        self._faults: Counter[FaultName] = Counter(dict.fromkeys(options.faults, 0))
        self.batches = Batches(options, self._line, self._tokens, self.openai, self.anthropic)
        self.background = Background(options, self._line, self.openai)

    def stats(self) -> dict[str, Any]:
        """The counts of `/stats`; `faults` has every fault of the options, with 0 where none struck yet."""
        return {
            "requests": self._requests,
            "unique_prefixes": len(self._prefixes),
            "max_concurrent": self._most_open,
            "too_many": self._refused,
            "faults": dict(self._faults),
            **self.batches.stats(),
            **self.background.stats(),
        }

    async def handle(self, request: web.Request, api: ProviderApi) -> web.StreamResponse:
        """Answer one request to a model."""
        number = self._requests
        self._requests += 1
        if (most := self._at_once()) is not None and self._open >= most:
            self._refused += 1
            return _error(api, 429, f"More than {most} requests at once", number)
        self._open += 1
        self._most_open = max(self._most_open, self._open)
        try:
            return await self._answer(request, api, number)
        finally:
            self._open -= 1

    def _at_once(self) -> int | None:
        now = time.monotonic()
        if self._began is None:
            self._began = now
        reached = [number for seconds, number in self._options.at_once if now - self._began >= seconds]
        return reached[-1] if reached else None

    async def _answer(self, request: web.Request, api: ProviderApi, number: int) -> web.StreamResponse:
        try:
            api_request = await self._read(request, api)
        except BadRequestError as error:
            return _error(api, error.status, str(error), number)
        except web.HTTPRequestEntityTooLarge:
            return _error(api, 413, f"The body is larger than {MAX_BODY} bytes", number)
        if (problem := _rejection(request, api, api_request.model)) is not None:
            return _error(api, *problem, number)
        self._prefixes.add(api_request.size.prefix)
        plan = plan_request(self._options, number)
        if plan.fault is not None:
            self._faults[plan.fault] += 1
        await asyncio.sleep(plan.delay)
        if plan.fault in ("blocked", "overloaded"):
            reply = api.blocked() if plan.fault == "blocked" else api.overloaded()
            return web.Response(
                status=reply.status,
                body=reply.body,
                content_type="application/json",
                headers={**_ids(number), **reply.headers},
            )
        if plan.fault in STATUSES:
            return _status_fault(api, plan, number)
        if plan.fault == "hang":
            await asyncio.sleep(_HANG_SECONDS)
            return await _cut(request, b"", "application/json")
        return await self._send(request, api, api_request, plan, number)

    async def _send(
        self, request: web.Request, api: ProviderApi, api_request: ApiRequest, plan: RequestPlan, number: int
    ) -> web.StreamResponse:
        try:
            body = self._body(api, api_request, plan, number)
        except RequestRejectedError as error:
            return _error(api, 400, str(error), number)
        kind = "text/event-stream" if api_request.stream else "application/json"
        if plan.fault == "cut":
            return await _cut(request, body, kind)
        if plan.fault == "truncated-json":
            body = body[: len(body) // 2]
        return web.Response(body=body, content_type=kind, headers=_ids(number))

    def _body(self, api: ProviderApi, api_request: ApiRequest, plan: RequestPlan, number: int) -> bytes:
        """Raises RequestRejectedError."""
        options = self._options
        if isinstance(api_request, EditRequest):
            return api.write(api_request, plan.spoil(ApiAnswer(DemoAnswer(MARK), number, None)))
        demo_answer = answer(
            api_request.demo,
            synthetic_objects=options.objects,
            synthetic_anomalies=options.anomalies,
            character=character_of(api_request.model, options.seed),
        )
        cached = api_request.size.known(self._finished)
        if api_request.writes_cache:
            self._finished.update(api_request.size.kept(api_request.least_cached))
        return api.write(api_request, plan.spoil(ApiAnswer(demo_answer, number, cached)))

    def _line(self, api: ProviderApi, body: Mapping[str, Any], fault: BatchFault | None) -> Reply:
        """The reply to a line of a batch."""
        number = self._requests
        try:
            if fault == "rejected":
                raise BadRequestError("The request is not valid (a fault of the fake server)")
            if fault == "500":
                raise BadRequestError(MESSAGES[500], status=500)
            api_request = api.read(body)
            if api_request.model == UNKNOWN_MODEL:
                raise BadRequestError(f"The model {UNKNOWN_MODEL!r} does not exist", status=404)
            faults: dict[FaultName, float] = {name: 1.0 for name in FAULT_NAMES if name == fault}
            plan = plan_request(replace(self._options, faults=faults), number)
            return Reply(200, self._body(api, api_request, plan, number))
        except (BadRequestError, RequestRejectedError) as error:
            status = error.status if isinstance(error, BadRequestError) else 400
            return Reply(status, api.error(status, str(error), number))

    @staticmethod
    def _tokens(api: ProviderApi, body: Mapping[str, Any]) -> int:
        """Of a line of a batch; 0 for one that is no request."""
        try:
            return api.read(body).size.input_tokens
        except BadRequestError:
            return 0

    async def _read(self, request: web.Request, api: ProviderApi) -> ApiRequest:
        if isinstance(api, ImageEditsApi):
            return api.read(await api.content(request))
        try:
            body = orjson.loads(await request.read())
        except orjson.JSONDecodeError as error:
            raise BadRequestError(f"The body is not valid JSON: {error}") from None
        except web.RequestPayloadError as error:
            raise BadRequestError(f"The body cannot be read: {error}") from None
        if not isinstance(body, dict):
            raise BadRequestError("The body must be a JSON object")
        return api.read(body)


def application(options: FakeServerOptions) -> web.Application:
    """The server as an aiohttp application."""
    server = FakeServer(options)
    app = web.Application(client_max_size=MAX_BODY)

    async def models(request: web.Request) -> web.StreamResponse:
        """The list of models, or the entry of the one that is named."""
        api: ProviderApi = server.anthropic if "anthropic-version" in request.headers else server.openai
        name = request.match_info.get("name", "")
        if (problem := _rejection(request, api, name)) is not None:
            return _error(api, *problem, 0)
        body = api.model(name) if name else api.models()
        return web.Response(body=body, content_type="application/json")

    async def stats(_request: web.Request) -> web.StreamResponse:
        return web.Response(body=orjson.dumps(server.stats()), content_type="application/json")

    async def health(_request: web.Request) -> web.StreamResponse:
        return web.Response()

    path = "/v1" if options.provider is None else DIALECTS[options.provider].path
    app.router.add_post(f"{path}/chat/completions", partial(server.handle, api=server.openai))
    if options.provider is None:
        app.router.add_post("/v1/messages", partial(server.handle, api=server.anthropic))
        app.router.add_post(EDITS, partial(server.handle, api=server.edits))
        server.batches.add_routes(app.router)
        server.background.add_routes(app.router)
    app.router.add_get(f"{path}/models", models)
    app.router.add_get(f"{path}/models/{{name:.+}}", models)
    app.router.add_get("/stats", stats)
    app.router.add_get("/health", health)
    return app


@contextlib.asynccontextmanager
async def running(options: FakeServerOptions) -> AsyncIterator[str]:
    """A server in this event loop; gives its base URL, `http://127.0.0.1:PORT`. Leaving ends it at once.

    Raises `UsageError` where the port is taken.
    """
    # Without handler_cancellation a hanging answer would outlive its client.
    runner = web.AppRunner(
        application(options), access_log=None, handler_cancellation=True, shutdown_timeout=0.1
    )
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, _HOST, options.port, backlog=4096).start()
        except OSError as error:
            raise UsageError(
                f"The fake server cannot listen on port {options.port}: {error.strerror or error}",
                remedy="Choose another port, or 0 for any free one.",
            ) from error
        yield f"http://{_HOST}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def serve(options: FakeServerOptions) -> None:
    """Serve until SIGINT, SIGTERM or `max_seconds`; the first line printed says where it listens."""
    asyncio.run(_serve(options))


async def _serve(options: FakeServerOptions) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with running(options) as url:
        print(f"listening on {url}", flush=True)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), options.max_seconds)


def _rejection(request: web.Request, api: ProviderApi, model: str) -> tuple[int, str] | None:
    key = api.key(request.headers)
    if key is None:
        return 401, "The request has no API key in the header where it belongs"
    if key == WRONG_KEY:
        return api.wrong_key()
    if model == UNKNOWN_MODEL:
        return 404, f"The model {UNKNOWN_MODEL!r} does not exist; the fake server takes any other name"
    return None


def _ids(number: int) -> dict[str, str]:
    return {"x-request-id": f"req_fake_{number}", "request-id": f"req_fake_{number}"}


def _error(api: ProviderApi, status: int, message: str, number: int) -> web.Response:
    body = api.error(status, message, number)
    return web.Response(status=status, body=body, content_type="application/json", headers=_ids(number))


def _status_fault(api: ProviderApi, plan: RequestPlan, number: int) -> web.Response:
    status = STATUSES[plan.fault] if plan.fault else 500
    response = _error(api, status, MESSAGES[status], number)
    if plan.fault == "429-retry-after":
        response.headers["Retry-After"] = "1"
        response.headers["retry-after-ms"] = str(plan.retry_after_ms)
    return response


async def _cut(request: web.Request, body: bytes, kind: str) -> web.StreamResponse:
    """Promise the whole body, send half of it, and drop the connection."""
    response = web.StreamResponse(headers={"Content-Type": kind, "Content-Length": str(max(len(body), 2))})
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    if request.transport is not None:
        # Closing flushes what was written first; aborting would drop it.
        request.transport.close()
    return response
