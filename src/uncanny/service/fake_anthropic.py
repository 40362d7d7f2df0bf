"""The Anthropic messages protocol, as far as the fake server speaks it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from uncanny.providers.demo_question import BrainRequest, Turn, text_tokens
from uncanny.service.fake_call import Answered, BadCallError, Call, ImageDigests, measure, schema_form

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


class AnthropicDialect:
    """`/v1/messages`; constrained answers through `output_config.format`."""

    name = "anthropic"

    def __init__(self, digests: ImageDigests) -> None:
        self._digests = digests

    def read(self, body: Mapping[str, Any]) -> Call:
        """Raises `BadCallError` for anything the protocol does not allow."""
        messages, limit = body.get("messages"), body.get("max_tokens")
        if not isinstance(messages, list) or not messages:
            raise BadCallError("messages: at least one message is required")
        if not isinstance(limit, int) or limit < 1:
            raise BadCallError("max_tokens: Field required")
        system = _text(body.get("system") or "")
        parts = [part for message in messages for part in self._parts(message)]
        turns = tuple(Turn(message["role"], _text(message["content"])) for message in messages)
        schema, model = _schema(body), str(body.get("model", MODEL))
        prefix, prefix_tokens, input_tokens = measure(self.name, model, schema, system, parts)
        images = tuple(text for _, kind, text in parts if kind == "image")
        return Call(
            BrainRequest((Turn("system", system), *turns), images, schema_form(schema), limit),
            model,
            prefix,
            prefix_tokens,
            input_tokens,
            writes_cache=_asks_for_cache(body),
            stream=bool(body.get("stream")),
        )

    def write(self, call: Call, said: Answered) -> bytes:
        """The body of the answer, or all server-sent events of it."""
        text = said.answer.text if said.refusal is None else said.refusal
        message: dict[str, Any] = {
            "id": f"msg_fake_{said.number}",
            "type": "message",
            "role": "assistant",
            "model": call.model,
            "content": [{"type": "text", "text": text}],
            "stop_reason": _stop_reason(said),
            "stop_sequence": None,
            "usage": _usage(call, said),
        }
        return _stream(message, text) if call.stream else orjson.dumps(message)

    def error(self, status: int, message: str, number: int) -> bytes:
        error = {"type": _ERRORS[status], "message": message}
        return orjson.dumps({"type": "error", "error": error, "request_id": f"req_fake_{number}"})

    def models(self) -> bytes:
        return orjson.dumps({"data": [_model(MODEL)], "has_more": False, "first_id": MODEL, "last_id": MODEL})

    def model(self, name: str) -> bytes:
        return orjson.dumps(_model(name))

    def _parts(self, message: Any) -> list[tuple[str, str, str]]:
        match message:
            case {"role": "user" | "assistant" as role, "content": str(text)}:
                return [(role, "text", text)]
            case {"role": "user" | "assistant" as role, "content": list(content)}:
                return [self._part(role, part) for part in content]
        raise BadCallError("messages: each needs a role, 'user' or 'assistant', and content")

    def _part(self, role: str, part: Any) -> tuple[str, str, str]:
        match part:
            case {"type": "text", "text": str(text)}:
                return role, "text", text
            case {"type": "image", "source": {"type": "base64", "media_type": str(), "data": str(data)}}:
                return role, "image", self._digests.of(data)
        raise BadCallError(
            "messages: content blocks must be text or base64 images: the fake server fetches nothing"
        )


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part.get("type") == "text")


def _schema(body: Mapping[str, Any]) -> Any:
    match body:
        case {"output_config": {"format": {"type": "json_schema", "schema": schema}}}:
            return schema
        case {"output_format": {"type": "json_schema", "schema": schema}}:
            return schema
    return None


def _asks_for_cache(body: Mapping[str, Any]) -> bool:
    blocks = [body, *_blocks(body.get("system"))]
    blocks += [block for message in body["messages"] for block in _blocks(message["content"])]
    return any(block.get("cache_control") for block in blocks)


def _blocks(content: Any) -> list[Mapping[str, Any]]:
    return content if isinstance(content, list) else []


def _stop_reason(said: Answered) -> str:
    if said.refusal is not None:
        return "refusal"
    return "max_tokens" if said.answer.finish == "length" else "end_turn"


def _usage(call: Call, said: Answered) -> dict[str, int]:
    read = (said.cached or 0) if call.writes_cache else 0
    written = call.prefix_tokens if call.writes_cache and not read else 0
    return {
        "input_tokens": call.input_tokens - read - written,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "output_tokens": text_tokens(said.answer.text if said.refusal is None else said.refusal),
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
