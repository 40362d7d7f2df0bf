"""The messages protocol of Anthropic: bodies out, replies in."""

from __future__ import annotations

from typing import Any

import orjson

from uncanny.providers.base import Finish, Message, Reply, Request, SentImage, Tokens
from uncanny.providers.faults import Where, bad_body
from uncanny.providers.server_words import one_line
from uncanny.providers.wire_openai import count

_BREAKPOINT = {"type": "ephemeral"}
_FINISH: dict[str, Finish] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}


def messages_body(request: Request, model: str) -> bytes:
    """The JSON body; what differs between requests about one image comes last.

    Cache breakpoints stand on the last image and after the shared parts of the first message that has any:
    two of the four the API allows.
    """
    body: dict[str, Any] = {"model": model, "max_tokens": request.sampling.max_output_tokens}
    if request.schema is not None:
        body["output_config"] = {"format": {"type": "json_schema", "schema": request.schema.shared}}
    system = [part for turn in request.messages if turn.role == "system" for part in turn.parts]
    if system:
        body["system"] = "\n\n".join(part for part in system if isinstance(part, str))
    turns = [turn for turn in request.messages if turn.role != "system"]
    breaks = _breakpoints(turns)
    body["messages"] = [
        {
            "role": turn.role,
            "content": [_block(part, marked=(i, j) in breaks) for j, part in enumerate(turn.parts) if part],
        }
        for i, turn in enumerate(turns)
    ]
    return orjson.dumps(body)


def _breakpoints(turns: list[Message]) -> set[tuple[int, int]]:
    images = [
        (i, j)
        for i, turn in enumerate(turns)
        for j, part in enumerate(turn.parts)
        # Writing to the cache costs extra: not for an image that no other request begins with.
        if isinstance(part, SentImage) and j < turn.shared
    ]
    shared = [(i, min(turn.shared, len(turn.parts)) - 1) for i, turn in enumerate(turns) if turn.shared > 0]
    return {*images[-1:], *shared[:1]}


def _block(part: str | SentImage, *, marked: bool) -> dict[str, Any]:
    block: dict[str, Any]
    if isinstance(part, str):
        block = {"type": "text", "text": part}
    else:
        data = orjson.Fragment(b'"' + part.base64 + b'"')
        block = {"type": "image", "source": {"type": "base64", "media_type": part.media_type, "data": data}}
    return block | {"cache_control": _BREAKPOINT} if marked else block


def read_message(content: dict[str, Any], request_id: str | None, where: Where) -> Reply:
    """The reply in a message; raises `TransientError` where there is none."""
    blocks = content.get("content")
    if content.get("type") != "message" or not isinstance(blocks, list):
        raise bad_body(
            where, f"no message in it (fields: {one_line(', '.join(sorted(content)[:8]), where.secrets)})"
        )
    texts = [
        block["text"]
        for block in blocks
        if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)
    ]
    model, reason = content.get("model"), content.get("stop_reason")
    return Reply(
        text="".join(texts),
        finish=_FINISH.get(reason, "stop") if isinstance(reason, str) else "stop",
        tokens=_tokens(content.get("usage")),
        model=model if isinstance(model, str) else None,
        request_id=request_id,
    )


def _tokens(usage: object) -> Tokens:
    if not isinstance(usage, dict):
        return Tokens()
    plain = count(usage.get("input_tokens"))
    cached = count(usage.get("cache_read_input_tokens"))
    written = count(usage.get("cache_creation_input_tokens"))
    return Tokens(
        # The API's own input tokens are those neither read from the cache nor written to it.
        input=None if plain is None else plain + (cached or 0) + (written or 0),
        output=count(usage.get("output_tokens")),
        cached=cached,
        cache_written=written,
    )
