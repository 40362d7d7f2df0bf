"""Anthropic over real HTTP: bodies as sent, responses as read, failures."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

from uncanny.errors import ModelUnusableError
from uncanny.models.anthropic import AnthropicProvider, largest_side
from uncanny.models.base import AnswerSchema, Message, ModelRequest, Sampling, Tokens, encode_image

KEY = "sk-ant-api03-0123456789abcdefSECRET"
PATH = "/v1/messages"
OWN = {"type": "object", "properties": {}, "additionalProperties": False}
SHARED = {"type": "object", "properties": {"answer": {"anyOf": [OWN]}}, "additionalProperties": False}
DATA = b"\x89PNG pixels"
IMAGE = encode_image(
    sha256=hashlib.sha256(DATA).hexdigest(), media_type="image/png", width=4, height=3, data=DATA
)


def make_request(text: str, *more: Message, name: str = "objects", shared: int = 2) -> ModelRequest:
    first = Message("user", (IMAGE, "Objects: cup, spoon", text), shared=shared)
    return ModelRequest(
        messages=(Message("system", ("You look at images.",)), first, *more),
        sampling=Sampling(0.3, 0.95, 2_000),
        schema=AnswerSchema(name, OWN, SHARED),
    )


def message(**changes: Any) -> dict[str, Any]:
    usage = {
        "input_tokens": 60,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 1500,
        "output_tokens": 12,
    }
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-4-5-20251101",
        "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a cup"}],
        "stop_reason": "end_turn",
        "usage": usage,
    } | changes


@pytest.fixture
async def provider(httpserver: HTTPServer) -> AsyncIterator[AnthropicProvider]:
    made = AnthropicProvider("claude-opus-4-5", base_url=httpserver.url_for("/"), api_key=KEY, timeout_s=5)
    yield made
    await made.close()


def bodies(httpserver: HTTPServer) -> list[bytes]:
    return [sent.get_data() for sent, _ in httpserver.log]


async def test_a_request_is_sent_with_two_breakpoints(
    httpserver: HTTPServer, provider: AnthropicProvider
) -> None:
    httpserver.expect_request(PATH, method="POST").respond_with_json(message())
    await provider.generate(make_request("What is wrong?"))
    sent = httpserver.log[0][0]
    assert KEY in (sent.headers.get("x-api-key") or sent.headers["authorization"])
    assert sent.headers["anthropic-version"]
    assert json.loads(sent.get_data()) == {
        "model": "claude-opus-4-5",
        "max_tokens": 2000,
        "output_config": {"format": {"type": "json_schema", "schema": SHARED}},
        "system": "You look at images.",
        "messages": [
            {
                "role": "user",
                "content": [
                    {
                        "type": "image",
                        "source": {
                            "type": "base64",
                            "media_type": "image/png",
                            "data": "iVBORyBwaXhlbHM=",
                        },
                        "cache_control": {"type": "ephemeral"},
                    },
                    {
                        "type": "text",
                        "text": "Objects: cup, spoon",
                        "cache_control": {"type": "ephemeral"},
                    },
                    {"type": "text", "text": "What is wrong?"},
                ],
            }
        ],
    }


@pytest.mark.parametrize(("shared", "marked"), [(0, []), (1, [0]), (2, [0, 1]), (9, [0, 2])])
async def test_where_the_breakpoints_are(
    httpserver: HTTPServer, provider: AnthropicProvider, shared: int, marked: list[int]
) -> None:
    httpserver.expect_request(PATH).respond_with_json(message())
    await provider.generate(make_request("?", shared=shared))
    parts = json.loads(bodies(httpserver)[0])["messages"][0]["content"]
    assert [place for place, part in enumerate(parts) if "cache_control" in part] == marked


async def test_requests_about_one_image_share_their_bytes_up_to_the_prompt(
    httpserver: HTTPServer, provider: AnthropicProvider
) -> None:
    httpserver.expect_request(PATH).respond_with_json(message())
    await provider.generate(make_request("Attributes?", name="attributes"))
    more = (Message("assistant", ("nonsense",)), Message("user", ("Again.",)))
    await provider.generate(make_request("Relations?", *more, name="relations"))
    first, second = bodies(httpserver)
    assert second.startswith(first[: first.index(b"Attributes?")])
    assert [turn["role"] for turn in json.loads(second)["messages"]] == ["user", "assistant", "user"]


async def test_a_response_has_text_usage_and_identity(
    httpserver: HTTPServer, provider: AnthropicProvider
) -> None:
    httpserver.expect_request(PATH).respond_with_json(message(), headers={"request-id": "req_1"})
    response = await provider.generate(make_request("?"))
    assert (response.text, response.finish) == ("a cup", "stop")
    assert (response.model, response.request_id) == ("claude-opus-4-5-20251101", "req_1")
    assert response.tokens == Tokens(input=1560, output=12, cached=1500, cache_written=0)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (None, Tokens()),
        ({"input_tokens": 5, "output_tokens": 2}, Tokens(5, 2)),
        (
            {"input_tokens": 5, "cache_creation_input_tokens": 100, "cache_read_input_tokens": None},
            Tokens(105, None, None, 100),
        ),
    ],
)
async def test_usage_that_is_not_reported_is_none(
    httpserver: HTTPServer, provider: AnthropicProvider, usage: object, tokens: Tokens
) -> None:
    httpserver.expect_request(PATH).respond_with_json(message(usage=usage))
    assert (await provider.generate(make_request("?"))).tokens == tokens


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "refusal"),
    ],
)
async def test_how_an_answer_ended(
    httpserver: HTTPServer, provider: AnthropicProvider, reason: str, finish: str
) -> None:
    httpserver.expect_request(PATH).respond_with_json(message(stop_reason=reason, content=[]))
    response = await provider.generate(make_request("?"))
    assert (response.finish, response.text) == (finish, "")


def test_no_sampling_parameters_are_sent(provider: AnthropicProvider) -> None:
    assert provider.sent(Sampling(0.3, 0.95, 100)) == {"max_tokens": 100}
    assert not provider.capabilities.temperature
    assert not provider.capabilities.top_p


def test_a_missing_key_is_one_line_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(ModelUnusableError, match=r"environment variable ANTHROPIC_API_KEY\. Keys come"):
        AnthropicProvider("claude-opus-4-5")


@pytest.mark.parametrize(
    ("model", "side"),
    [
        ("claude-3-5-sonnet-20241022", 1568),
        ("claude-haiku-4-5", 1568),
        ("claude-opus-4-6", 1568),
        ("claude-opus-4-7", 2000),
        ("claude-sonnet-5", 2000),
        ("claude-opus-4-20250514", 1568),
    ],
)
def test_newer_models_see_larger_images(model: str, side: int) -> None:
    assert largest_side(model) == side
