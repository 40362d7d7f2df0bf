"""Hosted OpenAI: what models take, keys and addresses."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

from uncanny.errors import ModelUnusableError, RequestRejectedError, UsageError
from uncanny.models.base import AnswerSchema, Message, ModelRequest, Sampling
from uncanny.models.openai import OpenAIProvider, takes_sampling

KEY = "sk-test-0123456789abcdefXYZ"
PATH = "/v1/chat/completions"
OWN = {"type": "object"}
SHARED = {"type": "object", "properties": {"answer": OWN}}


def make_request(text: str, **more: Any) -> ModelRequest:
    return ModelRequest(messages=(Message("user", (text,)),), sampling=Sampling(0.3, 0.95, 2_000), **more)


def completion() -> dict[str, Any]:
    return {"choices": [{"message": {"content": "a cup"}, "finish_reason": "stop"}]}


@pytest.fixture
async def provider(httpserver: HTTPServer) -> AsyncIterator[OpenAIProvider]:
    made = OpenAIProvider("gpt-4o", base_url=httpserver.url_for("/v1"), api_key=KEY, timeout_s=5)
    yield made
    await made.close()


def bodies(httpserver: HTTPServer) -> list[bytes]:
    return [sent.get_data() for sent, _ in httpserver.log]


def unsupported(name: str, message: str | None = None) -> dict[str, Any]:
    text = message or f"Unsupported parameter: '{name}' is not supported with this model."
    return {"error": {"message": text, "param": name, "code": "unsupported_parameter"}}


async def test_parameters_the_model_does_not_take_are_given_up_for_good(
    httpserver: HTTPServer, provider: OpenAIProvider
) -> None:
    sampling = Sampling(0.3, 0.95, 500)
    assert provider.sent(sampling) == {"temperature": 0.3, "top_p": 0.95, "max_completion_tokens": 500}
    for name in ("temperature", "top_p", "max_completion_tokens"):
        httpserver.expect_ordered_request(PATH).respond_with_json(unsupported(name), status=400)
    for _ in range(2):
        httpserver.expect_ordered_request(PATH).respond_with_json(completion())
    await provider.generate(make_request("?"))
    await provider.generate(make_request("??"))
    httpserver.check_assertions()
    for body in map(json.loads, bodies(httpserver)[3:]):
        assert not body.keys() & {"temperature", "top_p", "max_completion_tokens"}
        assert body["max_tokens"] == 2000
    assert provider.sent(sampling) == {"max_tokens": 500}
    assert provider.capabilities.temperature, "answers are kept under the traits, so they may not change"


async def test_a_model_without_structured_output_is_sent_no_schema(
    httpserver: HTTPServer, provider: OpenAIProvider
) -> None:
    words = "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."
    httpserver.expect_ordered_request(PATH).respond_with_json(
        unsupported("response_format", words), status=400
    )
    httpserver.expect_ordered_request(PATH).respond_with_json(completion())
    await provider.generate(make_request("?", schema=AnswerSchema("objects", OWN, SHARED)))
    assert "response_format" not in json.loads(bodies(httpserver)[1])


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ("Invalid schema for response_format 'answer': 'required' is missing", "response_format"),
        ("max_tokens is too large: 99999. This model supports at most 8192 tokens", "max_tokens"),
        ("temperature must be between 0 and 2", "temperature"),
    ],
)
async def test_other_objections_to_a_parameter_are_errors(
    httpserver: HTTPServer, provider: OpenAIProvider, message: str, param: str
) -> None:
    error = {"error": {"message": message, "param": param}}
    httpserver.expect_request(PATH).respond_with_json(error, status=400)
    with pytest.raises(RequestRejectedError, match=message.split("'")[0].split(":")[0]):
        await provider.generate(make_request("?", schema=AnswerSchema("objects", OWN, SHARED)))
    assert len(httpserver.log) == 1


@pytest.mark.parametrize(
    ("model", "takes"),
    [
        ("gpt-4o", True),
        ("gpt-4.1-mini", True),
        ("gpt-4o-2024-08-06", True),
        ("gpt-5-chat-latest", True),
        ("o1", False),
        ("o3-mini", False),
        ("o4-mini-2025-04-16", False),
        ("gpt-5", False),
        ("gpt-5.4-nano", False),
        ("gpt-6-sol", False),
    ],
)
def test_reasoning_models_take_no_sampling_parameters(model: str, takes: bool) -> None:
    assert takes_sampling(model) is takes
    sent = OpenAIProvider(model, api_key=KEY).sent(Sampling(0.3, 0.95, 100))
    assert sent["max_completion_tokens"] == 100
    assert ("temperature" in sent) is ("top_p" in sent) is takes


def test_a_missing_key_is_one_line_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "  ")
    with pytest.raises(ModelUnusableError, match=r"Set the environment variable OPENAI_API_KEY\. Keys come"):
        OpenAIProvider("gpt-4o")


@pytest.mark.parametrize("key", ["“sk-0123456789abcdef”", "sk-01234 56789", "sk-0123456\n789"])
def test_a_key_no_header_can_carry_is_refused(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ModelUnusableError, match="OPENAI_API_KEY contains") as caught:
        OpenAIProvider("gpt-4o")
    assert "0123456" not in str(caught.value)


def test_the_key_and_the_endpoint_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY + "\n")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    provider = OpenAIProvider("gpt-4o")
    assert provider.endpoint == "https://api.openai.com/v1/"
    assert provider.name == "openai/gpt-4o"
    assert KEY not in repr(provider)
    assert all(KEY not in repr(value) for value in vars(provider).values())


def test_a_base_url_without_a_scheme_is_refused() -> None:
    with pytest.raises(UsageError, match="http://"):
        OpenAIProvider("gpt-4o", api_key=KEY, base_url="localhost:8000/v1")
