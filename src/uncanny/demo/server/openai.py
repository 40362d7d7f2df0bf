"""OpenAI's chat-completions API, as far as the fake server speaks it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import orjson
from pydantic import Discriminator, Field

from uncanny.demo.model import DemoRequest
from uncanny.demo.recognition import Turn
from uncanny.demo.server.api import (
    ApiAnswer,
    ApiRequest,
    BadRequestError,
    Body,
    Limit,
    Part,
    ProviderApi,
    Reply,
    prompt_size,
    read_body,
    schema_form,
)
from uncanny.models.tokens import text_tokens

MODEL = "fake-model"
CREATED = 1_750_000_000

_ERRORS = {
    400: ("invalid_request_error", None),
    401: ("invalid_request_error", "invalid_api_key"),
    404: ("invalid_request_error", "model_not_found"),
    413: ("invalid_request_error", "request_too_large"),
    429: ("requests", "rate_limit_exceeded"),
    500: ("server_error", None),
    503: ("server_error", "overloaded"),
    529: ("overloaded_error", "overloaded"),
}


class _Text(Body):
    type: Literal["text"]
    text: str


class _Url(Body):
    url: str


class _Image(Body):
    type: Literal["image_url"]
    image_url: _Url


_Part = Annotated[_Text | _Image, Discriminator("type")]


class _Message(Body):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[_Part] | None = None

    @property
    def speaker(self) -> Literal["system", "user", "assistant"]:
        return self.role if self.role in ("user", "assistant") else "system"

    @property
    def text(self) -> str:
        if isinstance(self.content, str) or self.content is None:
            return self.content or ""
        return "\n".join(part.text for part in self.content if isinstance(part, _Text))


class _StreamOptions(Body):
    include_usage: bool | None = None


class _Body(Body):
    messages: Annotated[list[_Message], Field(min_length=1)]
    model: str = MODEL
    max_completion_tokens: Limit | None = None
    max_tokens: Limit | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None


class OpenAIApi(ProviderApi):
    """`/v1/chat/completions`; constrained answers through `response_format` or vLLM's parameters."""

    name = "openai"

    def read(self, body: Mapping[str, Any]) -> ApiRequest:
        request = read_body(_Body, body)
        parts = [part for message in request.messages for part in self._parts(message)]
        turns = tuple(Turn(message.speaker, message.text) for message in request.messages)
        system = "\n".join(text for role, kind, text in parts if role == "system" and kind == "text")
        rest = [part for part in parts if part[0] != "system"]
        schema = _schema(body)
        size = prompt_size(self.name, request.model, schema, system, rest, self._digests)
        images = tuple(text for _, kind, text in rest if kind == "image")
        limit = request.max_completion_tokens or request.max_tokens
        return ApiRequest(
            DemoRequest(turns, images, schema_form(schema), limit),
            request.model,
            size,
            stream=bool(request.stream),
            stream_usage=bool(request.stream_options and request.stream_options.include_usage),
        )

    def write(self, request: ApiRequest, answer: ApiAnswer) -> bytes:
        finish = answer.demo.finish
        head = {"id": f"chatcmpl-fake-{answer.number}", "created": CREATED, "model": request.model}
        if request.stream:
            return _stream(request, answer, head, self._usage(request, answer))
        message = {"role": "assistant", "content": answer.demo.text, "refusal": None}
        if answer.refusal is not None:
            message |= {"content": None, "refusal": answer.refusal}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
        return orjson.dumps(
            {**head, "object": "chat.completion", "choices": [choice], "usage": self._usage(request, answer)}
        )

    def error(self, status: int, message: str, number: int) -> bytes:
        del number
        kind, code = _ERRORS[status]
        return orjson.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}})

    def blocked(self) -> Reply:
        message = "The prompt was flagged by moderation (a fault of the fake server)"
        error = {"message": message, "type": "invalid_request_error", "param": None, "code": "content_filter"}
        return Reply(400, orjson.dumps({"error": error}))

    def overloaded(self) -> Reply:
        return Reply(503, self.error(503, "Overloaded (a fault of the fake server)", 0))

    def models(self) -> bytes:
        return orjson.dumps({"object": "list", "data": [_model(MODEL)]})

    def model(self, name: str) -> bytes:
        return orjson.dumps(_model(name))

    def _usage(self, request: ApiRequest, answer: ApiAnswer) -> dict[str, Any]:
        output = text_tokens(answer.demo.text)
        return {
            "prompt_tokens": request.size.input_tokens,
            "completion_tokens": output,
            "total_tokens": request.size.input_tokens + output,
            "prompt_tokens_details": {"cached_tokens": answer.cached or 0},
        }

    def _parts(self, message: _Message) -> list[Part]:
        role = message.speaker
        if isinstance(message.content, str) or message.content is None:
            return [(role, "text", message.content or "")]
        return [
            (role, "text", part.text) if isinstance(part, _Text) else (role, "image", self._image(part))
            for part in message.content
        ]

    def _image(self, part: _Image) -> str:
        url = part.image_url.url
        if not url.startswith("data:image/") or ";base64," not in url[:64]:
            raise BadRequestError("images must be base64 data URLs: the fake server fetches nothing")
        return self._digests.digest(url[url.index(",") + 1 :])


def _schema(body: Mapping[str, Any]) -> Any:
    match body:
        case {"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}:
            return schema
        case {"structured_outputs": {"json": schema}} | {"guided_json": schema}:
            return schema
    return None


def _stream(
    request: ApiRequest, answer: ApiAnswer, head: Mapping[str, Any], usage: Mapping[str, Any]
) -> bytes:
    text = answer.text
    key = "content" if answer.refusal is None else "refusal"
    pieces = [{key: text[start : start + 200]} for start in range(0, len(text), 200)]
    deltas: list[tuple[Any, str | None]] = [({"role": "assistant", "content": ""}, None)]
    deltas += [(piece, None) for piece in pieces]
    deltas.append(({}, answer.demo.finish))
    chunks: list[Any] = [
        {**head, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": d, "finish_reason": f}]}
        for d, f in deltas
    ]
    if request.stream_usage:
        chunks.append({**head, "object": "chat.completion.chunk", "choices": [], "usage": usage})
    return b"".join(b"data: " + orjson.dumps(chunk) + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": CREATED, "owned_by": "uncanny fake-server"}
