"""What the vLLM provider relies on, shown on a real server: images, constrained output, caching, errors."""

from __future__ import annotations

import base64
import io
import json
import os
from pathlib import Path
from typing import Any

import httpx2
import psutil  # type: ignore[import-untyped]
import pytest
from PIL import Image

from uncanny.answers.forms import FORMS, ListForm, own_schema, shared_schema
from uncanny.models.vllm.server import VllmServer, prefix_cache_counters, served_models

pytestmark = pytest.mark.vllm

SYSTEM = "You look at one image and report what cannot be real in it. Describe only what is visible. " * 8


def data_url(colour: str) -> str:
    buffer = io.BytesIO()
    Image.new("RGB", (192, 128), colour).save(buffer, "PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def body(model: str, image: str, question: str = "List the objects.", **more: Any) -> dict[str, Any]:
    parts = [{"type": "image_url", "image_url": {"url": image}}, {"type": "text", "text": question}]
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": parts}]
    return {"model": model, "messages": messages, "temperature": 0.3, "max_tokens": 2000, **more}


def constrained(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema, "strict": True}}


async def post(server: VllmServer, request: dict[str, Any]) -> httpx2.Response:
    async with httpx2.AsyncClient(timeout=120, trust_env=False) as client:
        return await client.post(f"{server.base_url}/chat/completions", json=request)


async def ask(server: VllmServer, request: dict[str, Any]) -> dict[str, Any]:
    response = await post(server, request)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def test_the_model_is_listed_under_its_path(tiny_vllm: VllmServer) -> None:
    assert await served_models(tiny_vllm.base_url) == (tiny_vllm.model,)


async def test_a_free_answer_about_an_image_ends_by_itself(tiny_vllm: VllmServer) -> None:
    answer = await ask(tiny_vllm, body(tiny_vllm.model, data_url("navy"), seed=1))
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["choices"][0]["message"]["content"].strip()
    assert answer["usage"]["completion_tokens"] > 0


async def test_the_image_is_seen(tiny_vllm: VllmServer) -> None:
    requests = [body(tiny_vllm.model, data_url(colour), temperature=0) for colour in ("navy", "yellow")]
    texts = [(await ask(tiny_vllm, request))["choices"][0]["message"]["content"] for request in requests]
    assert texts[0] != texts[1]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.key)
async def test_constrained_answers_are_valid_and_complete(tiny_vllm: VllmServer, form: ListForm[Any]) -> None:
    format_ = constrained(form.key, own_schema(form))
    complete = items = 0
    for seed in range(4):
        request = body(tiny_vllm.model, data_url("teal"), seed=seed, response_format=format_)
        choice = (await ask(tiny_vllm, request))["choices"][0]
        if choice["finish_reason"] == "stop":
            complete += 1
            items += len(json.loads(choice["message"]["content"])["answer"][form.key])
    assert complete >= 3
    assert items > 0


async def test_the_schema_shared_by_all_steps_is_taken(tiny_vllm: VllmServer) -> None:
    format_ = constrained("answer", shared_schema())
    request = body(tiny_vllm.model, data_url("teal"), seed=1, response_format=format_)
    answer = await ask(tiny_vllm, request)
    assert answer["choices"][0]["message"]["content"].startswith('{"answer":')


async def test_a_prefix_with_an_image_is_found_in_the_cache(tiny_vllm: VllmServer) -> None:
    before = await prefix_cache_counters(tiny_vllm.base_url)
    usages = [
        (await ask(tiny_vllm, body(tiny_vllm.model, data_url("maroon"), question, max_tokens=4)))["usage"]
        for question in ("What is wrong with the hand?", "Does the shadow fall the right way?")
    ]
    after = await prefix_cache_counters(tiny_vllm.base_url)
    first, second = ((usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0 for usage in usages)
    assert 0 < usages[0]["prompt_tokens_details"]["multimodal_tokens"]["image"] < usages[0]["prompt_tokens"]
    assert second > first
    assert second > usages[1]["prompt_tokens"] // 2
    assert before is not None
    assert after is not None
    assert after.hits - before.hits >= second
    assert after.queries - before.queries >= sum(usage["prompt_tokens"] for usage in usages)


async def test_an_unknown_model_is_not_found(tiny_vllm: VllmServer) -> None:
    response = await post(tiny_vllm, body("no-such-model", data_url("navy")))
    assert response.status_code == 404
    assert "no-such-model" in response.text


async def test_a_broken_image_is_a_bad_request(tiny_vllm: VllmServer) -> None:
    broken = "data:image/png;base64," + base64.b64encode(b"no image at all").decode()
    assert (await post(tiny_vllm, body(tiny_vllm.model, broken))).status_code == 400


async def test_a_prompt_that_is_too_long_is_a_bad_request(tiny_vllm: VllmServer) -> None:
    response = await post(tiny_vllm, body(tiny_vllm.model, data_url("navy"), "object " * 20_000))
    assert response.status_code == 400


@pytest.mark.slow
async def test_stopping_leaves_no_process_behind(
    tiny_model: Path, vllm_command: tuple[str, ...], tmp_path: Path
) -> None:
    log_path = tmp_path / "vllm.log"
    async with VllmServer(str(tiny_model), command=vllm_command, log_path=log_path) as server:
        assert server.group is not None
        main = psutil.Process(server.group)
        started = [main, *main.children(recursive=True)]
        assert len(started) >= 2
        assert {os.getpgid(process.pid) for process in started} == {server.group}
    assert [process for process in started if process.is_running()] == []
