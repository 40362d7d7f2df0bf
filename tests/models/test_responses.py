"""Calls in the background over the responses API: what is sent, and how each end of a response is read."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from uncanny.errors import ProviderError, RequestRejectedError, TransientError
from uncanny.models.base import Message, ModelRequest, ModelResponse, Sampling, Tokens, encode_image
from uncanny.models.discount.responses import read_response, response_body
from uncanny.models.http_errors import ErrorContext, Flagged
from uncanny.models.presets import OPENAI

CONTEXT = ErrorContext("openai/gpt-4o", "gpt-4o", "https://api.openai.com/v1", "OPENAI_API_KEY", ("key",))
USAGE = {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 2}


def ended(status: str = "completed", *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    message = {"type": "message", "role": "assistant", "content": list(parts)}
    output = [{"type": "reasoning", "summary": []}, message]
    return {"id": "resp_1", "status": status, "model": "gpt-4o-1", "output": output, "usage": USAGE, **more}


def text(words: str) -> dict[str, Any]:
    return {"type": "output_text", "text": words}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (ended("completed", text("yes")), ("yes", "stop")),
        (ended("completed", text("ye"), text("s")), ("yes", "stop")),
        (ended("completed"), ("", "stop")),
        (ended("completed", {"type": "refusal", "refusal": "no"}), ("no", "refusal")),
        (
            ended("incomplete", text("ye"), incomplete_details={"reason": "max_output_tokens"}),
            ("ye", "length"),
        ),
        (ended("incomplete", incomplete_details={"reason": "content_filter"}), ("", "refusal")),
    ],
)
def test_answers_are_read(content: dict[str, Any], expected: tuple[str, str]) -> None:
    response = read_response(content, CONTEXT)
    assert (response.text, response.finish) == expected
    assert (response.model, response.request_id) == ("gpt-4o-1", "resp_1")
    assert response.tokens == Tokens(input=9, output=2, cached=4)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (ended("failed", error={"code": "server_error", "message": "oh"}), TransientError),
        (ended("failed", error={"code": "rate_limit_exceeded", "message": "oh"}), TransientError),
        (ended("failed", error={"code": "new_code", "message": "oh"}), TransientError),
        (ended("failed", error={"code": "image_too_large", "message": "oh"}), TransientError),
        (ended("failed", error={"code": "invalid_prompt", "message": "our policy"}), RequestRejectedError),
        (ended("cancelled", error=None), TransientError),
        (ended("expired"), TransientError),
        ({}, TransientError),
        ({"status": 7}, TransientError),
    ],
)
def test_what_is_no_answer_is_an_error(content: dict[str, Any], kind: type[ProviderError]) -> None:
    with pytest.raises(kind):
        read_response(content, CONTEXT)


def test_a_question_that_moderation_turned_down_is_flagged() -> None:
    error = {"code": "invalid_prompt", "message": "flagged as violating our usage policy"}
    with pytest.raises(Flagged, match="flagged as violating"):
        read_response(ended("failed", error=error), CONTEXT)


def test_broken_parts_are_passed_over() -> None:
    content = ended("completed", {"type": "output_text"}, text("yes"))
    content["output"] += [None, {"content": "x"}, {"content": [None, 3]}]
    assert read_response(content, CONTEXT) == ModelResponse(
        "yes", "stop", Tokens(input=9, output=2, cached=4), "gpt-4o-1", "resp_1"
    )


def test_the_body_has_images_or_names_their_files() -> None:
    image = encode_image(sha256="0" * 64, media_type="image/png", width=1, height=1, data=b"abc")
    turns = (
        Message("system", ("Be exact.",)),
        Message("user", (image, "What is wrong?")),
        Message("assistant", ("nothing",)),
        Message("user", ("Again.",)),
    )
    request = ModelRequest(agent="any", messages=turns, sampling=Sampling(max_output_tokens=50))
    limit = {"max_output_tokens": 50}
    body = orjson.loads(orjson.dumps(response_body(request, "gpt-4o", OPENAI.variant, limit)))
    assert body.pop("input") == [
        {"role": "system", "content": [{"type": "input_text", "text": "Be exact."}]},
        {
            "role": "user",
            "content": [
                {"type": "input_image", "image_url": "data:image/png;base64,YWJj", "detail": "high"},
                {"type": "input_text", "text": "What is wrong?"},
            ],
        },
        {"role": "assistant", "content": [{"type": "output_text", "text": "nothing"}]},
        {"role": "user", "content": [{"type": "input_text", "text": "Again."}]},
    ]
    assert body == {
        "model": "gpt-4o",
        "max_output_tokens": 50,
        "prompt_cache_key": "0" * 32,
    }
    files = {image.sha256: "file-1"}
    named = response_body(request, "gpt-4o", OPENAI.variant, {}, {"detail", "prompt_cache_key"}, files)
    assert named["input"][1]["content"][0] == {"type": "input_image", "file_id": "file-1"}
    assert named.keys() == {"model", "input"}
