"""The fake server's two protocols, spoken by hand over plain HTTP."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
from collections.abc import AsyncIterator
from typing import Any

import httpx
import orjson
import pytest
from PIL import Image

from uncanny.demo.model import DemoRequest, SchemaForm, answer
from uncanny.demo.recognition import Turn
from uncanny.demo.server.app import FakeServerOptions, running
from uncanny.errors import UsageError
from uncanny.models.tokens import image_tokens
from uncanny.prompts import prompt_set

IMAGE = b"no real image, and nobody looks"
ENCODED = base64.b64encode(IMAGE).decode()
SHA256 = hashlib.sha256(IMAGE).hexdigest()
OBJECT = '{"name": "synthetic object 2", "description": "any"}'
LIST = {"type": "array", "items": {"type": "object"}}
SCHEMAS: dict[SchemaForm, Any] = {
    "none": None,
    "own": {"type": "object", "properties": {"objects": LIST}},
    "shared": {"type": "object", "properties": {"answer": {"anyOf": [{"type": "object"}]}}},
}
LOOK = prompt_set("annotate")["attribute_look"].fill(object=OBJECT)
VERIFY = prompt_set("annotate")["attribute_verify"].fill(object=OBJECT, notes="none")
MERGE = prompt_set("annotate")["integrate_merge"].fill(object=OBJECT, attributes="[]", relations="[]")
LISTING = prompt_set("annotate")["integrate_list"].fill(object=OBJECT, notes="none")
PERCEIVE = prompt_set("annotate")["perceive_1"].fill(draft="1", drafts="3")


def openai_body(
    text: str, form: SchemaForm = "none", *, image: str | None = ENCODED, **more: Any
) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": text}]
    if image is not None:
        content.insert(0, {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{image}"}})
    messages = [{"role": "system", "content": "Look."}, {"role": "user", "content": content}]
    if schema := SCHEMAS[form]:
        more["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    return {"model": "demo", "messages": messages, **more}


def anthropic_body(
    text: str, form: SchemaForm = "none", *, image: str | None = ENCODED, **more: Any
) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": text}]
    if image is not None:
        source = {"type": "base64", "media_type": "image/png", "data": image}
        content.insert(0, {"type": "image", "source": source, "cache_control": {"type": "ephemeral"}})
    if schema := SCHEMAS[form]:
        more["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    messages = [{"role": "user", "content": content}]
    return {"model": "demo", "max_tokens": 2000, "system": "Look.", "messages": messages, **more}


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with running(FakeServerOptions()) as url, httpx.AsyncClient(base_url=url) as client:
        yield client


async def openai_text(client: httpx.AsyncClient, body: dict[str, Any]) -> str:
    reply = await client.post("/v1/chat/completions", json=body)
    assert reply.status_code == 200, reply.text
    return str(reply.json()["choices"][0]["message"]["content"])


async def anthropic_text(client: httpx.AsyncClient, body: dict[str, Any]) -> str:
    reply = await client.post("/v1/messages", json=body)
    assert reply.status_code == 200, reply.text
    return str(reply.json()["content"][0]["text"])


@pytest.mark.parametrize("form", ["none", "own", "shared"])
@pytest.mark.parametrize("text", [LOOK, VERIFY, PERCEIVE])
async def test_both_protocols_say_what_the_model_says_in_process(
    client: httpx.AsyncClient, text: str, form: SchemaForm
) -> None:
    request = DemoRequest((Turn("system", "Look."), Turn("user", text)), (SHA256,), form)
    expected = answer(request, synthetic_objects=8).text
    assert await openai_text(client, openai_body(text, form)) == expected
    assert await anthropic_text(client, anthropic_body(text, form)) == expected


async def test_a_repair_question_gets_the_same_answer(client: httpx.AsyncClient) -> None:
    body = openai_body(VERIFY, "own")
    first = await openai_text(client, body)
    repair = prompt_set("annotate")["repair"].fill(problem="a field is missing")
    body["messages"] += [{"role": "assistant", "content": "{}"}, {"role": "user", "content": repair}]
    assert await openai_text(client, body) == first


async def test_vllm_constraints_count_as_a_schema(client: httpx.AsyncClient) -> None:
    body = openai_body(PERCEIVE, structured_outputs={"json": SCHEMAS["shared"]})
    assert len(orjson.loads(await openai_text(client, body))["answer"]["objects"]) == 8


async def test_an_answer_over_the_output_limit_is_cut_off(client: httpx.AsyncClient) -> None:
    reply = await client.post("/v1/chat/completions", json=openai_body(LOOK, max_completion_tokens=5))
    choice = reply.json()["choices"][0]
    assert (choice["finish_reason"], len(choice["message"]["content"])) == ("length", 20)
    reply = await client.post("/v1/messages", json=anthropic_body(LOOK) | {"max_tokens": 5})
    assert reply.json()["stop_reason"] == "max_tokens"


async def test_stats_are_exact(client: httpx.AsyncClient) -> None:
    other = base64.b64encode(b"another").decode()
    for body in (
        openai_body(LOOK),
        openai_body(PERCEIVE),
        openai_body(LOOK, "own"),
        openai_body(LOOK, image=other),
        openai_body(LOOK) | {"model": "other"},
        openai_body(MERGE, image=None),
        openai_body(LISTING, image=None),
    ):
        await openai_text(client, body)
    await anthropic_text(client, anthropic_body(LOOK))
    await client.get("/v1/models")
    stats = await client.get("/stats")
    assert stats.json() == {
        "requests": 8,
        "unique_prefixes": 6,
        "max_concurrent": 1,
        "too_many": 0,
        "faults": {},
        "batches": 0,
        "batch_lines": 0,
        "batch_lines_answered_again": 0,
        "uploads": 0,
        "upload_bytes": 0,
        "files": 0,
        "background": 0,
    }


async def test_counts_requests_side_by_side() -> None:
    options = FakeServerOptions(latency_ms=300)
    async with running(options) as url, httpx.AsyncClient(base_url=url) as client:
        await asyncio.gather(*(openai_text(client, openai_body(LOOK)) for _ in range(7)))
        assert (await client.get("/stats")).json()["max_concurrent"] == 7


async def test_openai_usage_reports_a_prefix_once_it_was_answered(client: httpx.AsyncClient) -> None:
    cached = []
    for text in (LOOK, VERIFY):
        reply = await client.post("/v1/chat/completions", json=openai_body(text))
        usage = reply.json()["usage"]
        assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
        cached.append(usage["prompt_tokens_details"]["cached_tokens"])
    assert cached == [0, 765 + 2]


async def test_anthropic_usage_writes_then_reads_where_the_client_asks_for_it(
    client: httpx.AsyncClient,
) -> None:
    counts = []
    body = anthropic_body(LOOK, system="Look." * 400)
    for _ in range(2):
        usage = (await client.post("/v1/messages", json=body)).json()["usage"]
        counts.append((usage["cache_creation_input_tokens"], usage["cache_read_input_tokens"]))
        assert usage["input_tokens"] == -(-len(LOOK) // 4)
    assert counts == [(765 + 500, 0), (0, 765 + 500)]
    del body["messages"][0]["content"][0]["cache_control"]
    usage = (await client.post("/v1/messages", json=body)).json()["usage"]
    assert (usage["cache_creation_input_tokens"], usage["cache_read_input_tokens"]) == (0, 0)


@pytest.mark.parametrize(
    ("model", "tokens", "kept"),
    [
        ("claude-3-5-sonnet", 1_023, False),
        ("claude-3-5-sonnet", 1_024, True),
        ("claude-opus-4-7", 2_047, False),
        ("claude-opus-4-7", 2_048, True),
        ("claude-haiku-4-5", 4_095, False),
        ("claude-haiku-4-5", 4_096, True),
    ],
)
async def test_anthropic_keeps_no_prefix_that_is_too_short(
    model: str, tokens: int, kept: bool, client: httpx.AsyncClient
) -> None:
    file = io.BytesIO()
    Image.new("RGB", (512, 512)).save(file, "PNG")
    small = base64.b64encode(file.getvalue()).decode()
    image = image_tokens(f"anthropic/{model}", 512, 512)
    assert image is not None
    body = anthropic_body(LOOK, image=small, system="Look" * (tokens - image)) | {"model": model}
    counts = []
    for _ in range(2):
        usage = (await client.post("/v1/messages", json=body)).json()["usage"]
        counts.append((usage["cache_creation_input_tokens"], usage["cache_read_input_tokens"]))
    assert counts == ([(tokens, 0), (0, tokens)] if kept else [(0, 0), (0, 0)])


async def test_lists_models_in_the_shape_of_the_protocol_asked_in(client: httpx.AsyncClient) -> None:
    assert (await client.get("/v1/models")).json()["object"] == "list"
    assert (await client.get("/v1/models/org/any")).json()["id"] == "org/any"
    headers = {"anthropic-version": "2023-06-01"}
    assert (await client.get("/v1/models", headers=headers)).json()["has_more"] is False
    assert (await client.get("/v1/models/any", headers=headers)).json()["type"] == "model"
    assert (await client.get("/health")).status_code == 200


async def test_wrong_key_and_unknown_model(client: httpx.AsyncClient) -> None:
    openai, anthropic = "/v1/chat/completions", "/v1/messages"
    bearer, key = {"Authorization": "Bearer wrong-key"}, {"x-api-key": "wrong-key"}
    reply = await client.post(openai, json=openai_body(LOOK), headers=bearer)
    assert (reply.status_code, reply.json()["error"]["code"]) == (401, "invalid_api_key")
    reply = await client.post(anthropic, json=anthropic_body(LOOK), headers=key)
    assert (reply.status_code, reply.json()["error"]["type"]) == (401, "authentication_error")
    reply = await client.post(openai, json=openai_body(LOOK) | {"model": "unknown-model"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (404, "model_not_found")
    reply = await client.post(anthropic, json=anthropic_body(LOOK) | {"model": "unknown-model"})
    assert (reply.status_code, reply.json()["error"]["type"]) == (404, "not_found_error")


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"{}",
        orjson.dumps({"messages": [7], "max_tokens": 9}),
        orjson.dumps({"messages": [{"role": "user", "content": 7}], "max_tokens": 9}),
        orjson.dumps({"messages": [{"role": "user", "content": [{"type": "audio"}]}], "max_tokens": 9}),
        orjson.dumps(openai_body(LOOK, image="?!")),
        orjson.dumps(anthropic_body(LOOK, image="?!")),
    ],
)
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
async def test_a_bad_body_is_a_400_in_the_shape_of_the_protocol(
    client: httpx.AsyncClient, path: str, body: bytes
) -> None:
    reply = await client.post(path, content=body)
    assert (reply.status_code, reply.json()["error"]["type"]) == (400, "invalid_request_error")


async def test_streams_carry_the_same_text(client: httpx.AsyncClient) -> None:
    whole = await openai_text(client, openai_body(LOOK))
    body = openai_body(LOOK, stream=True, stream_options={"include_usage": True})
    reply = await client.post("/v1/chat/completions", json=body)
    events = [line.removeprefix("data: ") for line in reply.text.splitlines() if line]
    assert events.pop() == "[DONE]"
    chunks = [orjson.loads(event) for event in events]
    assert "".join(c["choices"][0]["delta"].get("content", "") for c in chunks if c["choices"]) == whole
    assert chunks[-1]["usage"]["completion_tokens"] > 0
    reply = await client.post("/v1/messages", json=anthropic_body(LOOK, stream=True))
    events = [line.removeprefix("data: ") for line in reply.text.splitlines() if line.startswith("data: ")]
    parts = [orjson.loads(event) for event in events]
    assert "".join(p["delta"]["text"] for p in parts if p["type"] == "content_block_delta") == whole


async def test_a_port_that_is_taken_is_said_to_be() -> None:
    async with running(FakeServerOptions()) as url:
        taken = int(url.rpartition(":")[2])
        with pytest.raises(UsageError, match=f"port {taken}"):
            async with running(FakeServerOptions(port=taken)):
                pass


async def test_any_other_question_gets_a_marked_answer(client: httpx.AsyncClient) -> None:
    text = await openai_text(client, {"model": "m", "messages": [{"role": "user", "content": "Hello"}]})
    assert "synthetic answer of the fake server" in text


@pytest.mark.slow
async def test_takes_bodies_of_64_megabytes(client: httpx.AsyncClient) -> None:
    reply = await client.post("/v1/chat/completions", json=openai_body("x" * (64 << 20), image=None))
    assert reply.status_code == 200
