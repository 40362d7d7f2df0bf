"""OpenAI's responses API, for lines of batches, and for calls in the background: handed in one by one,
answered within hours, for less.

A `BackgroundApi` knows the wire, nothing of a run. What survives a kill, and who waits, is
`uncanny.client.background`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, ParamSpec

import httpx2
import orjson

from uncanny.errors import ProviderError, TransientError
from uncanny.models.base import NO_FILES, Files, Message, ModelRequest, ModelResponse, SentImage, Tokens
from uncanny.models.http import Exchange, checked_id, read_body
from uncanny.models.http_errors import ErrorContext, Flagged, bad_body, from_response
from uncanny.models.openai_chat import cache_key, count, response_format
from uncanny.models.presets import ApiVariant, Window

if TYPE_CHECKING:
    from openai import AsyncOpenAI

P = ParamSpec("P")
PATH: Final = "/responses"
_UNDER_WAY: Final = ("queued", "in_progress")
_ENDED: Final = ("completed", "incomplete", "failed", "cancelled")
# A response that failed has a code, and no status.
_STATUSES: Final = {"invalid_prompt": 400, "rate_limit_exceeded": 429, "server_error": 500}


class BackgroundApi:
    """Calls of one model in the background. All raise `ProviderError`, as calls that wait do.

    `body` gives that of a call that waits.
    """

    def __init__(
        self,
        client: AsyncOpenAI,
        context: ErrorContext,
        window: Window,
        body: Callable[[ModelRequest], dict[str, Any]],
    ) -> None:
        self._client, self._context, self._window, self._body = client, context, window, body

    async def submit(self, request: ModelRequest) -> str:
        """Hand in a request; the id of its response."""
        later = {
            "background": True,
            "background_options": {"completion_window": self._window},
            "store": True,
        }
        body = orjson.dumps(self._body(request) | later)
        content = await self._json(lambda: self._client.post(PATH, cast_to=httpx2.Response, content=body))
        return checked_id(content.get("id"), self._context)

    async def result(self, name: str) -> ModelResponse | ProviderError | None:
        """What a response came to, an error where that is none; None while it is under way."""
        content = await self._json(
            lambda: self._client.get(f"{PATH}/{checked_id(name, self._context)}", cast_to=httpx2.Response)
        )
        status = content.get("status")
        if status in _UNDER_WAY:
            return None
        if status not in _ENDED:
            # Not an outcome: the question would be handed in, and paid for, once more.
            raise bad_body(self._context, f"it has the unknown status {str(status)[:50]!r}")
        return outcome(read_response, content, self._context)

    async def _json(self, call: Callable[[], Any]) -> dict[str, Any]:
        async with Exchange(self._context, _TIMEOUT_S) as exchange:
            exchange.response = await call()
        response = exchange.checked()
        return read_body(response.content, response.headers, self._context, tells_errors=True)


_TIMEOUT_S: Final = 120.0


def response_body(
    request: ModelRequest,
    model: str,
    variant: ApiVariant,
    parameters: Mapping[str, Any],
    left_out: Container[str] = (),
    files: Files = NO_FILES,
) -> dict[str, Any]:
    """The body of a call, to be written with `orjson`. Images among `files` are named, others are in it.

    `left_out` names fields, as chat completions have them, that the server does not take.
    """
    detail = {} if "detail" in left_out else {"detail": variant.detail}

    def part(part: str | SentImage, kind: str) -> dict[str, Any]:
        if isinstance(part, str):
            return {"type": kind, "text": part}
        file = files.get(part.sha256)
        source = {"image_url": part.data_url} if file is None else {"file_id": file}
        return {"type": "input_image", **source, **detail}

    def turn(turn: Message) -> dict[str, Any]:
        kind = "output_text" if turn.role == "assistant" else "input_text"
        return {"role": turn.role, "content": [part(each, kind) for each in turn.parts]}

    body = {"model": model, "input": [turn(each) for each in request.messages], **parameters}
    if request.schema is not None and "response_format" not in left_out:
        asked = response_format(request.schema, variant)
        body["text"] = {"format": {"type": asked["type"], **asked["json_schema"]}}
    return body | cache_key(request, variant, left_out)


def outcome(
    read: Callable[P, ModelResponse], *arguments: P.args, **more: P.kwargs
) -> ModelResponse | ProviderError:
    """What is read, a refusal where moderation turned the question down, or why there is nothing."""
    try:
        return read(*arguments, **more)
    except Flagged as flagged:
        return ModelResponse("", "refusal", Tokens(), reason=flagged.reason)
    except ProviderError as error:
        return error


def as_body(error: object) -> bytes:
    """An error as the body of a response; empty for more lists in lists than are written, which are read."""
    try:
        return orjson.dumps(error)
    except TypeError:
        return b""


def read_response(content: Mapping[str, Any], context: ErrorContext) -> ModelResponse:
    """The response in a body that is no longer under way.

    Raises `Flagged` for a refused question, and `ProviderError` where it failed or ended without an answer.
    """
    model, name = content.get("model"), content.get("id")
    response = ModelResponse(
        "",
        "stop",
        _tokens(content.get("usage")),
        model if isinstance(model, str) else None,
        name if isinstance(name, str) else None,
    )
    match content:
        case {"status": "completed"}:
            return _said(content.get("output"), response)
        case {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}:
            return replace(_said(content.get("output"), response), finish="length")
        case {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}:
            return replace(response, finish="refusal", reason="the server stopped it: content_filter")
        case {"error": {"code": str(code)} as error}:
            raise from_response(_STATUSES.get(code, 500), {}, as_body({"error": error}), context)
        case {"status": str(status)}:
            raise TransientError(f"{context.name}: a response is {status}"[:200], kind="background")
    raise TransientError(f"{context.name}: a response has no status", kind="bad_body")


def _said(output: object, response: ModelResponse) -> ModelResponse:
    parts: Sequence[Any] = [
        part
        for item in (output if isinstance(output, list) else ())
        if isinstance(item, dict) and isinstance(item.get("content"), list)
        for part in item["content"]
        if isinstance(part, dict)
    ]
    refusals = [part["refusal"] for part in parts if isinstance(part.get("refusal"), str)]
    if refusals:
        return replace(response, text="".join(refusals), finish="refusal")
    return replace(
        response, text="".join(part["text"] for part in parts if isinstance(part.get("text"), str))
    )


def _tokens(usage: object) -> Tokens:
    if not isinstance(usage, dict):
        return Tokens()
    details = usage.get("input_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    return Tokens(
        input=count(usage.get("input_tokens")),
        output=count(usage.get("output_tokens")),
        cached=count(cached),
    )
