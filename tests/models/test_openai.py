"""Hosted OpenAI over real HTTP: bodies as sent, responses as read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request as Sent

from uncanny.models.base import AnswerSchema, Message, ModelRequest, Sampling, SentImage, Tokens, encode_image
from uncanny.models.openai import OpenAIProvider

KEY = "sk-test-0123456789abcdefXYZ"
PATH = "/v1/chat/completions"
OWN = {"type": "object", "properties": {"objects": {"type": "array"}}, "additionalProperties": False}
SHARED = {"type": "object", "properties": {"answer": {"anyOf": [OWN]}}, "additionalProperties": False}


def picture(data: bytes = b"\x89PNG pixels") -> SentImage:
    return encode_image(
        sha256=hashlib.sha256(data).hexdigest(), media_type="image/png", width=4, height=3, data=data
    )


def make_request(text: str, image: SentImage | None = None, **more: Any) -> ModelRequest:
    parts = (image or picture(), "Objects: cup, spoon", text)
    messages = (Message("system", ("You look at images.",)), Message("user", parts, shared=2))
    return ModelRequest(messages=messages, sampling=Sampling(0.3, 0.95, 2_000), **more)


def completion(**changes: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": "a cup", "refusal": None} | changes.pop("message", {})
    usage = {
        "prompt_tokens": 900,
        "completion_tokens": 7,
        "total_tokens": 907,
        "prompt_tokens_details": {"cached_tokens": 768},
    }
    choice = {"index": 0, "message": message, "finish_reason": "stop"} | changes.pop("choice", {})
    return {"id": "c1", "model": "gpt-4o-2024-08-06", "choices": [choice], "usage": usage} | changes


@pytest.fixture
async def provider(httpserver: HTTPServer) -> AsyncIterator[OpenAIProvider]:
    made = OpenAIProvider("gpt-4o", base_url=httpserver.url_for("/v1"), api_key=KEY, timeout_s=5)
    yield made
    await made.close()


def bodies(httpserver: HTTPServer) -> list[bytes]:
    return [sent.get_data() for sent, _ in httpserver.log]


async def test_a_request_is_sent_image_first(httpserver: HTTPServer, provider: OpenAIProvider) -> None:
    httpserver.expect_request(PATH, method="POST").respond_with_json(completion())
    schema = AnswerSchema("objects", OWN, SHARED)
    await provider.generate(make_request("What is wrong?", schema=schema))
    sent: Sent = httpserver.log[0][0]
    body = json.loads(sent.get_data())
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.headers["content-type"] == "application/json"
    assert body == {
        "model": "gpt-4o",
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": SHARED},
        },
        "messages": [
            {"role": "system", "content": "You look at images."},
            {
                "role": "user",
                "content": [
                    {
                        "type": "image_url",
                        "image_url": {"url": "data:image/png;base64,iVBORyBwaXhlbHM=", "detail": "high"},
                    },
                    {"type": "text", "text": "Objects: cup, spoon"},
                    {"type": "text", "text": "What is wrong?"},
                ],
            },
        ],
        "temperature": 0.3,
        "top_p": 0.95,
        "max_completion_tokens": 2000,
        "prompt_cache_key": picture().sha256[:32],
    }


async def test_requests_about_one_image_share_their_bytes_up_to_the_prompt(
    httpserver: HTTPServer, provider: OpenAIProvider
) -> None:
    httpserver.expect_request(PATH).respond_with_json(completion())
    image = picture(bytes(range(256)) * 40)
    first, second = (
        AnswerSchema("objects", OWN, SHARED),
        AnswerSchema("quadruples", {"type": "object"}, SHARED),
    )
    await provider.generate(make_request("Attributes?", image, schema=first))
    await provider.generate(make_request("Relations?", image, schema=second))
    one, other = bodies(httpserver)
    prefix = one[: one.index(b"Attributes?")]
    assert other.startswith(prefix)
    assert image.base64 in prefix
    assert b"spoon" in prefix


async def test_a_repair_keeps_the_first_turn_and_adds_to_it(
    httpserver: HTTPServer, provider: OpenAIProvider
) -> None:
    httpserver.expect_request(PATH).respond_with_json(completion())
    first = make_request("List them")
    more = (Message("assistant", ("nonsense",)), Message("user", ("Not JSON.", "Again.")))
    await provider.generate(replace(first, messages=first.messages + more))
    messages = json.loads(bodies(httpserver)[0])["messages"]
    assert messages[2:] == [
        {"role": "assistant", "content": "nonsense"},
        {"role": "user", "content": "Not JSON.\n\nAgain."},
    ]


async def test_a_response_has_text_usage_and_identity(
    httpserver: HTTPServer, provider: OpenAIProvider
) -> None:
    httpserver.expect_request(PATH).respond_with_json(completion(), headers={"x-request-id": "req_1"})
    response = await provider.generate(make_request("?"))
    assert (response.text, response.finish, response.model, response.request_id) == (
        "a cup",
        "stop",
        "gpt-4o-2024-08-06",
        "req_1",
    )
    assert response.tokens == Tokens(input=900, output=7, cached=768, cache_written=None)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (None, Tokens()),
        ({"prompt_tokens": 5, "completion_tokens": 0}, Tokens(5, 0)),
        ({"prompt_tokens": "many", "completion_tokens": -1}, Tokens()),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 1,
                "prompt_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 8},
            },
            Tokens(9, 1, 0, 8),
        ),
        *(
            ({"prompt_tokens": 900, "prompt_tokens_details": details}, Tokens(900, images=images))
            for details, images in (
                ({"image_tokens": 765}, 765),
                ({"multimodal_tokens": {"image": 765, "audio": 3}}, 765),
                ({"multimodal_tokens": {"image": "many"}}, None),
                ({"multimodal_tokens": None}, None),
            )
        ),
    ],
)
async def test_usage_that_is_not_reported_is_none(
    httpserver: HTTPServer, provider: OpenAIProvider, usage: object, tokens: Tokens
) -> None:
    httpserver.expect_request(PATH).respond_with_json(completion(usage=usage))
    assert (await provider.generate(make_request("?"))).tokens == tokens


@pytest.mark.parametrize(
    ("changes", "finish", "text"),
    [
        ({"choice": {"finish_reason": "length"}}, "length", "a cup"),
        ({"message": {"content": None, "refusal": "I can't."}}, "refusal", "I can't."),
        ({"choice": {"finish_reason": "content_filter"}, "message": {"content": None}}, "refusal", ""),
        ({"message": {"content": None}}, "stop", ""),
        ({"message": {"content": [{"type": "text", "text": "a "}, {"text": "cup"}]}}, "stop", "a cup"),
    ],
)
async def test_how_an_answer_ended(
    httpserver: HTTPServer, provider: OpenAIProvider, changes: dict[str, Any], finish: str, text: str
) -> None:
    httpserver.expect_request(PATH).respond_with_json(completion(**changes))
    response = await provider.generate(make_request("?"))
    assert (response.finish, response.text) == (finish, text)


async def test_a_filtered_prompt_is_a_refusal(httpserver: HTTPServer, provider: OpenAIProvider) -> None:
    error = {"error": {"message": "filtered", "code": "content_filter"}}
    httpserver.expect_request(PATH).respond_with_json(error, status=400)
    assert (await provider.generate(make_request("?"))).finish == "refusal"
