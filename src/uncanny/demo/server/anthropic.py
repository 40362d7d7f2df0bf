"""Anthropic's messages API, as far as the fake server speaks it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import orjson
from pydantic import Discriminator, Field

from uncanny.demo.model import DemoRequest
from uncanny.demo.recognition import Turn
from uncanny.demo.server.api import (
    ApiAnswer,
    ApiRequest,
    Body,
    Limit,
    Part,
    ProviderApi,
    Reply,
    prompt_size,
    read_body,
    schema_form,
)
from uncanny.models.tokens import least_cached, text_tokens

MODEL = "fake-model"

_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}


class _Text(Body):
    type: Literal["text"]
    text: str
    cache_control: dict[str, Any] | None = None


class _Source(Body):
    type: Literal["base64"]
    media_type: str
    data: str


class _Image(Body):
    type: Literal["image"]
    source: _Source
    cache_control: dict[str, Any] | None = None


class _Message(Body):
    role: Literal["user", "assistant"]
    content: str | list[Annotated[_Text | _Image, Discriminator("type")]]


class _Body(Body):
    messages: Annotated[list[_Message], Field(min_length=1)]
    max_tokens: Limit
    model: str = MODEL
    system: str | list[_Text] | None = None
    stream: bool | None = None
    cache_control: dict[str, Any] | None = None


class AnthropicApi(ProviderApi):
    """`/v1/messages`; constrained answers through `output_config.format`."""

    name = "anthropic"

    def read(self, body: Mapping[str, Any]) -> ApiRequest:
        request = read_body(_Body, body)
        system = _text(request.system or "")
        parts = [part for message in request.messages for part in self._parts(message)]
        turns = tuple(Turn(message.role, _text(message.content)) for message in request.messages)
        schema = _schema(body)
        size = prompt_size(self.name, request.model, schema, system, parts, self._digests)
        images = tuple(text for _, kind, text in parts if kind == "image")
        return ApiRequest(
            DemoRequest((Turn("system", system), *turns), images, schema_form(schema), request.max_tokens),
            request.model,
            size,
            writes_cache=_asks_for_cache(request),
            least_cached=least_cached(f"{self.name}/{request.model}"),
            stream=bool(request.stream),
        )

    def write(self, request: ApiRequest, answer: ApiAnswer) -> bytes:
        text, end = answer.text, "max_tokens" if answer.demo.finish == "length" else "end_turn"
        message: dict[str, Any] = {
            "id": f"msg_fake_{answer.number}",
            "type": "message",
            "role": "assistant",
            "model": request.model,
            "content": [{"type": "text", "text": text}],
            "stop_reason": end if answer.refusal is None else "refusal",
            "stop_sequence": None,
            "usage": _usage(request, answer),
        }
        return _stream(message, text) if request.stream else orjson.dumps(message)

    def error(self, status: int, message: str, number: int) -> bytes:
        error = {"type": _ERRORS[status], "message": message}
        return orjson.dumps({"type": "error", "error": error, "request_id": f"req_fake_{number}"})

    def blocked(self) -> Reply:
        return Reply(400, self.error(400, "Output blocked by content filtering policy", 0))

    def overloaded(self) -> Reply:
        return Reply(529, self.error(529, "Overloaded (a fault of the fake server)", 0))

    def models(self) -> bytes:
        return orjson.dumps({"data": [_model(MODEL)], "has_more": False, "first_id": MODEL, "last_id": MODEL})

    def model(self, name: str) -> bytes:
        return orjson.dumps(_model(name))

    def _parts(self, message: _Message) -> list[Part]:
        if isinstance(message.content, str):
            return [(message.role, "text", message.content)]
        return [
            (message.role, "text", part.text)
            if isinstance(part, _Text)
            else (message.role, "image", self._digests.digest(part.source.data))
            for part in message.content
        ]


def _text(content: str | Sequence[_Text | _Image]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.text for part in content if isinstance(part, _Text))


def _schema(body: Mapping[str, Any]) -> Any:
    match body:
        case {"output_config": {"format": {"type": "json_schema", "schema": schema}}}:
            return schema
        case {"output_format": {"type": "json_schema", "schema": schema}}:
            return schema
    return None


def _asks_for_cache(body: _Body) -> bool:
    contents = [body.system, *(message.content for message in body.messages)]
    blocks = [block for content in contents if content and not isinstance(content, str) for block in content]
    return any((body.cache_control, *(block.cache_control for block in blocks)))


def _usage(request: ApiRequest, answer: ApiAnswer) -> dict[str, int]:
    read = (answer.cached or 0) if request.writes_cache else 0
    size = request.size.prefix_tokens
    written = size if request.writes_cache and size >= request.least_cached and not read else 0
    return {
        "input_tokens": request.size.input_tokens - read - written,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "output_tokens": text_tokens(answer.text),
    }


def _stream(message: Mapping[str, Any], text: str) -> bytes:
    start = {**message, "content": [], "stop_reason": None, "usage": {**message["usage"], "output_tokens": 1}}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    ]
    for at in range(0, len(text), 200):
        delta = {"type": "text_delta", "text": text[at : at + 200]}
        events.append({"type": "content_block_delta", "index": 0, "delta": delta})
    ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    events += [
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": ending, "usage": message["usage"]},
        {"type": "message_stop"},
    ]
    return b"".join(b"event: %b\ndata: %b\n\n" % (e["type"].encode(), orjson.dumps(e)) for e in events)


def _model(name: str) -> dict[str, Any]:
    return {"type": "model", "id": name, "display_name": name, "created_at": "2025-01-01T00:00:00Z"}
