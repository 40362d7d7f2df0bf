"""Models hosted by Anthropic, and the messages API they speak: request bodies out, responses in.

The key comes from `ANTHROPIC_API_KEY`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import httpx2
import orjson
from anthropic import AsyncAnthropic

from uncanny.models.addresses import address_of, warn_of_open
from uncanny.models.base import (
    NO_FILES,
    Files,
    Finish,
    ModelProvider,
    ModelRequest,
    ModelResponse,
    Sampling,
    SentImage,
    Tokens,
)
from uncanny.models.error_body import one_line
from uncanny.models.http import Exchange, environment_key, http_client
from uncanny.models.http_errors import ErrorContext, Flagged, Rejection, bad_body, missing_key
from uncanny.models.openai_chat import breakpoints, count
from uncanny.models.presets import ANTHROPIC
from uncanny.models.views import shown_size

if TYPE_CHECKING:
    from uncanny.models.discount.batches import BatchApi

KEY_VARIABLE = ANTHROPIC.key_variables[0]
# What calls add to a base URL, in the order in which it is taken off where users have it in theirs.
OWN_PATHS = ("/messages", "/v1")

# Larger images are refused in requests with many of them, whatever the model.
_LARGEST_OF_MANY = 2000
_NOT_TAKEN = re.compile(r"not support|unsupported|not permitted", re.IGNORECASE)


class AnthropicProvider(ModelProvider):
    """A model of the Anthropic API, `anthropic/<model>`.

    It takes no sampling parameters: repeats differ by their wording alone. Answers follow the task's shared
    schema, wrapped as `{"answer": …}`. `base_url` defaults to `ANTHROPIC_BASE_URL`, then to Anthropic; a
    `/v1` at its end is left out, since calls add it. Raises `ModelUnusableError` without a key, and
    `UsageError` for an address that nothing can be sent to.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_s: float = 600.0,
    ) -> None:
        name = f"anthropic/{model}"
        key = api_key or environment_key(KEY_VARIABLE)
        if key is None:
            raise missing_key(name, KEY_VARIABLE, keys_from=ANTHROPIC.keys_from)
        address, self.notices = address_of(ANTHROPIC, model, base_url, calls=OWN_PATHS)
        warn_of_open(address, f"The key of {name}", key)
        self._client = AsyncAnthropic(
            api_key=key,
            base_url=address.url,
            default_query=dict(address.parameters),
            default_headers=None
            if address.authorization is None
            else {
                # Where user and password take the header the SDK sends the key in, the API knows another.
                "Authorization": address.authorization,
                "X-Api-Key": key,
            },
            max_retries=0,
            timeout=timeout_s,
            http_client=http_client(address, timeout_s),
            open_telemetry=False,  # `client.telemetry` has a span for each call
        )
        self._context = ErrorContext.at(address, name, model, KEY_VARIABLE, key)
        self._timeout_s = timeout_s
        self._address = address
        self._largest_client: AsyncAnthropic | None = None
        self._constrained = True
        self.name, self.endpoint = name, address.identity
        self.capabilities = replace(ANTHROPIC.takes, max_image_side=largest_side(model))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._context.name!r} at {self._context.endpoint})"

    @property
    def secrets(self) -> tuple[str, ...]:
        return self._context.secrets

    def sent(self, sampling: Sampling) -> dict[str, Any]:
        """The sampling parameters as they go over the wire."""
        return {"max_tokens": sampling.max_output_tokens}

    async def generate(self, request: ModelRequest) -> ModelResponse:
        """Make one call; see `ModelProvider.generate`. Where a model has no constrained answers, it is
        made once more without."""
        if not self._constrained:
            request = replace(request, schema=None)
        try:
            body = messages_body(request, self._context.model)
            async with Exchange(self._context, self._timeout_s) as exchange:
                exchange.response = await self._client.post(
                    "/v1/messages", cast_to=httpx2.Response, content=body
                )
            content, headers = exchange.result()
            return read_message(content, headers.get("request-id"), self._context)
        except Flagged as flagged:
            return ModelResponse("", "refusal", Tokens(), reason=flagged.reason)
        except Rejection as rejection:
            message = rejection.body.message
            if request.schema is None or "output" not in message.lower() or not _NOT_TAKEN.search(message):
                raise
        self._constrained = False
        return await self.generate(request)

    def batches(self) -> BatchApi:
        from uncanny.models.discount.batches import LARGEST_RESULTS, TIMEOUT_S, AnthropicBatches

        def body(request: ModelRequest, files: Files) -> bytes:
            # No breakpoints: lines of a batch run side by side, so each would write to the cache, which costs
            # extra, and none would read.
            turns = tuple(replace(turn, shared=0) for turn in request.messages)
            schema = request.schema if self._constrained else None
            return messages_body(replace(request, messages=turns, schema=schema), self._context.model, files)

        def read(content: dict[str, Any], request_id: str | None) -> ModelResponse:
            return read_message(content, request_id, self._context)

        if self._largest_client is None:
            self._largest_client = self._client.with_options(
                http_client=http_client(self._address, TIMEOUT_S, LARGEST_RESULTS), timeout=TIMEOUT_S
            )
        return AnthropicBatches(self._largest_client, self._context, body, read)

    async def close(self) -> None:
        await self._client.close()
        if self._largest_client is not None:
            await self._largest_client.close()


def largest_side(model: str) -> int:
    """Pixels of an image's longer side above which the server makes it smaller without a word."""
    # A strip, so that only the limit of the longer side tells.
    return min(max(shown_size(f"anthropic/{model}", 10_000, 1)), _LARGEST_OF_MANY)


_BREAKPOINT = {"type": "ephemeral"}
_FINISH: dict[str, Finish] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}


def messages_body(request: ModelRequest, model: str, files: Files = NO_FILES) -> bytes:
    """The JSON body; what differs between requests about one image comes last. Images among `files` are
    named.

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
    breaks = breakpoints(turns)
    body["messages"] = [
        {
            "role": turn.role,
            "content": [
                _block(part, files, marked=(i, j) in breaks) for j, part in enumerate(turn.parts) if part
            ],
        }
        for i, turn in enumerate(turns)
    ]
    return orjson.dumps(body)


def _block(part: str | SentImage, files: Files, *, marked: bool) -> dict[str, Any]:
    block: dict[str, Any]
    if isinstance(part, str):
        block = {"type": "text", "text": part}
    elif part.sha256 in files:
        block = {"type": "image", "source": {"type": "file", "file_id": files[part.sha256]}}
    else:
        data = orjson.Fragment(b'"' + part.base64 + b'"')
        block = {"type": "image", "source": {"type": "base64", "media_type": part.media_type, "data": data}}
    return block | {"cache_control": _BREAKPOINT} if marked else block


def read_message(content: dict[str, Any], request_id: str | None, context: ErrorContext) -> ModelResponse:
    """The response in a message; raises `TransientError` where there is none."""
    blocks = content.get("content")
    if content.get("type") != "message" or not isinstance(blocks, list):
        raise bad_body(
            context, f"no message in it (fields: {one_line(', '.join(sorted(content)[:8]), context.secrets)})"
        )
    texts = [
        block["text"]
        for block in blocks
        if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)
    ]
    model, reason = content.get("model"), content.get("stop_reason")
    return ModelResponse(
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
