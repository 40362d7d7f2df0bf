"""Error bodies of servers when their moderation rejects one request, and what only sounds like it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

from tests.client.scripted import generate, guarded
from uncanny.client.calls import CallScope
from uncanny.client.client import ModelClient
from uncanny.errors import ModelUnusableError, ProviderError, QuotaError, RefusedError, RequestRejectedError
from uncanny.models.anthropic import AnthropicProvider
from uncanny.models.base import Message, ModelRequest, Sampling, Tokens
from uncanny.models.openai import CompatibleProvider, OpenAIProvider

KEY = "sk-0123456789abcdefSECRET"
PATH = "/v1/chat/completions"
REQUEST = ModelRequest((Message("user", ("?",)),), Sampling())


@pytest.fixture
async def provider(httpserver: HTTPServer) -> AsyncIterator[CompatibleProvider]:
    made = CompatibleProvider("some", base_url=httpserver.url_for("/v1"), api_key=KEY, timeout_s=5)
    yield made
    await made.close()


FLAGGED: list[tuple[int, Any, str]] = [
    (
        403,
        {
            "error": {
                "code": 403,
                "message": "google/gemini-3 requires moderation on OpenInference. Your input was flagged",
                "metadata": {
                    "reasons": ["violence/graphic"],
                    "flagged_input": "?",
                    "provider_name": "Google",
                },
            },
            "user_id": "user_1",
        },
        "violence/graphic",
    ),
    (403, {"error": {"code": 403, "message": "Forbidden", "metadata": {"reasons": ["sexual"]}}}, "sexual"),
    (
        403,
        {
            "code": "The caller does not have permission to execute the specified operation",
            "error": "Content violates usage guidelines. Team: t-1, API key ID: k-1, Model: grok-4, "
            "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO",
        },
        "usage guidelines",
    ),
    (
        400,
        {
            "error": {
                "code": "data_inspection_failed",
                "param": None,
                "message": "Input data may contain inappropriate content.",
                "type": "data_inspection_failed",
            }
        },
        "inappropriate",
    ),
    (400, {"code": "DataInspectionFailed", "message": "Output failed", "request_id": "1"}, "Output failed"),
    (
        400,
        {
            "error": {
                "message": "Invalid prompt: your prompt was flagged as potentially "
                "violating our usage policy.",
                "type": "invalid_request_error",
                "param": None,
                "code": "invalid_prompt",
            }
        },
        "flagged",
    ),
    (400, {"error": {"code": "1301", "message": "系统检测到输入或生成内容可能包含不安全或敏感内容"}}, "系统"),
    (400, {"error": {"code": 1301, "message": "unsafe"}}, "unsafe"),
    (
        400,
        {
            "error": {
                "message": "The request was rejected because it was considered high risk",
                "type": "content_filter",
            }
        },
        "high risk",
    ),
    (
        400,
        {
            "error": {
                "message": "The response was filtered due to the prompt triggering Azure OpenAI's content "
                "management policy.",
                "type": None,
                "param": "prompt",
                "code": "content_filter",
                "status": 400,
                "innererror": {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {}},
            }
        },
        "content management policy",
    ),
    (400, {"error": {"message": "x", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}, "x"),
    (
        400,
        {
            "error": {
                "code": 400,
                "message": "Provider returned error",
                "metadata": {
                    "raw": '{"error": {"message": "refused", "code": "content_policy_violation"}}',
                    "provider_name": "Azure",
                },
            }
        },
        "Provider returned error: refused",
    ),
    (422, {"error": {"message": "The image was flagged by our safety system"}}, "safety system"),
    (451, {"error": "The prompt contains prohibited content"}, "prohibited"),
]


@pytest.mark.parametrize(("status", "body", "word"), FLAGGED)
async def test_a_flagged_request_is_a_refusal_of_that_request(
    httpserver: HTTPServer, provider: CompatibleProvider, status: int, body: Any, word: str
) -> None:
    httpserver.expect_request(PATH).respond_with_json(body, status=status)
    response = await provider.generate(REQUEST)
    assert (response.text, response.finish, response.tokens) == ("", "refusal", Tokens())
    assert response.reason is not None
    assert f"HTTP {status}" in response.reason
    assert word in response.reason
    scope = CallScope("a.png")
    with pytest.raises(RefusedError, match=f"HTTP {status}") as caught:
        await generate(ModelClient({"": [guarded(provider)]}), REQUEST, scope)
    assert caught.value.words == ""
    assert [(call.outcome, call.detail) for call in scope.calls] == [("refused", response.reason)]


GATEWAYS = [row for row in FLAGGED if row[1].get("error") and "metadata" in row[1]["error"]]


@pytest.mark.parametrize(("status", "body", "word"), GATEWAYS)
async def test_gateways_report_it_with_status_200_too(
    httpserver: HTTPServer, provider: CompatibleProvider, status: int, body: Any, word: str
) -> None:
    httpserver.expect_request(PATH).respond_with_json(body)
    response = await provider.generate(REQUEST)
    assert response.finish == "refusal"
    assert response.reason is not None
    assert f"HTTP {status}" in response.reason
    assert word in response.reason


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (403, {"error": {"message": "You do not have permission to use this model"}}, ModelUnusableError),
        (403, {"error": {"message": "Country, region, or territory not supported"}}, ModelUnusableError),
        (
            403,
            {"error": {"message": "Your account was flagged for violating our usage policies."}},
            ModelUnusableError,
        ),
        (403, {"error": {"message": "This key was disabled by moderation"}}, ModelUnusableError),
        (403, {"error": {"code": 403, "message": "Key limit exceeded", "metadata": {}}}, ModelUnusableError),
        (403, {"error": {"code": 403, "message": "no", "metadata": {"reasons": None}}}, ModelUnusableError),
        (403, {"code": "x", "error": "Your team has no credits left"}, ModelUnusableError),
        (403, "<html><title>Your request was blocked</title></html>", ModelUnusableError),
        (401, {"error": {"message": "Input flagged", "code": "content_filter"}}, ModelUnusableError),
        (402, {"error": {"message": "x", "metadata": {"reasons": ["violence"]}}}, QuotaError),
        (400, {"error": {"message": "Input data exceeds the model's context"}}, RequestRejectedError),
        (400, {"error": {"message": "content_filter is an unknown parameter"}}, RequestRejectedError),
        (400, {"error": {"message": "data violates the JSON schema"}}, RequestRejectedError),
        (400, {"error": {"message": "The image data you provided is broken"}}, RequestRejectedError),
    ],
)
async def test_what_is_about_the_key_or_the_form_stays_what_it_is(
    httpserver: HTTPServer,
    provider: CompatibleProvider,
    status: int,
    body: Any,
    expected: type[ProviderError],
) -> None:
    if isinstance(body, str):
        httpserver.expect_request(PATH).respond_with_data(body, status=status, content_type="text/html")
    else:
        httpserver.expect_request(PATH).respond_with_json(body, status=status)
    with pytest.raises(expected):
        await provider.generate(REQUEST)


async def test_anthropic_has_a_filter_too(httpserver: HTTPServer) -> None:
    message = "Output blocked by content filtering policy"
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    httpserver.expect_request("/v1/messages").respond_with_json(error, status=400)
    provider = AnthropicProvider("claude-opus-4-5", base_url=httpserver.url_for("/"), api_key=KEY)
    response = await provider.generate(REQUEST)
    await provider.close()
    assert (response.text, response.finish, response.reason) == ("", "refusal", f"HTTP 400: {message}")


USAGE = {"prompt_tokens": 1034, "completion_tokens": 0, "total_tokens": 1034}


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        ({"id": "x", "object": "chat.completion", "model": "gemini-3", "usage": USAGE}, Tokens(1034, 0)),
        ({"choices": [], "model": "gemini-3", "usage": USAGE}, Tokens(1034, 0)),
        ({"choices": None, "usage": USAGE | {"completion_tokens": 77}}, Tokens(1034, 77)),
        ({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}, Tokens()),
        (
            {"choices": [{"finish_reason": "content_filter: PROHIBITED_CONTENT"}], "usage": USAGE},
            Tokens(1034, 0),
        ),
        ({"choices": [{"finish_reason": "SAFETY", "message": None}], "usage": USAGE}, Tokens(1034, 0)),
    ],
)
async def test_an_answer_a_filter_took_away_is_a_refusal_that_keeps_its_usage(
    httpserver: HTTPServer, body: dict[str, Any], tokens: Tokens
) -> None:
    httpserver.expect_request(PATH).respond_with_json(body)
    provider = OpenAIProvider("gpt-4o", base_url=httpserver.url_for("/v1"), api_key=KEY)
    response = await provider.generate(REQUEST)
    await provider.close()
    assert (response.text, response.finish, response.tokens) == ("", "refusal", tokens)
    assert response.reason
