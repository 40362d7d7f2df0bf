"""OpenAI's responses API on the fake server, for calls in the background alone.

A response is there after `batch_seconds`, and goes wrong as a line of a batch does: see `BatchFault`. All is
kept in memory.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from aiohttp import web

from uncanny.demo.server.api import WRONG_KEY, BadRequestError, ProviderApi
from uncanny.demo.server.batches import Answer
from uncanny.demo.server.faults import BatchFault, FakeServerOptions, batch_fault
from uncanny.demo.server.responses import as_chat, as_response, head

_WINDOWS = ("soonest", "2h", "8h")


@dataclass
class _Response:
    id: str
    chat: Mapping[str, Any]
    ends: float
    fault: BatchFault | None


class Background:
    """The responses of one server."""

    def __init__(self, options: FakeServerOptions, answer: Answer, api: ProviderApi) -> None:
        self._options, self._answer, self._api = options, answer, api
        self._responses: dict[str, _Response] = {}

    def stats(self) -> dict[str, int]:
        """Calls that were handed in."""
        return {"background": len(self._responses)}

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/v1/responses", self._create)
        router.add_get("/v1/responses/{id}", self._get)

    def _error(self, status: int, message: str) -> web.Response:
        body = self._api.error(status, message, 0)
        return web.Response(status=status, body=body, content_type="application/json")

    async def _create(self, request: web.Request) -> web.Response:
        body = orjson.loads(await request.read())
        if self._api.key(request.headers) in (None, WRONG_KEY):
            return self._error(*self._api.wrong_key())
        window = (body.get("background_options") or {}).get("completion_window")
        fault = batch_fault(self._options, len(self._responses))
        if body.get("background") is not True or body.get("store") is not True or window not in _WINDOWS:
            return self._error(400, "background, store and a completion_window are needed here")
        if fault == "rejected":
            return self._error(400, "The request is not valid (a fault of the fake server)")
        try:
            chat = as_chat(body)
            self._api.read(chat)
        except BadRequestError as error:
            return self._error(error.status, str(error))
        made = _Response(
            f"resp_fake{len(self._responses)}", chat, time.monotonic() + self._options.batch_seconds, fault
        )
        self._responses[made.id] = made
        return web.json_response(self._head(made, "queued"))

    async def _get(self, request: web.Request) -> web.Response:
        made = self._responses.get(request.match_info["id"])
        if made is None:
            return self._error(404, f"There is no response {request.match_info['id']!r}")
        if time.monotonic() < made.ends:
            return web.json_response(self._head(made, "in_progress"))
        if made.fault in ("expired", "missing"):
            return web.json_response(self._head(made, "cancelled"))
        return web.json_response(
            as_response(made.id, made.chat, self._answer(self._api, made.chat, made.fault))
        )

    @staticmethod
    def _head(made: _Response, status: str) -> dict[str, Any]:
        return head(made.id, made.chat, status)
