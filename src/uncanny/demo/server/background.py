"""OpenAI's responses API on the fake server, for calls in the background alone.

A response is there after `batch_seconds`, and goes wrong as a line of a batch does: see `BatchFault`. All is
kept in memory. What is asked and answered is that of chat completions in other words.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from aiohttp import web

from uncanny.demo.server.api import WRONG_KEY, BadRequestError, ProviderApi, Reply
from uncanny.demo.server.batches import Answer
from uncanny.demo.server.faults import BatchFault, FakeServerOptions, batch_fault

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
        chat = _as_chat(body)
        try:
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
        return web.json_response(self._ended(made, self._answer(self._api, made.chat, made.fault)))

    def _head(self, made: _Response, status: str) -> dict[str, Any]:
        return {"id": made.id, "object": "response", "status": status, "model": made.chat["model"]}

    def _ended(self, made: _Response, reply: Reply) -> dict[str, Any]:
        content = orjson.loads(reply.body)
        if reply.status >= 400:
            code = "server_error" if reply.status >= 500 else "invalid_prompt"
            error = {"code": code, "message": content["error"]["message"]}
            return self._head(made, "failed") | {"error": error, "output": []}
        choice, usage = content["choices"][0], content["usage"]
        message = choice["message"]
        part = {"type": "output_text", "text": message["content"], "annotations": []}
        if message["refusal"] is not None:
            part = {"type": "refusal", "refusal": message["refusal"]}
        cut = choice["finish_reason"] == "length"
        return self._head(made, "incomplete" if cut else "completed") | {
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "output": [{"type": "message", "role": "assistant", "content": [part]}],
            "usage": {
                "input_tokens": usage["prompt_tokens"],
                "input_tokens_details": usage["prompt_tokens_details"],
                "output_tokens": usage["completion_tokens"],
                "total_tokens": usage["total_tokens"],
            },
        }


def _as_chat(body: Mapping[str, Any]) -> dict[str, Any]:
    chat: dict[str, Any] = {"model": body.get("model"), "messages": [_turn(turn) for turn in body["input"]]}
    if "max_output_tokens" in body:
        chat["max_completion_tokens"] = body["max_output_tokens"]
    if (asked := (body.get("text") or {}).get("format")) is not None:
        chat["response_format"] = {"type": asked["type"], "json_schema": asked}
    return chat


def _turn(turn: Mapping[str, Any]) -> dict[str, Any]:
    return {"role": turn["role"], "content": [_part(part) for part in turn["content"]]}


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    if part["type"] == "input_image":
        return {"type": "image_url", "image_url": {"url": part["image_url"], "detail": part["detail"]}}
    return {"type": "text", "text": part["text"]}
