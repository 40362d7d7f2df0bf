"""The fake server's batch APIs, spoken with the SDKs of the providers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx
import openai
import orjson
import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from openai.types import Batch

from tests.demo.server.test_fake_server import LOOK, anthropic_body, openai_body
from uncanny.demo.server.app import FakeServerOptions, running
from uncanny.demo.server.faults import parse_batch_faults
from uncanny.errors import UsageError

URL: Final = "/v1/chat/completions"


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
        made = await submit(client, *(line(f"k{number}", openai_body(LOOK)) for number in range(4)))
        assert made.status == "validating"
        batch = await client.batches.retrieve(made.id)
        assert (batch.status, batch.error_file_id, batch.metadata) == ("completed", None, {"tag": "mine"})
        answers = await contents(client, batch.output_file_id)
        assert sorted(answers) == ["k0", "k1", "k2", "k3"]
        single = await client.chat.completions.create(**openai_body(LOOK))
        body = answers["k2"]["response"]["body"]
        assert body["choices"][0]["message"]["content"] == single.choices[0].message.content
        assert [each.id async for each in client.batches.list()] == [made.id]
        stats = (await client._client.get(str(client.base_url).replace("/v1/", "/stats"))).json()
        assert (stats["batches"], stats["batch_lines"], stats["requests"]) == (1, 4, 1)


async def test_openai_lines_that_fail_are_in_the_other_file() -> None:
    async with openai_client(batch_faults={"rejected": 1.0}) as client:
        batch = await client.batches.retrieve((await submit(client, line("k", openai_body(LOOK)))).id)
        assert (batch.status, batch.output_file_id) == ("completed", None)
        entry = (await contents(client, batch.error_file_id))["k"]
        assert (entry["response"]["status_code"], entry["error"]) == (400, None)
    async with openai_client(batch_faults={"expired": 1.0}) as client:
        batch = await client.batches.retrieve((await submit(client, line("k", openai_body(LOOK)))).id)
        assert (batch.status, batch.output_file_id) == ("expired", None)
        entry = (await contents(client, batch.error_file_id))["k"]
        assert (entry["response"], entry["error"]["code"]) == (None, "batch_expired")
    async with openai_client(batch_faults={"missing": 1.0}) as client:
        batch = await client.batches.retrieve((await submit(client, line("k", openai_body(LOOK)))).id)
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
        first = await submit(client, line("a", openai_body(LOOK)))
        second = await client.batches.retrieve((await submit(client, line("b", openai_body(LOOK)))).id)
        assert second.status == "failed"
        assert second.errors is not None
        assert second.errors.data is not None
        assert second.errors.data[0].code == "token_limit_exceeded"
        assert (await client.batches.retrieve(first.id)).status == "in_progress"
        await asyncio.sleep(0.35)
        assert (await client.batches.retrieve(first.id)).status == "completed"
        third = await submit(client, line("b", openai_body(LOOK)))
        assert (await client.batches.retrieve(third.id)).status != "failed"


async def test_openai_files_and_cancelling() -> None:
    async with openai_client(batch_seconds=60) as client:
        batch = await submit(client, line("k", openai_body(LOOK)))
        assert (await client.batches.cancel(batch.id)).status == "cancelled"
        assert (await client.files.retrieve(batch.input_file_id)).filename == "lines.jsonl"
        assert (await client.files.delete(batch.input_file_id)).deleted
        with pytest.raises(openai.NotFoundError):
            await client.files.content(batch.input_file_id)
        with pytest.raises(openai.NotFoundError):
            await client.batches.retrieve("batch_none")


async def test_a_batch_is_there_although_its_maker_did_not_hear_of_it() -> None:
    async with openai_client(lost_batches=1) as client:
        with pytest.raises(openai.APIConnectionError):
            await submit(client, line("k", openai_body(LOOK)))
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
