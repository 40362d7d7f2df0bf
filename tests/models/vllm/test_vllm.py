"""vLLM over real HTTP: what is sent and what stays at home."""

from __future__ import annotations

import hashlib
import json
import re

import pytest
from pytest_httpserver import HTTPServer

from uncanny.errors import ModelUnusableError
from uncanny.models.base import AnswerSchema, Message, ModelRequest, Sampling, Tokens, encode_image
from uncanny.models.openai import VLLMProvider

PATH = "/v1/chat/completions"
DATA = b"pixels"
IMAGE = encode_image(
    sha256=hashlib.sha256(DATA).hexdigest(), media_type="image/webp", width=4, height=3, data=DATA
)
REQUEST = ModelRequest(
    messages=(Message("user", (IMAGE, "What is wrong?"), shared=1),),
    sampling=Sampling(0.3, 0.95, 2_000),
    schema=AnswerSchema("objects", {"type": "object"}, {"type": "object", "title": "shared"}),
)
COMPLETION = {
    "id": "chatcmpl-1",
    "model": "Qwen/Qwen3-VL-8B-Instruct",
    "choices": [{"index": 0, "message": {"content": "a cup", "refusal": None}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1100, "completion_tokens": 3, "prompt_tokens_details": None},
}


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai-secret-0123456789")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-secret")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "sk-admin-secret-0123456789")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://elsewhere.example/secret")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Team: team-secret\nAuthorization: Bearer custom-secret")
    for name in ("VLLM_API_KEY", "VLLM_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


async def test_a_request_has_the_digest_and_the_steps_own_schema(httpserver: HTTPServer) -> None:
    httpserver.expect_request(PATH).respond_with_json(COMPLETION)
    provider = VLLMProvider("Qwen/Qwen3-VL-8B-Instruct", base_url=httpserver.url_for("/v1"))
    response = await provider.generate(REQUEST)
    await provider.close()
    assert response.text == "a cup"
    assert response.tokens == Tokens(1100, 3)
    body = json.loads(httpserver.log[0][0].get_data())
    image, text = body.pop("messages")[0]["content"]
    assert image == {
        "type": "image_url",
        "image_url": {"url": "data:image/webp;base64,cGl4ZWxz"},
        "uuid": IMAGE.sha256,
    }
    assert text == {"type": "text", "text": "What is wrong?"}
    assert body == {
        "model": "Qwen/Qwen3-VL-8B-Instruct",
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "objects", "strict": True, "schema": {"type": "object"}},
        },
        "temperature": 0.3,
        "top_p": 0.95,
        "max_tokens": 2000,
    }


async def test_nothing_of_an_openai_account_is_sent(httpserver: HTTPServer) -> None:
    httpserver.expect_request(PATH).respond_with_json(COMPLETION)
    provider = VLLMProvider("m", base_url=httpserver.url_for("/v1"))
    await provider.generate(REQUEST)
    await provider.close()
    headers = httpserver.log[0][0].headers
    assert headers["authorization"] == "Bearer none"
    assert "secret" not in str(headers)


async def test_its_own_key_is_sent_where_there_is_one(
    httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "token-abc")
    httpserver.expect_request(PATH).respond_with_json({"error": "Unauthorized: token-abc"}, status=401)
    provider = VLLMProvider("m", base_url=httpserver.url_for("/v1"))
    with pytest.raises(ModelUnusableError, match=r"Unauthorized: \[key\]\. Set VLLM_API_KEY"):
        await provider.generate(REQUEST)
    await provider.close()
    assert httpserver.log[0][0].headers["authorization"] == "Bearer token-abc"


async def test_for_an_unknown_model_the_error_names_those_there_are(httpserver: HTTPServer) -> None:
    httpserver.expect_request(PATH).respond_with_json({"error": {"message": "no model <path>"}}, status=404)
    httpserver.expect_request("/v1/models").respond_with_json({"data": [{"id": "/models/qwen"}]})
    provider = VLLMProvider("m", base_url=httpserver.url_for("/v1"))
    with pytest.raises(ModelUnusableError, match=r"no model <path>\. That server has vllm//models/qwen"):
        await provider.generate(REQUEST)
    await provider.close()


async def test_a_404_of_another_kind_of_server_stays_as_it_is(httpserver: HTTPServer) -> None:
    provider = VLLMProvider("m", base_url=httpserver.url_for("/elsewhere"))
    httpserver.expect_request(re.compile("/elsewhere/.*")).respond_with_data("nothing here", status=404)
    with pytest.raises(ModelUnusableError, match=r"HTTP 404: nothing here .*\. Check the model name 'm'"):
        await provider.generate(REQUEST)
    await provider.close()


def test_where_the_server_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert VLLMProvider("m").endpoint == "http://127.0.0.1:8000/v1/"
    monkeypatch.setenv("VLLM_BASE_URL", "http://gpu:9000/v1")
    assert VLLMProvider("m").endpoint == "http://gpu:9000/v1/"
    assert VLLMProvider("m").capabilities.fixed_concurrency
