"""The fake server's options, and every fault as a client meets it on the wire."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import httpx
import orjson
import pytest

from uncanny.answers.forms import ANOMALIES, OBJECTS, ListForm
from uncanny.answers.lists import read_list
from uncanny.demo.server.app import FakeServerOptions, FaultName, running
from uncanny.demo.server.faults import FAULT_NAMES, MALFORMATIONS, parse_faults, plan_request
from uncanny.errors import AnswerError, UsageError
from uncanny.prompts import prompt_set

PATHS = ["/v1/chat/completions", "/v1/messages"]
PROMPT = prompt_set("annotate")["perceive_1"].fill(draft="1", drafts="3")
IMAGES = {
    PATHS[0]: {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    PATHS[1]: {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
}


async def generate(path: str, fault: FaultName, patience: float = 10.0) -> httpx.Response:
    content = [IMAGES[path], {"type": "text", "text": PROMPT}]
    body = {"model": "m", "max_tokens": 2000, "messages": [{"role": "user", "content": content}]}
    options = FakeServerOptions(faults={fault: 1.0})
    async with running(options) as url, httpx.AsyncClient(base_url=url, timeout=patience) as client:
        try:
            return await client.post(path, json=body)
        finally:
            stats = (await client.get("/stats")).json()
            assert (stats["requests"], stats["faults"]) == (1, {fault: 1})


def text_and_finish(path: str, reply: httpx.Response) -> tuple[str, str]:
    """(text, why it ended) of an answer in either protocol."""
    body = reply.json()
    if path == PATHS[1]:
        return body["content"][0]["text"], body["stop_reason"]
    choice = body["choices"][0]
    return choice["message"]["content"], choice["finish_reason"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("fault", ["429", "429-retry-after", "500", "529"])
async def test_statuses(path: str, fault: FaultName) -> None:
    reply = await generate(path, fault)
    assert reply.status_code == int(fault[:3])
    assert ("retry-after" in reply.headers) == (fault == "429-retry-after")
    assert reply.json()["error"]["message"]
    if path == PATHS[1]:
        kinds = {429: "rate_limit_error", 500: "api_error", 529: "overloaded_error"}
        assert reply.json()["error"]["type"] == kinds[reply.status_code]


async def test_waiting_times_are_short() -> None:
    reply = await generate(PATHS[0], "429-retry-after")
    assert reply.headers["retry-after"] == "1"
    assert 200 <= int(reply.headers["retry-after-ms"]) <= 1000


@pytest.mark.parametrize("path", PATHS)
async def test_hang(path: str) -> None:
    with pytest.raises(httpx.ReadTimeout):
        await generate(path, "hang", patience=0.3)


@pytest.mark.parametrize("path", PATHS)
async def test_cut(path: str) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        await generate(path, "cut")


@pytest.mark.parametrize("path", PATHS)
async def test_truncated_json(path: str) -> None:
    reply = await generate(path, "truncated-json")
    assert reply.status_code == 200
    with pytest.raises(ValueError, match=r".+"):
        reply.json()


@pytest.mark.parametrize("path", PATHS)
async def test_malformed(path: str) -> None:
    text, ending = text_and_finish(path, await generate(path, "malformed"))
    assert ending in ("stop", "end_turn")
    with pytest.raises(AnswerError):
        read_list(text, OBJECTS)


async def test_refusal() -> None:
    message = (await generate(PATHS[0], "refusal")).json()["choices"][0]["message"]
    assert (message["content"], bool(message["refusal"])) == (None, True)
    assert text_and_finish(PATHS[1], await generate(PATHS[1], "refusal"))[1] == "refusal"


@pytest.mark.parametrize("path", PATHS)
async def test_length(path: str) -> None:
    text, ending = text_and_finish(path, await generate(path, "length"))
    assert ending in ("length", "max_tokens")
    with pytest.raises(orjson.JSONDecodeError):
        orjson.loads(text)


ROW = {"name": "a", "phenomenon": "b", "reasoning": "c", "severity": 5, "objects": ["d"]}


@pytest.mark.parametrize("spoil", MALFORMATIONS)
@pytest.mark.parametrize(
    ("answer", "form"),
    [
        ({"anomalies": [ROW]}, ANOMALIES),
        ({"answer": {"anomalies": [ROW]}}, ANOMALIES),
        ({"objects": [{"name": "a", "description": "b"}]}, OBJECTS),
    ],
)
def test_no_kind_of_malformed_answer_is_valid(spoil: Any, answer: Any, form: ListForm[Any]) -> None:
    spoilt = spoil(orjson.loads(orjson.dumps(answer)))
    with pytest.raises(AnswerError):
        read_list(spoilt if isinstance(spoilt, str) else orjson.dumps(spoilt).decode(), form)


def drawn(options: FakeServerOptions) -> list[tuple[float, FaultName | None]]:
    return [(plan.delay, plan.fault) for plan in (plan_request(options, number) for number in range(2000))]


def test_the_seed_decides() -> None:
    faults: dict[FaultName, float] = {"429": 0.1, "cut": 0.05}
    first = drawn(FakeServerOptions(latency_ms=50, jitter_ms=20, faults=faults, seed=3))
    random.seed(99)
    assert first == drawn(FakeServerOptions(latency_ms=50, jitter_ms=20, faults=faults, seed=3))
    assert first != drawn(FakeServerOptions(latency_ms=50, jitter_ms=20, faults=faults, seed=4))
    assert all(0.05 <= delay <= 0.07 for delay, _ in first)
    assert 150 <= sum(fault == "429" for _, fault in first) <= 250
    assert 70 <= sum(fault == "cut" for _, fault in first) <= 130


def test_no_faults_unless_asked_for() -> None:
    assert {fault for _, fault in drawn(FakeServerOptions())} == {None}


def test_reads_faults() -> None:
    assert parse_faults(" 429=0.1, hang = 0.02 ,") == {"429": 0.1, "hang": 0.02}
    assert parse_faults("") == {}


def test_unknown_fault_names_the_valid_ones() -> None:
    with pytest.raises(UsageError) as caught:
        parse_faults("503=0.1")
    assert "'503'" in str(caught.value)
    assert all(name in str(caught.value) for name in FAULT_NAMES)


@pytest.mark.parametrize(
    "text", ["429", "429=", "429=often", "429=1.5", "429=-0.1", "429=nan", "429=0.6,cut=0.6"]
)
def test_refuses_rates_that_are_none(text: str) -> None:
    with pytest.raises(UsageError):
        parse_faults(text)


@pytest.mark.parametrize(
    "wrong",
    [
        {"port": -1},
        {"port": 65536},
        {"latency_ms": -1},
        {"jitter_ms": -1},
        {"objects": 0},
        {"max_seconds": 0},
    ],
)
def test_refuses_values_out_of_range(wrong: Mapping[str, Any]) -> None:
    with pytest.raises(UsageError):
        FakeServerOptions(**wrong)
