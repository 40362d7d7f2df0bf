"""A model that follows a script, and what a test needs to call it through the real `ModelClient`."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Literal

from uncanny.client.calls import CallScope
from uncanny.client.client import ModelClient
from uncanny.client.endpoint import Endpoint, guarded_endpoint
from uncanny.errors import AnswerError, ProviderError, TransientError
from uncanny.models.base import (
    Capabilities,
    Finish,
    Message,
    ModelProvider,
    ModelRequest,
    ModelResponse,
    Sampling,
    SentImage,
    Tokens,
    encode_image,
)

Line = ModelResponse | ProviderError
Script = Callable[[ModelRequest], Line | Awaitable[Line]]

CAPABILITIES = Capabilities(
    media_types=frozenset({"image/png", "image/webp", "image/jpeg"}),
    max_image_bytes=None,
    max_image_side=None,
    temperature=True,
    top_p=True,
    schema_in_prefix=False,
    prefix_cache=False,
)
WARMING = replace(CAPABILITIES, prefix_cache=True)
TOKENS = Tokens(input=100, output=10, cached=0, cache_written=0)


class ScriptedProvider(ModelProvider):
    """`requests` is all it was sent, `most` the most calls at once."""

    def __init__(
        self,
        script: Script,
        *,
        name: str = "script/one",
        capabilities: Capabilities = CAPABILITIES,
        endpoint: str | None = None,
        secrets: tuple[str, ...] = (),
    ) -> None:
        self._script = script
        self.name, self.capabilities, self.endpoint, self._secrets = name, capabilities, endpoint, secrets
        self.requests: list[ModelRequest] = []
        self.now = self.most = 0

    @property
    def secrets(self) -> tuple[str, ...]:
        return self._secrets

    async def generate(self, request: ModelRequest) -> ModelResponse:
        self.requests.append(request)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(0)
            line = self._script(request)
            if inspect.isawaitable(line):
                line = await line
            if isinstance(line, ProviderError):
                raise line
            return line
        finally:
            self.now -= 1


def in_turn(*lines: Line | str) -> Script:
    """The lines one after the other, texts as answers; one more call is an error of the test's."""
    following = iter(lines)
    return lambda _: _response(next(following))


def always(line: Line | str) -> Script:
    """The same line for every call."""
    return lambda _: _response(line)


def _response(line: Line | str) -> Line:
    return text_response(line) if isinstance(line, str) else line


def text_response(text: str, finish: Finish = "stop", tokens: Tokens = TOKENS) -> ModelResponse:
    return ModelResponse(text, finish, tokens, "script-2026")


def busy(retry_after: float | None = None, kind: str = "rate_limit") -> TransientError:
    """The server wants fewer calls."""
    return TransientError("try again", kind=kind, retry_after=retry_after, overloaded=True)


def picture(data: bytes = b"\x89PNG pixels", width: int = 4, height: int = 3) -> SentImage:
    digest = hashlib.sha256(data).hexdigest()
    return encode_image(sha256=digest, media_type="image/png", width=width, height=height, data=data)


def make_request(text: str = "What is it?", image: SentImage | None = None, **more: Any) -> ModelRequest:
    parts = (text,) if image is None else (image, text)
    messages = (Message("system", ("You look.",)), Message("user", parts, shared=len(parts) - 1))
    return ModelRequest(messages, more.pop("sampling", Sampling(0.3, 0.95, 2_000)), **more)


def guarded(
    provider: ModelProvider,
    *,
    concurrency: int = 8,
    price: float | None = None,
    worst: int = 1_000,
    timeout_s: float = 120.0,
    patience_s: float = 60.0,
    rest_s: float | None = None,
) -> Endpoint:
    """`price` is dollars a token, `worst` what each request is thought to use at most."""

    def cost(tokens: Tokens) -> float | None:
        if price is None or tokens.input is None or tokens.output is None:
            return None
        return price * (tokens.input + tokens.output)

    def most(_: ModelRequest) -> Tokens:
        return Tokens(worst - worst // 2, worst // 2, 0, 0)

    return guarded_endpoint(
        provider,
        concurrency,
        price=cost,
        worst_case=most,
        timeout_s=timeout_s,
        patience_s=patience_s,
        rest_s=rest_s,
    )


def client_of(*models: ScriptedProvider | Endpoint, **options: Any) -> ModelClient:
    """A client for all agents with these models, each the fallback of those before it."""
    endpoints = [model if isinstance(model, Endpoint) else guarded(model) for model in models]
    return ModelClient({"": endpoints}, **options)


def number(text: str) -> int:
    """Reads whole numbers and nothing else."""
    try:
        return int(text)
    except ValueError:
        raise AnswerError(f"{text!r} is no number") from None


async def generate(
    model_client: ModelClient,
    request: ModelRequest | None = None,
    scope: CallScope | None = None,
    prompt: str = "count@1",
) -> int:
    return await model_client.generate(
        make_request() if request is None else request,
        number,
        prompt=prompt,
        repair=lambda error: f"Again: {error.message}",
        scope=CallScope("a.png") if scope is None else scope,
    )


def texts(request: ModelRequest, role: Literal["system", "user", "assistant"] | None = None) -> list[str]:
    """The text of each turn, of one role or of all."""
    return [
        "\n".join(part for part in turn.parts if isinstance(part, str))
        for turn in request.messages
        if role in (None, turn.role)
    ]
