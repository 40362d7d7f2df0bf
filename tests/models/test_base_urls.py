"""Addresses as users write them: without `/v1`, with it where calls add it, with the whole path of a call."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request as WerkzeugRequest
from werkzeug import Response

from uncanny.errors import ModelUnusableError, TransientError
from uncanny.models.anthropic import AnthropicProvider
from uncanny.models.base import Message, ModelRequest, Sampling
from uncanny.models.openai import CompatibleProvider, OpenAIProvider, VLLMProvider
from uncanny.models.openai_chat import ChatModel

KEY = "sk-0123456789abcdefSECRET"
REQUEST = ModelRequest((Message("user", ("?",)),), Sampling())
ROOT, V1 = "/chat/completions", "/v1/chat/completions"

MAKERS: dict[str, Callable[[str], ChatModel]] = {
    "openai": lambda url: OpenAIProvider("m", base_url=url, api_key=KEY),
    "vllm": lambda url: VLLMProvider("m", base_url=url, api_key=KEY),
    "openai-compatible": lambda url: CompatibleProvider("m", base_url=url, api_key=KEY),
}
every_provider = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def as_json(content: object, status: int = 200) -> Response:
    return Response(json.dumps(content), status, content_type="application/json")


CHAT = as_json({"choices": [{"message": {"content": "a cup"}, "finish_reason": "stop"}]})
MESSAGE = as_json({"type": "message", "content": [{"type": "text", "text": "a cup"}]})
NOT_FOUND = as_json({"detail": "Not Found"}, 404)
NOTHING = {
    "FastAPI": NOT_FOUND,
    "a page": Response("<html><title>404 Not Found</title></html>", 404),
    "static files": Response("<html><title>405 Not Allowed</title></html>", 405),
    "LM Studio": as_json({"error": "Unexpected endpoint or method. (POST /chat/completions)"}),
    "a web page": Response("<!doctype html><html><title>Chat</title></html>", 200),
}


def serve(httpserver: HTTPServer, places: dict[str, Response], otherwise: Response = NOT_FOUND) -> list[str]:
    """Answers by path; returns the paths of the requests."""
    paths: list[str] = []

    def answer(request: WerkzeugRequest) -> Response:
        paths.append(request.path)
        return places.get(request.path, otherwise)

    httpserver.expect_request(re.compile(".*")).respond_with_handler(answer)
    return paths


@every_provider
@pytest.mark.parametrize("nothing", NOTHING.values(), ids=NOTHING)
@pytest.mark.parametrize("base", ["", "/"])
async def test_without_v1_it_is_tried_with_it_and_the_error_names_both(
    httpserver: HTTPServer, make: Callable[[str], ChatModel], nothing: Response, base: str
) -> None:
    paths = serve(httpserver, {V1: CHAT}, nothing)
    provider = make(httpserver.url_for("").rstrip("/") + base)
    endpoint = provider.endpoint
    for _ in range(2):
        assert (await provider.generate(REQUEST)).text == "a cup"
    await provider.close()
    assert paths == [ROOT, V1, V1]
    assert provider.endpoint == endpoint, "answers are kept under it"
    (notice,) = provider.notices
    assert f"{httpserver.url_for('/v1/')} was used" in notice


async def test_many_requests_at_once_all_find_the_path(httpserver: HTTPServer) -> None:
    serve(httpserver, {"/api/v1/chat/completions": CHAT})
    provider = MAKERS["openai-compatible"](httpserver.url_for("/api"))
    responses = await asyncio.gather(*(provider.generate(REQUEST) for _ in range(40)))
    await provider.close()
    assert [response.text for response in responses] == ["a cup"] * 40
    assert len(provider.notices) == 1


@every_provider
async def test_where_neither_is_there_both_are_named(
    httpserver: HTTPServer, make: Callable[[str], ChatModel]
) -> None:
    serve(httpserver, {})
    provider = make(httpserver.url_for("/"))
    with pytest.raises(ModelUnusableError) as caught:
        await provider.generate(REQUEST)
    await provider.close()
    message = str(caught.value)
    assert "HTTP 404: Not Found" in message
    assert f"{httpserver.url_for('/v1/')}, tried as well" in message
    assert f"the address {httpserver.url_for('/')}" in message
    assert not provider.notices


@pytest.mark.parametrize(
    ("response", "word"),
    [
        (as_json({"error": {"message": "wrong key"}}, 401), "HTTP 401: wrong key"),
        (
            as_json({"message": "The model `m` does not exist.", "type": "NotFoundError"}, 404),
            "`m` does not exist",
        ),
    ],
)
async def test_the_error_is_that_of_the_right_path(
    httpserver: HTTPServer, response: Response, word: str
) -> None:
    serve(httpserver, {V1: response})
    provider = MAKERS["openai-compatible"](httpserver.url_for("/"))
    with pytest.raises(ModelUnusableError, match=word):
        await provider.generate(REQUEST)
    await provider.close()
    assert len(provider.notices) == 1


async def test_a_server_that_is_still_loading_decides_nothing(httpserver: HTTPServer) -> None:
    paths = serve(httpserver, places := {V1: as_json({"error": "loading"}, 503)})
    provider = MAKERS["openai-compatible"](httpserver.url_for("/"))
    with pytest.raises(TransientError, match="loading"):
        await provider.generate(REQUEST)
    places[V1] = CHAT
    assert (await provider.generate(REQUEST)).text == "a cup"
    await provider.close()
    assert paths == [ROOT, V1, ROOT, V1]


@pytest.mark.parametrize(
    ("base", "place"),
    [
        ("/", ROOT),
        ("/v1", V1),
        ("/v1beta/openai", "/v1beta/openai/chat/completions"),
        ("/v1/chat/completions", V1),
        ("/chat/completions/", ROOT),
    ],
)
@every_provider
async def test_an_address_that_works_is_left_alone(
    httpserver: HTTPServer, make: Callable[[str], ChatModel], base: str, place: str
) -> None:
    paths = serve(httpserver, {place: CHAT})
    provider = make(httpserver.url_for(base))
    assert (await provider.generate(REQUEST)).text == "a cup"
    await provider.close()
    assert paths == [place]
    pasted = base.rstrip("/").endswith("/chat/completions")
    assert len(provider.notices) == pasted
    assert all("calls add their path" in notice for notice in provider.notices)


async def test_a_path_with_a_version_is_not_doubted(httpserver: HTTPServer) -> None:
    paths = serve(httpserver, {})
    provider = MAKERS["openai-compatible"](httpserver.url_for("/v2"))
    with pytest.raises(ModelUnusableError, match="404"):
        await provider.generate(REQUEST)
    await provider.close()
    assert paths == ["/v2/chat/completions"]


async def test_once_answered_an_answer_that_is_none_is_only_that(httpserver: HTTPServer) -> None:
    paths = serve(httpserver, places := {ROOT: CHAT})
    provider = MAKERS["openai-compatible"](httpserver.url_for("/"))
    await provider.generate(REQUEST)
    places[ROOT] = as_json({"choices": []})
    with pytest.raises(TransientError):
        await provider.generate(REQUEST)
    await provider.close()
    assert paths == [ROOT, ROOT]


@pytest.mark.parametrize("base", ["", "/", "/v1", "/v1/", "/v1/messages"])
async def test_anthropic_with_v1_is_anthropic_without(httpserver: HTTPServer, base: str) -> None:
    paths = serve(httpserver, {"/v1/messages": MESSAGE})
    provider = AnthropicProvider("m", base_url=httpserver.url_for("").rstrip("/") + base, api_key=KEY)
    assert (await provider.generate(REQUEST)).text == "a cup"
    assert provider.endpoint == httpserver.url_for("").rstrip("/")
    await provider.close()
    assert paths == ["/v1/messages"]
