"""The chat completions protocol, which OpenAI defines and many servers speak: bodies out, replies in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import orjson

from uncanny.providers.base import AnswerSchema, Finish, Message, Reply, Request, SentImage, Tokens
from uncanny.providers.faults import Where, bad_body
from uncanny.providers.image_tokens import Detail
from uncanny.providers.server_words import one_line

LimitName = Literal["max_tokens", "max_completion_tokens"]

# One name for all steps: it is rendered ahead of the prompt, too.
SHARED_NAME = "answer"
# Reasons to finish that mean that a filter, not the model, ended an answer; some servers add which one.
_FILTERED = frozenset(
    {
        "content_filter",
        "safety",
        "sensitive",
        "prohibited_content",
        "blocklist",
        "recitation",
        "spii",
        "image_safety",
    }
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one family of servers wants the same request.

    `shared_schema`: the task's one schema is sent, the answer wrapped, not the step's own. `image_uuid`: the
    image's digest goes beside its bytes. `cache_key`: requests about one image are routed to one cache.
    """

    limit: LimitName
    detail: Detail | None
    shared_schema: bool
    image_uuid: bool = False
    cache_key: bool = False


def chat_body(
    request: Request, model: str, dialect: Dialect, parameters: dict[str, Any], left_out: frozenset[str]
) -> bytes:
    """The JSON body. What differs between requests about one image comes last, in the messages and after.

    `left_out` names fields the server does not take.
    """
    body: dict[str, Any] = {"model": model}
    if request.schema is not None and "response_format" not in left_out:
        body["response_format"] = _response_format(request.schema, dialect)
    detail = None if "detail" in left_out else dialect.detail
    uuid = dialect.image_uuid and "uuid" not in left_out
    body["messages"] = [_message(message, detail, uuid) for message in request.messages]
    body |= parameters
    image = _first_image(request)
    if dialect.cache_key and image is not None and "prompt_cache_key" not in left_out:
        # Half of the digest: keys of more than 64 characters are refused, this leaves room on all sides.
        body["prompt_cache_key"] = image.sha256[:32]
    return orjson.dumps(body)


def _response_format(schema: AnswerSchema, dialect: Dialect) -> dict[str, Any]:
    name, content = (SHARED_NAME, schema.shared) if dialect.shared_schema else (schema.name, schema.own)
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": content}}


def _message(message: Message, detail: Detail | None, uuid: bool) -> dict[str, Any]:
    texts = [part for part in message.parts if isinstance(part, str)]
    if len(texts) == len(message.parts):
        # A plain string is what every server takes.
        return {"role": message.role, "content": "\n\n".join(texts)}
    return {"role": message.role, "content": [_part(part, detail, uuid) for part in message.parts]}


def _part(part: str | SentImage, detail: Detail | None, uuid: bool) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    image_url: dict[str, Any] = {"url": part.data_url}
    if detail is not None:
        image_url["detail"] = detail
    content: dict[str, Any] = {"type": "image_url", "image_url": image_url}
    return content | {"uuid": part.sha256} if uuid else content


def _first_image(request: Request) -> SentImage | None:
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, SentImage):
                return part
    return None


def read_chat(content: dict[str, Any], request_id: str | None, where: Where) -> Reply:
    """The reply in a chat completion; raises `TransientError` where there is none.

    A completion without a choice that was billed or that says why is a refusal: Gemini answers a blocked
    question so.
    """
    tokens = _tokens(content.get("usage"))
    model = _string(content.get("model"))
    request_id = request_id or _string(content.get("id"))
    choices = content.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        blocked = _blocked(content, tokens, where) if choices in (None, []) else None
        if blocked is not None:
            return Reply("", "refusal", tokens, model, request_id, blocked)
        raise bad_body(where, f"no choices in it (fields: {_fields(content, where)})")
    reason = _string(choice.get("finish_reason")) or ""
    message = choice.get("message")
    filtered = reason.lower().partition(":")[0] in _FILTERED
    if not isinstance(message, dict):
        if not filtered:
            raise bad_body(where, f"no message in it (fields: {_fields(choice, where)})")
        message = {}
    if reason in ("error", "abort"):
        raise bad_body(where, f"generation ended with {reason!r}")
    finish: Finish = "length" if reason == "length" else "stop"
    text = _text(message.get("content"))
    refusal = message.get("refusal")
    if refusal or filtered:
        finish, text = "refusal", refusal if isinstance(refusal, str) else text
    return Reply(
        text=text,
        finish=finish,
        tokens=tokens,
        model=model,
        request_id=request_id,
        reason=one_line(f"the server stopped it: {reason}", where.secrets) if filtered else None,
    )


def _blocked(content: dict[str, Any], tokens: Tokens, where: Where) -> str | None:
    """Why a completion without choices is a refusal; None where it is just broken."""
    feedback = content.get("promptFeedback", content.get("prompt_feedback"))
    if isinstance(feedback, dict):
        block = (
            _string(feedback.get("blockReason")) or _string(feedback.get("block_reason")) or "no reason given"
        )
        return one_line(f"the server blocked the question: {block}", where.secrets)
    if tokens.input:
        return "the server took the question and gave no answer"
    return None


def _fields(content: dict[str, Any], where: Where) -> str:
    return one_line(", ".join(sorted(content)[:8]), where.secrets)


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "".join(part["text"] for part in content if isinstance(part, dict) and _string(part.get("text")))


def _tokens(usage: object) -> Tokens:
    if not isinstance(usage, dict):
        return Tokens()
    details = usage.get("prompt_tokens_details")
    if not isinstance(details, dict):
        details = {}
    return Tokens(
        input=count(usage.get("prompt_tokens")),
        output=count(usage.get("completion_tokens")),
        cached=count(details.get("cached_tokens")),
        cache_written=count(details.get("cache_write_tokens")),
    )


def count(value: object) -> int | None:
    """`value` if it is a number of tokens, None otherwise."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _string(value: object) -> str | None:
    return value if isinstance(value, str) else None
