"""The fake server's batch APIs, spoken with the SDKs of the providers."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import anthropic
import httpx
import openai
import orjson
import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from openai.types import Batch
from openai.types.responses import Response

from tests.demo.server.test_fake_server import ENCODED, LOOK, anthropic_body, openai_body
from uncanny.demo.server.app import FakeServerOptions, running
from uncanny.demo.server.faults import parse_batch_faults
from uncanny.errors import UsageError

URL: Final = "/v1/responses"
PNG: Final = base64.b64decode(ENCODED)
LASTS: Final = 3 * 86_400
DATA_URL: Final = f"data:image/png;base64,{ENCODED}"


def response_body(text: str, **image: str) -> dict[str, Any]:
    source = image or {"image_url": DATA_URL}
    content = [{"type": "input_image", **source}, {"type": "input_text", "text": text}]
    turns = [
        {"role": "system", "content": [{"type": "input_text", "text": "Look."}]},
        {"role": "user", "content": content},
    ]
    return {"model": "demo", "input": turns}


def line(key: str, body: dict[str, Any], **more: Any) -> bytes:
    return orjson.dumps({"custom_id": key, "method": "POST", "url": URL, "body": body, **more}) + b"\n"


@asynccontextmanager
async def openai_client(**options: Any) -> AsyncIterator[AsyncOpenAI]:
    async with (
        running(FakeServerOptions(**options)) as url,
        AsyncOpenAI(api_key="any", base_url=f"{url}/v1", max_retries=0) as client,
    ):
        yield client


async def submit(client: AsyncOpenAI, *lines: bytes) -> Batch:
    file = await client.files.create(file=("lines.jsonl", b"".join(lines)), purpose="batch")
    return await client.batches.create(
        input_file_id=file.id, endpoint=URL, completion_window="24h", metadata={"tag": "mine"}
    )


async def contents(client: AsyncOpenAI, file: str | None) -> dict[str, Any]:
    assert file is not None
    lines = (await client.files.content(file)).content.splitlines()
    return {entry["custom_id"]: entry for entry in map(orjson.loads, lines)}


async def test_openai_answers_a_batch_as_single_requests() -> None:
    async with openai_client() as client:
        made = await submit(client, *(line(f"k{number}", response_body(LOOK)) for number in range(4)))
        assert made.status == "validating"
        batch = await client.batches.retrieve(made.id)
        assert (batch.status, batch.error_file_id, batch.metadata) == ("completed", None, {"tag": "mine"})
        answers = await contents(client, batch.output_file_id)
        assert sorted(answers) == ["k0", "k1", "k2", "k3"]
        single = await client.chat.completions.create(**openai_body(LOOK))
        answer = Response.construct(**answers["k2"]["response"]["body"])
        assert answer.output_text == single.choices[0].message.content
        assert [each.id async for each in client.batches.list()] == [made.id]
        counts = await stats(client)
        assert (counts["batches"], counts["batch_lines"], counts["requests"]) == (1, 4, 1)


async def test_openai_lines_that_fail_are_in_the_other_file() -> None:
    async with openai_client(batch_faults={"rejected": 1.0}) as client:
        batch = await client.batches.retrieve((await submit(client, line("k", response_body(LOOK)))).id)
        assert (batch.status, batch.output_file_id) == ("completed", None)
        entry = (await contents(client, batch.error_file_id))["k"]
        assert (entry["response"]["status_code"], entry["error"]) == (400, None)
    async with openai_client(batch_faults={"expired": 1.0}) as client:
        batch = await client.batches.retrieve((await submit(client, line("k", response_body(LOOK)))).id)
        assert (batch.status, batch.output_file_id) == ("expired", None)
        entry = (await contents(client, batch.error_file_id))["k"]
        assert (entry["response"], entry["error"]["code"]) == (None, "batch_expired")
    async with openai_client(batch_faults={"missing": 1.0}) as client:
        batch = await client.batches.retrieve((await submit(client, line("k", response_body(LOOK)))).id)
        assert (batch.status, batch.output_file_id, batch.error_file_id) == ("completed", None, None)


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ([b"{}\n"], "invalid_json_line"),
        ([line("k", {}), line("k", {})], "duplicate_custom_id"),
        ([line("k", {}, url="/v1/other")], "mismatched_url"),
    ],
)
async def test_openai_rejects_a_whole_file_after_creation(lines: list[bytes], code: str) -> None:
    async with openai_client() as client:
        batch = await client.batches.retrieve((await submit(client, *lines)).id)
        assert batch.status == "failed"
        assert batch.errors is not None
        assert batch.errors.data is not None
        assert batch.errors.data[0].code == code


async def test_openai_limits_the_tokens_under_way() -> None:
    async with openai_client(batch_tokens=1500, batch_seconds=0.3) as client:
        first = await submit(client, line("a", response_body(LOOK)))
        second = await client.batches.retrieve((await submit(client, line("b", response_body(LOOK)))).id)
        assert second.status == "failed"
        assert second.errors is not None
        assert second.errors.data is not None
        assert second.errors.data[0].code == "token_limit_exceeded"
        assert (await client.batches.retrieve(first.id)).status == "in_progress"
        await asyncio.sleep(0.35)
        assert (await client.batches.retrieve(first.id)).status == "completed"
        third = await submit(client, line("b", response_body(LOOK)))
        assert (await client.batches.retrieve(third.id)).status != "failed"


async def test_openai_files_and_cancelling() -> None:
    async with openai_client(batch_seconds=60) as client:
        batch = await submit(client, line("k", response_body(LOOK)))
        assert (await client.batches.cancel(batch.id)).status == "cancelled"
        assert (await client.files.retrieve(batch.input_file_id)).filename == "lines.jsonl"
        assert (await client.files.delete(batch.input_file_id)).deleted
        with pytest.raises(openai.NotFoundError):
            await client.files.content(batch.input_file_id)
        with pytest.raises(openai.NotFoundError):
            await client.batches.retrieve("batch_none")


async def stats(client: AsyncOpenAI | AsyncAnthropic) -> dict[str, Any]:
    root = str(client.base_url).rstrip("/").removesuffix("/v1")
    found: dict[str, Any] = (await client._client.get(f"{root}/stats")).json()
    return found


async def test_openai_lines_name_images_that_were_uploaded() -> None:
    async with openai_client() as client:
        image = await client.files.create(
            file=("a.png", PNG, "image/png"),
            purpose="vision",
            expires_after={"anchor": "created_at", "seconds": LASTS},
        )
        named, none = ({"file_id": name} for name in (image.id, "file-none"))
        lines = (
            line("named", response_body(LOOK, **named)),
            line("none", response_body(LOOK, **none)),
            line("whole", response_body(LOOK)),
        )
        batch = await client.batches.retrieve((await submit(client, *lines)).id)
        answers = await contents(client, batch.output_file_id)
        texts = {key: each["response"]["body"]["output"] for key, each in answers.items()}
        assert texts["named"] == texts["whole"]
        failed = (await contents(client, batch.error_file_id))["none"]["response"]
        assert failed["status_code"] == 400
        assert "file-none" in failed["body"]["error"]["message"]
        counts = await stats(client)
        assert (counts["uploads"], counts["files"]) == (1, 2)
        assert counts["upload_bytes"] == len(PNG) + len(b"".join(lines))
        assert (await client.files.delete(image.id)).deleted
        assert (await stats(client))["files"] == 1
        with pytest.raises(openai.BadRequestError, match="expire"):
            await client.files.create(file=("a.png", PNG, "image/png"), purpose="vision")


async def test_anthropic_lines_name_images_that_were_uploaded() -> None:
    async with (
        running(FakeServerOptions()) as url,
        AsyncAnthropic(api_key="any", base_url=url, max_retries=0) as client,
    ):
        image = await client.files.upload(file=("a.png", PNG, "image/png"), expires_in_seconds=LASTS)
        assert (image.mime_type, image.size_bytes) == ("image/png", len(PNG))
        requests: Any = []
        for key, name in (("named", image.id), ("none", "file-none")):
            params = anthropic_body(LOOK)
            params["messages"][0]["content"][0]["source"] = {"type": "file", "file_id": name}
            requests.append({"custom_id": key, "params": params})
        made = await client.messages.batches.create(requests=requests)
        results = {each.custom_id: each async for each in await client.messages.batches.results(made.id)}
        assert results["named"].result.type == "succeeded"
        failed: Any = results["none"].result.to_dict()["error"]
        assert failed["error"]["type"] == "not_found_error"
        assert "file-none" in failed["error"]["message"]
        await client.files.delete(image.id)
        assert (await stats(client))["files"] == 0
        with pytest.raises(anthropic.NotFoundError):
            await client.files.delete(image.id)


async def test_a_batch_is_there_although_its_maker_did_not_hear_of_it() -> None:
    async with openai_client(lost_batches=1) as client:
        with pytest.raises(openai.APIConnectionError):
            await submit(client, line("k", response_body(LOOK)))
        assert [each.metadata async for each in client.batches.list()] == [{"tag": "mine"}]


async def test_anthropic_counts_nothing_until_a_batch_has_ended() -> None:
    options = FakeServerOptions(
        batch_seconds=0.3, batch_faults={"rejected": 0.3, "expired": 0.3, "missing": 0.2}
    )
    async with running(options) as url, AsyncAnthropic(api_key="any", base_url=url) as client:
        requests: Any = [{"custom_id": f"k{number}", "params": anthropic_body(LOOK)} for number in range(20)]
        made = await client.messages.batches.create(requests=requests)
        assert made.request_counts.processing == 20
        assert made.request_counts.succeeded + made.request_counts.errored == 0
        assert made.results_url is None
        await asyncio.sleep(0.35)
        batch = await client.messages.batches.retrieve(made.id)
        assert batch.processing_status == "ended"
        kinds: dict[str, str] = {}
        async for result in await client.messages.batches.results(made.id):
            kinds[result.custom_id] = result.result.type
        counts = batch.request_counts
        assert sum(kind == "succeeded" for kind in kinds.values()) == counts.succeeded > 0
        assert sum(kind == "errored" for kind in kinds.values()) == counts.errored > 0
        assert sum(kind == "expired" for kind in kinds.values()) == counts.expired > 0
        assert len(kinds) < 20
        assert list(kinds) != sorted(kinds)


async def test_anthropic_refuses_keys_that_are_too_long() -> None:
    async with running(FakeServerOptions()) as url, httpx.AsyncClient(base_url=url) as client:
        body = {"requests": [{"custom_id": "x" * 65, "params": anthropic_body(LOOK)}]}
        reply = await client.post("/v1/messages/batches", json=body)
        assert (reply.status_code, reply.json()["error"]["type"]) == (400, "invalid_request_error")


def test_faults_of_batches_have_names() -> None:
    assert parse_batch_faults("expired=0.1, 500=0.2") == {"expired": 0.1, "500": 0.2}
    with pytest.raises(UsageError, match="Unknown fault 'hang'"):
        parse_batch_faults("hang=1")
