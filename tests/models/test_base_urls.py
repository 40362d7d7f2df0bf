"""Addresses as users write them: without `/v1`, with it where calls add it, with the whole path of a call."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request as Asked
from werkzeug import Response

from uncanny.errors import ModelUnusableError, TransientError
from uncanny.models.anthropic import AnthropicProvider
from uncanny.models.base import Message, ModelRequest, Sampling
from uncanny.models.openai import OpenAIProvider
from uncanny.models.openai_chat import ChatModel
from uncanny.models.openai_compatible import CompatibleProvider
from uncanny.models.vllm.model import VLLMProvider

KEY = "sk-0123456789abcdefSECRET"
QUESTION = ModelRequest((Message("user", ("?",)),), Sampling())
ROOT, V1 = "/chat/completions", "/v1/chat/completions"

MAKERS: dict[str, Callable[[str], ChatModel]] = {
    "openai": lambda url: OpenAIProvider("m", base_url=url, api_key=KEY),
    "vllm": lambda url: VLLMProvider("m", base_url=url, api_key=KEY),
    "openai-compatible": lambda url: CompatibleProvider("m", base_url=url, api_key=KEY),
}
every_provider = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def said(content: object, status: int = 200) -> Response:
    return Response(json.dumps(content), status, content_type="application/json")


CHAT = said({"choices": [{"message": {"content": "a cup"}, "finish_reason": "stop"}]})
MESSAGE = said({"type": "message", "content": [{"type": "text", "text": "a cup"}]})
NOT_FOUND = said({"detail": "Not Found"}, 404)
NOTHING = {
    "FastAPI": NOT_FOUND,
    "a page": Response("<html><title>404 Not Found</title></html>", 404),
    "static files": Response("<html><title>405 Not Allowed</title></html>", 405),
    "LM Studio": said({"error": "Unexpected endpoint or method. (POST /chat/completions)"}),
    "a web page": Response("<!doctype html><html><title>Chat</title></html>", 200),
}


def serve(httpserver: HTTPServer, places: dict[str, Response], otherwise: Response = NOT_FOUND) -> list[str]:
    """Answers by path; gives the paths as they are asked for."""
    asked: list[str] = []

    def answer(request: Asked) -> Response:
        asked.append(request.path)
        return places.get(request.path, otherwise)

    httpserver.expect_request(re.compile(".*")).respond_with_handler(answer)
    return asked


@every_provider
@pytest.mark.parametrize("nothing", NOTHING.values(), ids=NOTHING)
@pytest.mark.parametrize("base", ["", "/"])
async def test_without_v1_it_is_tried_with_it_and_said_so(
    httpserver: HTTPServer, make: Callable[[str], ChatModel], nothing: Response, base: str
) -> None:
    asked = serve(httpserver, {V1: CHAT}, nothing)
    provider = make(httpserver.url_for("").rstrip("/") + base)
    endpoint = provider.endpoint
    for _ in range(2):
        assert (await provider.generate(QUESTION)).text == "a cup"
    await provider.close()
    assert asked == [ROOT, V1, V1]
    assert provider.endpoint == endpoint, "answers are kept under it"
    (notice,) = provider.notices
    assert f"{httpserver.url_for('/v1/')} was used" in notice


async def test_many_questions_at_once_all_find_the_place(httpserver: HTTPServer) -> None:
    serve(httpserver, {"/api/v1/chat/completions": CHAT})
    provider = MAKERS["openai-compatible"](httpserver.url_for("/api"))
    replies = await asyncio.gather(*(provider.generate(QUESTION) for _ in range(40)))
    await provider.close()
    assert [reply.text for reply in replies] == ["a cup"] * 40
    assert len(provider.notices) == 1


@every_provider
async def test_where_neither_is_there_both_are_named(
    httpserver: HTTPServer, make: Callable[[str], ChatModel]
) -> None:
    serve(httpserver, {})
    provider = make(httpserver.url_for("/"))
    with pytest.raises(ModelUnusableError) as caught:
        await provider.generate(QUESTION)
    await provider.close()
    told = str(caught.value)
    assert "HTTP 404: Not Found" in told
    assert f"{httpserver.url_for('/v1/')}, tried as well" in told
    assert f"the address {httpserver.url_for('/')}" in told
    assert not provider.notices


@pytest.mark.parametrize(
    ("response", "word"),
    [
        (said({"error": {"message": "wrong key"}}, 401), "HTTP 401: wrong key"),
        (
            said({"message": "The model `m` does not exist.", "type": "NotFoundError"}, 404),
            "`m` does not exist",
        ),
    ],
)
async def test_what_the_right_place_objects_to_is_told(
    httpserver: HTTPServer, response: Response, word: str
) -> None:
    serve(httpserver, {V1: response})
    provider = MAKERS["openai-compatible"](httpserver.url_for("/"))
    with pytest.raises(ModelUnusableError, match=word):
        await provider.generate(QUESTION)
    await provider.close()
    assert len(provider.notices) == 1


async def test_a_server_that_is_still_loading_decides_nothing(httpserver: HTTPServer) -> None:
    asked = serve(httpserver, places := {V1: said({"error": "loading"}, 503)})
    provider = MAKERS["openai-compatible"](httpserver.url_for("/"))
    with pytest.raises(TransientError, match="loading"):
        await provider.generate(QUESTION)
    places[V1] = CHAT
    assert (await provider.generate(QUESTION)).text == "a cup"
    await provider.close()
    assert asked == [ROOT, V1, ROOT, V1]


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
    asked = serve(httpserver, {place: CHAT})
    provider = make(httpserver.url_for(base))
    assert (await provider.generate(QUESTION)).text == "a cup"
    await provider.close()
    assert asked == [place]
    assert not provider.notices


async def test_a_path_with_a_version_is_not_doubted(httpserver: HTTPServer) -> None:
    asked = serve(httpserver, {})
    provider = MAKERS["openai-compatible"](httpserver.url_for("/v2"))
    with pytest.raises(ModelUnusableError, match="404"):
        await provider.generate(QUESTION)
    await provider.close()
    assert asked == ["/v2/chat/completions"]


async def test_once_answered_an_answer_that_is_none_is_only_that(httpserver: HTTPServer) -> None:
    asked = serve(httpserver, places := {ROOT: CHAT})
    provider = MAKERS["openai-compatible"](httpserver.url_for("/"))
    await provider.generate(QUESTION)
    places[ROOT] = said({"choices": []})
    with pytest.raises(TransientError):
        await provider.generate(QUESTION)
    await provider.close()
    assert asked == [ROOT, ROOT]


@pytest.mark.parametrize("base", ["", "/", "/v1", "/v1/", "/v1/messages"])
async def test_anthropic_with_v1_is_anthropic_without(httpserver: HTTPServer, base: str) -> None:
    asked = serve(httpserver, {"/v1/messages": MESSAGE})
    provider = AnthropicProvider("m", base_url=httpserver.url_for("").rstrip("/") + base, api_key=KEY)
    assert (await provider.generate(QUESTION)).text == "a cup"
    assert provider.endpoint == httpserver.url_for("").rstrip("/")
    await provider.close()
    assert asked == ["/v1/messages"]
