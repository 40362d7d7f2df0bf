"""Anthropic: every way a call can fail, and what it becomes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from uncanny.errors import ModelUnusableError, ProviderError, QuotaError, RequestRejectedError, TransientError
from uncanny.models.anthropic import AnthropicProvider
from uncanny.models.base import AnswerSchema, Message, ModelRequest, Sampling

KEY = "sk-ant-api03-0123456789abcdefSECRET"
PATH = "/v1/messages"


def make_request(text: str) -> ModelRequest:
    schema = AnswerSchema("objects", {"type": "object"}, {"type": "object"})
    return ModelRequest((Message("user", (text,)),), Sampling(), schema)


def message() -> dict[str, object]:
    return {"type": "message", "content": [{"type": "text", "text": "a cup"}], "stop_reason": "end_turn"}


@pytest.fixture
async def provider(httpserver: HTTPServer) -> AsyncIterator[AnthropicProvider]:
    made = AnthropicProvider("claude-opus-4-5", base_url=httpserver.url_for("/"), api_key=KEY, timeout_s=5)
    yield made
    await made.close()


def bodies(httpserver: HTTPServer) -> list[bytes]:
    return [sent.get_data() for sent, _ in httpserver.log]


@pytest.mark.parametrize(
    ("status", "kind", "expected"),
    [
        (400, "invalid_request_error", RequestRejectedError),
        (401, "authentication_error", ModelUnusableError),
        (402, "billing_error", QuotaError),
        (403, "permission_error", ModelUnusableError),
        (404, "not_found_error", ModelUnusableError),
        (413, "request_too_large", RequestRejectedError),
        (429, "rate_limit_error", TransientError),
        (500, "api_error", TransientError),
        (529, "overloaded_error", TransientError),
    ],
)
async def test_failures(
    httpserver: HTTPServer,
    provider: AnthropicProvider,
    status: int,
    kind: str,
    expected: type[ProviderError],
) -> None:
    body = {"type": "error", "error": {"type": kind, "message": f"not with {KEY}"}}
    httpserver.expect_request(PATH).respond_with_json(body, status=status, headers={"retry-after": "3"})
    with pytest.raises(ProviderError) as caught:
        await provider.generate(make_request("?"))
    error = caught.value
    assert isinstance(error, expected)
    assert KEY not in str(error) + repr(error) + repr(provider)
    assert "claude-opus-4-5" in str(error)
    if isinstance(error, TransientError):
        assert error.retry_after == 3
        assert error.overloaded is (status in (429, 529))
    if status in (401, 402, 403):
        assert "ANTHROPIC_API_KEY" in str(error)


@pytest.mark.parametrize(
    "words",
    ["'claude-x' does not support output format.", "output_config: Extra inputs are not permitted"],
)
async def test_a_model_without_constrained_output_is_sent_no_schema(
    httpserver: HTTPServer, provider: AnthropicProvider, words: str
) -> None:
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": words}}
    httpserver.expect_ordered_request(PATH).respond_with_json(error, status=400)
    for _ in range(2):
        httpserver.expect_ordered_request(PATH).respond_with_json(message())
    for _ in range(2):
        await provider.generate(make_request("?"))
    assert ["output_config" in json.loads(body) for body in bodies(httpserver)] == [True, False, False]


@pytest.mark.parametrize("body", ['{"type": "message", "content": [{"ty', "<html></html>", "", "{}"])
async def test_a_body_that_is_no_answer_is_not_an_empty_answer(
    httpserver: HTTPServer, provider: AnthropicProvider, body: str
) -> None:
    httpserver.expect_request(PATH).respond_with_response(Response(body, 200))
    with pytest.raises(TransientError) as caught:
        await provider.generate(make_request("?"))
    assert caught.value.kind == "bad_body"


async def test_silence_is_a_timeout_and_a_closed_door_a_connection_error() -> None:
    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    for kind in ("timeout", "connection"):
        provider = AnthropicProvider("claude-opus-4-5", base_url=url, api_key=KEY, timeout_s=0.3)
        with pytest.raises(TransientError) as caught:
            await provider.generate(make_request("?"))
        assert caught.value.kind == kind
        await provider.close()
        server.close()
