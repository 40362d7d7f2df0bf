"""The OpenAI chat-completions protocol, as far as the fake server speaks it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from uncanny.providers.demo_question import BrainRequest, Turn, text_tokens
from uncanny.service.fake_call import Answered, BadCallError, Call, ImageDigests, measure, schema_form

MODEL = "fake-model"
CREATED = 1_750_000_000

_ERRORS = {
    400: ("invalid_request_error", None),
    401: ("invalid_request_error", "invalid_api_key"),
    404: ("invalid_request_error", "model_not_found"),
    413: ("invalid_request_error", "request_too_large"),
    429: ("requests", "rate_limit_exceeded"),
    500: ("server_error", None),
    529: ("overloaded_error", "overloaded"),
}


class OpenAIDialect:
    """`/v1/chat/completions`; constrained answers through `response_format` or vLLM's parameters."""

    name = "openai"

    def __init__(self, digests: ImageDigests) -> None:
        self._digests = digests

    def read(self, body: Mapping[str, Any]) -> Call:
        """Raises `BadCallError` for anything the protocol does not allow."""
        messages = body.get("messages")
        if not isinstance(messages, list) or not messages:
            raise BadCallError("'messages' must be a list with at least one message")
        parts = [part for message in messages for part in self._parts(message)]
        turns = tuple(_turn(message) for message in messages)
        system = "\n".join(text for role, kind, text in parts if role == "system" and kind == "text")
        rest = [part for part in parts if part[0] != "system"]
        schema, model = _schema(body), str(body.get("model", MODEL))
        prefix, prefix_tokens, input_tokens = measure(self.name, model, schema, system, rest)
        limit = body.get("max_completion_tokens") or body.get("max_tokens")
        images = tuple(text for _, kind, text in rest if kind == "image")
        return Call(
            BrainRequest(turns, images, schema_form(schema), limit if isinstance(limit, int) else None),
            model,
            prefix,
            prefix_tokens,
            input_tokens,
            stream=bool(body.get("stream")),
            stream_usage=bool((body.get("stream_options") or {}).get("include_usage")),
        )

    def write(self, call: Call, said: Answered) -> bytes:
        """The body of the answer, or all server-sent events of it."""
        finish = said.answer.finish
        head = {"id": f"chatcmpl-fake-{said.number}", "created": CREATED, "model": call.model}
        if call.stream:
            return _stream(call, said, head)
        message = {"role": "assistant", "content": said.answer.text, "refusal": None}
        if said.refusal is not None:
            message |= {"content": None, "refusal": said.refusal}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
        return orjson.dumps(
            {**head, "object": "chat.completion", "choices": [choice], "usage": _usage(call, said)}
        )

    def error(self, status: int, message: str, number: int) -> bytes:
        del number
        kind, code = _ERRORS[status]
        return orjson.dumps({"error": {"message": message, "type": kind, "param": None, "code": code}})

    def models(self) -> bytes:
        return orjson.dumps({"object": "list", "data": [_model(MODEL)]})

    def model(self, name: str) -> bytes:
        return orjson.dumps(_model(name))

    def _parts(self, message: Any) -> list[tuple[str, str, str]]:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise BadCallError("each message needs a 'role'")
        role = "system" if message["role"] in ("system", "developer") else message["role"]
        content = message.get("content")
        if content is None or isinstance(content, str):
            return [(role, "text", content or "")]
        if not isinstance(content, list):
            raise BadCallError("'content' must be a text or a list of parts")
        return [self._part(role, part) for part in content]

    def _part(self, role: str, part: Any) -> tuple[str, str, str]:
        match part:
            case {"type": "text", "text": str(text)}:
                return role, "text", text
            case {"type": "image_url", "image_url": {"url": str(url)}}:
                if not url.startswith("data:image/") or ";base64," not in url[:64]:
                    raise BadCallError("images must be base64 data URLs: the fake server fetches nothing")
                return role, "image", self._digests.of(url[url.index(",") + 1 :])
        raise BadCallError("a content part must be of type 'text' or 'image_url'")


def _turn(message: Mapping[str, Any]) -> Turn:
    role, content = message["role"], message.get("content") or ""
    if isinstance(content, list):
        content = "\n".join(part["text"] for part in content if part["type"] == "text")
    return Turn(role if role in ("user", "assistant") else "system", content)


def _schema(body: Mapping[str, Any]) -> Any:
    match body:
        case {"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}}:
            return schema
        case {"structured_outputs": {"json": schema}} | {"guided_json": schema}:
            return schema
    return None


def _usage(call: Call, said: Answered) -> dict[str, Any]:
    output = text_tokens(said.answer.text)
    return {
        "prompt_tokens": call.input_tokens,
        "completion_tokens": output,
        "total_tokens": call.input_tokens + output,
        "prompt_tokens_details": {"cached_tokens": said.cached or 0},
    }


def _stream(call: Call, said: Answered, head: Mapping[str, Any]) -> bytes:
    text = said.refusal if said.refusal is not None else said.answer.text
    key = "content" if said.refusal is None else "refusal"
    pieces = [{key: text[start : start + 200]} for start in range(0, len(text), 200)]
    deltas: list[tuple[Any, str | None]] = [({"role": "assistant", "content": ""}, None)]
    deltas += [(piece, None) for piece in pieces]
    deltas.append(({}, said.answer.finish))
    chunks: list[Any] = [
        {**head, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": d, "finish_reason": f}]}
        for d, f in deltas
    ]
    if call.stream_usage:
        chunks.append({**head, "object": "chat.completion.chunk", "choices": [], "usage": _usage(call, said)})
    return b"".join(b"data: " + orjson.dumps(chunk) + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": CREATED, "owned_by": "uncanny fake-server"}
