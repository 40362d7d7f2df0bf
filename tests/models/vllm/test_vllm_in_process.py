"""vLLM in this process: requests in one batch, and what becomes of those that fail, wait or are cancelled."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.client.scripted import make_request, picture
from uncanny.errors import ModelUnusableError, RequestRejectedError, TransientError, UsageError
from uncanny.models.base import AnswerSchema, Sampling
from uncanny.models.vllm.in_process import InProcessProvider
from uncanny.settings import settings

FAKE = Path(__file__).with_name("fake_vllm")
SCHEMA = AnswerSchema("objects", {"type": "object"}, {"type": "object", "title": "shared"})


@pytest.fixture(autouse=True)
def fake_vllm(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(FAKE))
    for variable in ("VLLM_ENABLE_V1_MULTIPROCESSING", "VLLM_LOGGING_LEVEL", "VLLM_LOGGING_STREAM"):
        monkeypatch.setenv(variable, "set")
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "vllm"]:
        del sys.modules[name]


@asynccontextmanager
async def opened(model: str = "m", timeout_s: float = 60.0) -> AsyncIterator[InProcessProvider]:
    provider = InProcessProvider(model, timeout_s=timeout_s)
    try:
        yield provider
    finally:
        await provider.close()


def engine() -> Any:
    return sys.modules["vllm"].LLM.made[-1]


async def test_requests_at_the_same_time_are_one_batch() -> None:
    async with opened() as provider:
        asked = [provider.generate(make_request(f"question {number}")) for number in range(16)]
        assert provider.starting() is None
        waiting = asyncio.gather(*asked)
        await asyncio.sleep(0.02)
        assert provider.starting() == "loading the model"
        responses = await waiting
        assert provider.starting() is None
        late = await provider.generate(make_request("late"))
    assert [response.text for response in responses] == [f"question {number}" for number in range(16)]
    assert late.text == "late"
    assert engine().llm_engine.largest == 16
    assert engine().llm_engine.shut
    first = responses[0]
    assert (first.tokens.input, first.tokens.output, first.tokens.cached) == (7, 3, 4)
    assert (first.finish, first.model) == ("stop", "m")


async def test_image_schema_and_sampling_are_given_as_to_a_server() -> None:
    image = picture()
    request = make_request("What?", image, schema=SCHEMA, sampling=Sampling(None, 0.9, 5))
    async with opened() as provider:
        response = await provider.generate(request)
    assert response.finish == "length"
    ((messages, parameters),) = engine().asked
    assert messages[-1]["content"][0]["uuid"] == image.sha256
    assert messages[-1]["content"][0]["image_url"]["url"].startswith("data:image/png;base64,")
    assert parameters.structured_outputs.json == SCHEMA.own
    # What the request leaves open is the model's own default.
    assert (parameters.temperature, parameters.top_p, parameters.top_k) == (0.7, 0.9, 20)
    assert parameters.max_tokens == 5


async def test_a_bad_request_fails_alone() -> None:
    async with opened() as provider:
        good, bad = await asyncio.gather(
            *(provider.generate(make_request(text)) for text in ("good", "too long")), return_exceptions=True
        )
    assert not isinstance(good, BaseException)
    assert isinstance(bad, RequestRejectedError)
    assert "vllm-inproc/m: ValueError: The prompt is longer than" in str(bad)


async def test_a_request_that_takes_too_long_or_is_cancelled_is_aborted() -> None:
    async with opened("hangs", timeout_s=0.1) as provider:
        with pytest.raises(TransientError, match=r"no answer within 0\.1 s"):
            await provider.generate(make_request())
        while not engine().llm_engine.aborted:
            other = asyncio.create_task(provider.generate(make_request()))
            await asyncio.sleep(0.05)
            other.cancel()
    assert engine().llm_engine.aborted[0] == "0"


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("broken", "ValueError: No available memory for the cache blocks"),
        ("dies", "RuntimeError: CUDA error"),
    ],
)
async def test_an_engine_that_fails_ends_the_model_for_all(model: str, why: str) -> None:
    async with opened(model) as provider:
        asked = [provider.generate(make_request(str(number))) for number in range(5)]
        errors = await asyncio.gather(*asked, return_exceptions=True)
        assert all(isinstance(error, ModelUnusableError) and why in str(error) for error in errors)
        with pytest.raises(ModelUnusableError, match=why):
            await provider.generate(make_request())


async def test_options_of_vllm_come_from_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNCANNY_VLLM_ARGS", "--max-model-len 99")
    settings.cache_clear()
    async with opened() as provider:
        await provider.generate(make_request())
    assert engine().options["max_model_len"] == 99
    assert engine().options["structured_outputs_config"] == '{"backend":"guidance"}'
    monkeypatch.setenv("UNCANNY_VLLM_ARGS", "--no-such-option")
    settings.cache_clear()
    async with opened() as provider:
        with pytest.raises(ModelUnusableError, match="UNCANNY_VLLM_ARGS"):
            await provider.generate(make_request())
    settings.cache_clear()


async def test_closing_ends_those_that_wait() -> None:
    async with opened("hangs") as provider:
        waiting = asyncio.create_task(provider.generate(make_request()))
        await asyncio.sleep(0.1)
    with pytest.raises(ModelUnusableError, match="was closed"):
        await waiting


def test_without_vllm_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each != str(FAKE)])
    with pytest.raises(UsageError, match=r"needs vLLM in this Python.*use a server: vllm/m"):
        InProcessProvider("m")
