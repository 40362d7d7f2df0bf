"""OpenAI's responses API on the fake server: chat completions in other words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from uncanny.demo.server.api import BadRequestError, Reply


def head(name: str, chat: Mapping[str, Any], status: str) -> dict[str, Any]:
    """What every response begins with."""
    return {"id": name, "object": "response", "status": status, "model": chat.get("model")}


def as_response(name: str, chat: Mapping[str, Any], reply: Reply) -> dict[str, Any]:
    """The response for what a chat completion came to."""
    content = orjson.loads(reply.body)
    if reply.status >= 400:
        code = "server_error" if reply.status >= 500 else "invalid_prompt"
        error = {"code": code, "message": content["error"]["message"]}
        return head(name, chat, "failed") | {"error": error, "output": []}
    choice, usage = content["choices"][0], content["usage"]
    message = choice["message"]
    part = {"type": "output_text", "text": message["content"], "annotations": []}
    if message["refusal"] is not None:
        part = {"type": "refusal", "refusal": message["refusal"]}
    cut = choice["finish_reason"] == "length"
    return head(name, chat, "incomplete" if cut else "completed") | {
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


def as_chat(body: Mapping[str, Any]) -> dict[str, Any]:
    """The chat completion that asks the same. Raises BadRequestError."""
    try:
        turns = [_turn(turn) for turn in body["input"]]
        asked = (body.get("text") or {}).get("format")
        form = None if asked is None else {"type": asked["type"], "json_schema": asked}
    except (AttributeError, KeyError, TypeError) as error:
        raise BadRequestError(f"input: not valid: {error!r}") from None
    chat = {"model": body.get("model"), "messages": turns, "response_format": form}
    return chat | {"max_completion_tokens": body.get("max_output_tokens")}


def _turn(turn: Mapping[str, Any]) -> dict[str, Any]:
    return {"role": turn["role"], "content": [_part(part) for part in turn["content"]]}


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    if part["type"] == "input_image":
        return {"type": "image_url", "image_url": {"url": part["image_url"], "detail": part.get("detail")}}
    return {"type": "text", "text": part["text"]}
