"""Each preset against a server that behaves as its provider documents, through the SDK and real HTTP.

The server's ways are written down apart from the presets, in `demo/server/dialects.py`, and it refuses what
its provider does not name: an answer to the first request means that nothing was learned from an error.
"""

from __future__ import annotations

import base64
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from PIL import Image
from pytest_httpserver import HTTPServer

from tests.runs.e2e import Run, check_no_traceback, pictures, serving, uncanny_here
from uncanny.demo.server.app import FakeServerOptions, parse_faults, running
from uncanny.demo.server.dialects import DIALECTS, REASONING
from uncanny.errors import ModelUnusableError, RequestRejectedError, TransientError
from uncanny.models.base import AnswerSchema, Message, ModelProvider, ModelRequest, Sampling, encode_image
from uncanny.models.openai import CompatibleProvider
from uncanny.models.openai_chat import ChatModel, chat_body
from uncanny.models.presets import PRESETS
from uncanny.models.registry import Access, ModelId, open_model

KEY = "sk-0123456789abcdefSECRET"
SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}
# Where usage has no cached tokens at all, they are not reported and never 0.
UNREPORTED = {"ollama", "lmstudio", "llamacpp", "sglang"}
every_preset = pytest.mark.parametrize("name", PRESETS)


def png(side: int = 8) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (side, side), (200, 30, 30)).save(file, "PNG")
    return file.getvalue()


def request(images: int = 1, data: bytes | None = None) -> ModelRequest:
    data = png() if data is None else data
    image = encode_image(sha256="0" * 64, media_type="image/png", width=8, height=8, data=data)
    turns = (
        Message("system", ("You look at pictures.",)),
        Message("system", ("You answer yes or no.",)),
        Message("user", (*[image] * images, "Is it real? Answer yes or no."), shared=images),
    )
    return ModelRequest(turns, Sampling(0.3, 0.95, 500), AnswerSchema("answer", SCHEMA, SCHEMA))


@asynccontextmanager
async def asking(
    name: str, monkeypatch: pytest.MonkeyPatch, *, key: str = KEY, model: str = "any", faults: str = ""
) -> AsyncIterator[ModelProvider]:
    """A model of the preset `name` at a server that behaves as its provider."""
    monkeypatch.setenv(PRESETS[name].key_variables[0], key)
    async with running(FakeServerOptions(provider=name, faults=parse_faults(faults))) as url:
        opened = open_model(ModelId(name, model), Access(url + DIALECTS[name].path, 20.0))
        try:
            yield opened
        finally:
            await opened.close()


def test_each_preset_has_a_documented_way() -> None:
    assert DIALECTS.keys() == PRESETS.keys()


@every_preset
async def test_the_first_request_is_one_that_the_provider_takes(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with asking(name, monkeypatch) as model:
        responses = [await model.generate(request()) for _ in range(2)]
        assert isinstance(model, ChatModel)
        assert (model.left_out, model.notices) == (frozenset(), [])
    first, second = responses
    assert first.finish == "stop"
    assert first.text
    assert first.tokens.input
    assert first.tokens.output
    assert (first.tokens.output > REASONING) == (name in {"gemini", "xai"}), "reasoning is billed as output"
    if name in UNREPORTED:
        assert (first.tokens.cached, second.tokens.cached) == (None, None)
    else:
        assert first.tokens.cached == 0
        assert second.tokens.cached
    assert first.cost_usd == (0.0125 if name == "openrouter" else None)


@every_preset
async def test_moderation_is_a_refusal_and_an_overload_is_tried_again(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with asking(name, monkeypatch, faults="blocked=1") as model:
        response = await model.generate(request())
    assert (response.text, response.finish) == ("", "refusal")
    assert response.reason
    async with asking(name, monkeypatch, faults="overloaded=1") as model:
        with pytest.raises(TransientError) as caught:
            await model.generate(request())
    assert caught.value.overloaded
    if name == "gemini":
        assert caught.value.retry_after == 1.0


@every_preset
async def test_errors_say_what_the_server_says_and_what_to_do(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with asking(name, monkeypatch, model="unknown-model") as model:
        with pytest.raises(ModelUnusableError, match="unknown-model") as unknown:
            await model.generate(request())
    served = f"That server has {name}/fake-model"
    assert (served in str(unknown.value)) == PRESETS[name].local
    if DIALECTS[name].key is not None:
        async with asking(name, monkeypatch, key="wrong-key") as model:
            with pytest.raises(ModelUnusableError, match=f"Set {PRESETS[name].key_variables[0]}") as wrong:
                await model.generate(request())
        assert "API key" in wrong.value.message
        assert "wrong-key" not in str(wrong.value)


@pytest.mark.parametrize(
    ("name", "asked", "words"),
    [
        ("groq", request(6), "takes at most 5 images per request, and this one has 6"),
        ("groq", request(1, b"\0" * 3_100_000), "takes at most 4,000,000 bytes per request"),
        ("mistral", request(9), "takes at most 8 images per request"),
    ],
)
async def test_what_is_too_much_is_refused_before_it_is_sent(
    name: str, asked: ModelRequest, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with asking(name, monkeypatch) as model:
        with pytest.raises(RequestRejectedError, match=words):
            await model.generate(asked)


@pytest.mark.parametrize("model", ["moonshot/kimi-k2.5", "azure/gpt-5"])
async def test_models_that_fix_sampling_are_sent_none(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    provider, _, name = model.partition("/")
    async with asking(provider, monkeypatch, model=name) as opened:
        assert opened.sent(Sampling(0.3, 0.95, 500)) == {"max_completion_tokens": 500}
        assert (await opened.generate(request())).finish == "stop"


async def test_without_a_preset_the_same_is_learned_from_errors() -> None:
    async with running(FakeServerOptions(provider="moonshot")) as url:
        model = CompatibleProvider("kimi-k2.5", base_url=f"{url}/v1", api_key=KEY)
        assert (await model.generate(request())).finish == "stop"
        assert model.left_out == {"detail", "temperature", "top_p"}
        await model.close()


def test_prefixes_are_marked_for_the_models_that_keep_no_others() -> None:
    variant = PRESETS["openrouter"].variant

    def parts(model: str) -> list[dict[str, Any]]:
        body = orjson.loads(chat_body(request(), model, variant, {}, frozenset()))
        assert [turn["role"] for turn in body["messages"]] == ["system", "user"]
        content: list[dict[str, Any]] = body["messages"][1]["content"]
        return content

    assert ["cache_control" in part for part in parts("anthropic/claude-sonnet-4.5")] == [True, False]
    assert not any("cache_control" in part for part in parts("qwen/qwen3-vl-235b-a22b-instruct"))


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({"cost": 0.02, "is_byok": False, "cost_details": {"upstream_inference_cost": None}}, 0.02),
        ({"cost": 0.02, "is_byok": False, "cost_details": {"upstream_inference_cost": 0.02}}, 0.02),
        # The user's own key at the provider: the fee and what the provider bills.
        ({"cost": 0.001, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.25}}, 0.251),
        ({"cost": 0, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.25}}, 0.25),
        # A part of the cost is none: prices say it.
        ({"cost": 0, "is_byok": True, "cost_details": {"upstream_inference_cost": None}}, None),
        ({"cost": 0.001, "is_byok": True}, None),
    ],
)
async def test_the_cost_has_what_the_users_own_provider_bills(
    httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch, usage: dict[str, Any], cost: float | None
) -> None:
    choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": "{}"}}
    usage = {"prompt_tokens": 10, "completion_tokens": 2, **usage}
    httpserver.expect_request("/api/v1/chat/completions").respond_with_json(
        {"id": "a", "model": "openai/gpt-4o", "choices": [choice], "usage": usage}
    )
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    model = open_model(ModelId("openrouter", "openai/gpt-4o"), Access(httpserver.url_for("/api/v1"), 20.0))
    assert (await model.generate(request())).cost_usd == cost
    await model.close()


async def test_llama_cpp_without_its_projector_is_not_asked_again(
    httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = {"code": 500, "message": "image input is not supported by this server", "type": "server_error"}
    httpserver.expect_request("/v1/chat/completions").respond_with_json({"error": error}, status=500)
    monkeypatch.delenv("LLAMA_API_KEY", raising=False)
    model = open_model(ModelId("llamacpp", "any"), Access(httpserver.url_for("/v1"), 20.0))
    with pytest.raises(ModelUnusableError, match="Start llama-server with --mmproj"):
        await model.generate(request())
    await model.close()


def webp_and_gif(folder: Path) -> Path:
    pictures(folder, 1, size=(64, 48))
    with Image.open(folder / "p00.png") as picture:
        picture.save(folder / "p01.webp", lossless=True)
        picture.transpose(Image.Transpose.ROTATE_90).save(folder / "p02.gif")
    return folder


def annotated(name: str, tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    images = webp_and_gif(tmp_path / "in")
    with serving(provider=name, objects=1) as server:
        url = server.url + DIALECTS[name].path
        env = {PRESETS[name].key_variables[0]: KEY}
        asked = ("annotate", images, "-m", f"{name}/any", "--base-url", url, "-o", run.path)
        done = uncanny_here(*asked, env=env)
    check_no_traceback(done)
    assert done.code == 0, done.err
    assert "Warning" not in done.told
    assert run.statuses() == {"ok": 3}
    calls = run.calls()
    assert {call["outcome"] for call in calls} == {"answered"}
    assert all((call["cached_tokens"] is None) == (name in UNREPORTED) for call in calls)
    assert all(call["cost_usd"] == (0.0125 if name == "openrouter" else None) for call in calls)
    hidden = (KEY.encode(), base64.b64encode(KEY.encode()))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if any(key in path.read_bytes() for key in hidden)]
    assert KEY not in done.out + done.err


def test_a_run_converts_what_the_provider_does_not_take(tmp_path: Path) -> None:
    annotated("xai", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PRESETS if name != "xai"])
def test_every_preset_annotates(name: str, tmp_path: Path) -> None:
    annotated(name, tmp_path)
