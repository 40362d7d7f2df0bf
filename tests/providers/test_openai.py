"""Hosted OpenAI over real HTTP: bodies as sent, replies as read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request as Sent

from uncanny.errors import ModelUnusableError, RequestRejectedError, UsageError
from uncanny.providers.base import AnswerSchema, Message, Request, Sampling, SentImage, Tokens
from uncanny.providers.encode import encode_image
from uncanny.providers.openai import OpenAIProvider, takes_sampling

KEY = "sk-test-0123456789abcdefXYZ"
PATH = "/v1/chat/completions"
OWN = {"type": "object", "properties": {"objects": {"type": "array"}}, "additionalProperties": False}
SHARED = {"type": "object", "properties": {"answer": {"anyOf": [OWN]}}, "additionalProperties": False}


def picture(data: bytes = b"\x89PNG pixels") -> SentImage:
    return encode_image(
        sha256=hashlib.sha256(data).hexdigest(), media_type="image/png", width=4, height=3, data=data
    )


def question(text: str, image: SentImage | None = None, **more: Any) -> Request:
    parts = (image or picture(), "Objects: cup, spoon", text)
    messages = (Message("system", ("You look at images.",)), Message("user", parts, shared=2))
    return Request(messages=messages, sampling=Sampling(0.3, 0.95, 2_000), **more)


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


async def test_a_question_is_sent_image_first(httpserver: HTTPServer, provider: OpenAIProvider) -> None:
    httpserver.expect_request(PATH, method="POST").respond_with_json(completion())
    schema = AnswerSchema("objects", OWN, SHARED)
    await provider.ask(question("What is wrong?", schema=schema))
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


async def test_questions_about_one_image_share_their_bytes_up_to_the_question(
    httpserver: HTTPServer, provider: OpenAIProvider
) -> None:
    httpserver.expect_request(PATH).respond_with_json(completion())
    image = picture(bytes(range(256)) * 40)
    first, second = (
        AnswerSchema("objects", OWN, SHARED),
        AnswerSchema("quadruples", {"type": "object"}, SHARED),
    )
    await provider.ask(question("Attributes?", image, schema=first))
    await provider.ask(question("Relations?", image, schema=second))
    one, other = bodies(httpserver)
    prefix = one[: one.index(b"Attributes?")]
    assert other.startswith(prefix)
    assert image.base64 in prefix
    assert b"spoon" in prefix


async def test_a_repair_question_keeps_the_first_turn_and_adds_to_it(
    httpserver: HTTPServer, provider: OpenAIProvider
) -> None:
    httpserver.expect_request(PATH).respond_with_json(completion())
    first = question("List them")
    more = (Message("assistant", ("nonsense",)), Message("user", ("Not JSON.", "Again.")))
    await provider.ask(replace(first, messages=first.messages + more))
    messages = json.loads(bodies(httpserver)[0])["messages"]
    assert messages[2:] == [
        {"role": "assistant", "content": "nonsense"},
        {"role": "user", "content": "Not JSON.\n\nAgain."},
    ]


async def test_a_reply_carries_text_usage_and_identity(
    httpserver: HTTPServer, provider: OpenAIProvider
) -> None:
    httpserver.expect_request(PATH).respond_with_json(completion(), headers={"x-request-id": "req_1"})
    reply = await provider.ask(question("?"))
    assert (reply.text, reply.finish, reply.model, reply.request_id) == (
        "a cup",
        "stop",
        "gpt-4o-2024-08-06",
        "req_1",
    )
    assert reply.tokens == Tokens(input=900, output=7, cached=768, cache_written=None)


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
    ],
)
async def test_usage_that_is_not_reported_is_none(
    httpserver: HTTPServer, provider: OpenAIProvider, usage: object, tokens: Tokens
) -> None:
    httpserver.expect_request(PATH).respond_with_json(completion(usage=usage))
    assert (await provider.ask(question("?"))).tokens == tokens


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
    reply = await provider.ask(question("?"))
    assert (reply.finish, reply.text) == (finish, text)


async def test_a_filtered_prompt_is_a_refusal(httpserver: HTTPServer, provider: OpenAIProvider) -> None:
    error = {"error": {"message": "filtered", "code": "content_filter"}}
    httpserver.expect_request(PATH).respond_with_json(error, status=400)
    assert (await provider.ask(question("?"))).finish == "refusal"


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
    await provider.ask(question("?"))
    await provider.ask(question("??"))
    httpserver.check_assertions()
    for body in map(json.loads, bodies(httpserver)[3:]):
        assert not body.keys() & {"temperature", "top_p", "max_completion_tokens"}
        assert body["max_tokens"] == 2000
    assert provider.sent(sampling) == {"max_tokens": 500}
    assert provider.traits.temperature, "answers are kept under the traits, so they may not change"


async def test_a_model_without_structured_answers_is_asked_without(
    httpserver: HTTPServer, provider: OpenAIProvider
) -> None:
    words = "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."
    httpserver.expect_ordered_request(PATH).respond_with_json(
        unsupported("response_format", words), status=400
    )
    httpserver.expect_ordered_request(PATH).respond_with_json(completion())
    await provider.ask(question("?", schema=AnswerSchema("objects", OWN, SHARED)))
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
        await provider.ask(question("?", schema=AnswerSchema("objects", OWN, SHARED)))
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
    with pytest.raises(ModelUnusableError, match=r"Set the environment variable OPENAI_API_KEY\.$"):
        OpenAIProvider("gpt-4o")


@pytest.mark.parametrize("key", ["“sk-0123456789abcdef”", "sk-01234 56789", "sk-0123456\n789"])
def test_a_key_no_header_can_carry_is_refused(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ModelUnusableError, match="OPENAI_API_KEY holds") as caught:
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
