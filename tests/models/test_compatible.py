"""Servers that speak OpenAI's protocol more or less, over real HTTP."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

from uncanny.errors import RequestRejectedError, UsageError
from uncanny.models.base import AnswerSchema, Message, ModelRequest, Sampling, encode_image
from uncanny.models.openai import CompatibleProvider

PATH = "/api/v1/chat/completions"
IMAGE = encode_image(
    sha256=hashlib.sha256(b"pixels").hexdigest(), media_type="image/jpeg", width=4, height=3, data=b"pixels"
)
REQUEST = ModelRequest(
    messages=(Message("user", (IMAGE, "What is wrong?"), shared=1),),
    sampling=Sampling(0.3, None, 2_000),
    schema=AnswerSchema("objects", {"type": "object"}, {"type": "object", "title": "shared"}),
)
COMPLETION = {"choices": [{"message": {"content": "a cup"}, "finish_reason": None}]}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, httpserver: HTTPServer) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai-secret-0123456789")
    monkeypatch.setenv("OPENAI_COMPATIBLE_BASE_URL", httpserver.url_for("/api/v1"))
    monkeypatch.delenv("OPENAI_COMPATIBLE_API_KEY", raising=False)


def bodies(httpserver: HTTPServer) -> list[dict[str, Any]]:
    return [json.loads(sent.get_data()) for sent, _ in httpserver.log]


async def test_a_plain_server_is_sent_what_the_protocol_names(httpserver: HTTPServer) -> None:
    httpserver.expect_request(PATH).respond_with_json(COMPLETION)
    provider = CompatibleProvider("gemma")
    response = await provider.generate(REQUEST)
    await provider.close()
    assert (response.text, response.finish, response.model, response.tokens.input) == (
        "a cup",
        "stop",
        None,
        None,
    )
    sent = httpserver.log[0][0]
    assert sent.headers["authorization"] == "Bearer none"
    body = bodies(httpserver)[0]
    assert body["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert body["max_tokens"] == 2000
    assert body["messages"][0]["content"][0]["image_url"]["detail"] == "high"
    assert not body.keys() & {"top_p", "prompt_cache_key", "max_completion_tokens"}


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"error": "'response_format.type' must be 'text'"}),
        (
            400,
            {"error": {"code": 400, "message": "failed to parse grammar", "type": "invalid_request_error"}},
        ),
        (422, {"detail": [{"loc": ["body", "response_format", "type"], "msg": "Input should be 'text'"}]}),
        (400, {"object": "error", "message": "json_schema is not available", "code": 40001}),
    ],
)
async def test_structured_answers_are_given_up_where_there_are_none(
    httpserver: HTTPServer, status: int, error: dict[str, Any]
) -> None:
    httpserver.expect_ordered_request(PATH).respond_with_json(error, status=status)
    for _ in range(2):
        httpserver.expect_ordered_request(PATH).respond_with_json(COMPLETION)
    provider = CompatibleProvider("gemma")
    for _ in range(2):
        assert (await provider.generate(REQUEST)).text == "a cup"
    await provider.close()
    assert ["response_format" in body for body in bodies(httpserver)] == [True, False, False]
    assert provider.left_out == {"response_format"}


async def test_a_strict_server_loses_one_field_after_the_other(httpserver: HTTPServer) -> None:
    names = ["max_tokens", "temperature", "detail", "response_format"]
    for name in names:
        detail = [{"loc": ["body", name], "msg": "Extra inputs are not permitted"}]
        httpserver.expect_ordered_request(PATH).respond_with_json({"detail": detail}, status=422)
    httpserver.expect_ordered_request(PATH).respond_with_json(COMPLETION)
    provider = CompatibleProvider("gemma")
    assert (await provider.generate(REQUEST)).text == "a cup"
    await provider.close()
    assert provider.left_out == set(names)
    assert bodies(httpserver)[-1].keys() == {"model", "messages", "max_completion_tokens"}


async def test_a_server_that_rejects_everything_is_not_called_for_ever(httpserver: HTTPServer) -> None:
    error = {"error": {"message": "max_tokens, max_completion_tokens and response_format: not supported"}}
    httpserver.expect_request(PATH).respond_with_json(error, status=400)
    provider = CompatibleProvider("gemma")
    with pytest.raises(RequestRejectedError, match="not supported"):
        await provider.generate(REQUEST)
    await provider.close()
    assert len(httpserver.log) == 4


async def test_its_own_key_is_sent(httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", "own-key")
    httpserver.expect_request(PATH).respond_with_json(COMPLETION)
    provider = CompatibleProvider("gemma")
    await provider.generate(REQUEST)
    await provider.close()
    assert httpserver.log[0][0].headers["authorization"] == "Bearer own-key"


def test_an_address_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_COMPATIBLE_BASE_URL")
    with pytest.raises(UsageError, match="`base_url`"):
        CompatibleProvider("gemma")
