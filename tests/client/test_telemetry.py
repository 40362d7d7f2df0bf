"""Spans and metrics of real runs against the fake server, as a host program sees them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode
from PIL import Image

import uncanny
from tests.runs.e2e import Run, pictures, serving
from tests.watched import Host, watched
from uncanny.client import telemetry
from uncanny.client.telemetry import CAPTURE, DURATION_BUCKETS, TOKEN_BUCKETS, error_type
from uncanny.errors import RefusedError, TransientError

KEY = "sk-a-key-that-nobody-may-ever-see"


@pytest.fixture
def host() -> Iterator[Host]:
    with watched() as made:
        yield made


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run that is yet to be made."""
    return Run(tmp_path / "run")


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


def annotate(images: Path, run: Run, *, model: str = "openai/gpt-4o", faults: Any = None, **more: Any) -> Any:
    provider = model.partition("/")[0]
    with serving(objects=2, faults=faults or {}, seed=1) as server:
        url = server.url if provider == "anthropic" else server.v1
        return uncanny.annotate(images, model=model, base_url=url, out=run.path, **more)


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def parent(span: ReadableSpan, among: list[ReadableSpan]) -> ReadableSpan | None:
    found = [each for each in among if span.parent and each.context.span_id == span.parent.span_id]
    return found[0] if found else None


def everything(host: Host) -> str:
    """All that was told, as text."""
    spans = [span.to_json() for span in host.spans()]
    return "\n".join([*spans, str(host.points())])


def test_spans_lie_within_each_other(host: Host, tmp_path: Path, run: Run) -> None:
    annotate(pictures(tmp_path / "in", 3), run)
    spans, (whole,) = host.spans(), host.spans("invoke_workflow")
    assert whole.name == "invoke_workflow annotate"
    assert whole.parent is None
    assert attributes(whole)["gen_ai.workflow.name"] == "annotate"
    inputs = host.spans("uncanny.input")
    assert {attributes(span)["uncanny.input"] for span in inputs} == {each.image for each in run.records()}
    assert {attributes(span)["uncanny.status"] for span in inputs} == {"ok"}
    assert [parent(span, spans) for span in inputs] == [whole] * 3
    assert {parent(span, spans) in inputs for span in host.spans("invoke_agent")} == {True}
    for span in host.spans("chat"):
        agent = parent(span, spans)
        assert agent is not None
        assert agent.name == f"invoke_agent {attributes(agent)['gen_ai.agent.name']}"
        assert span.kind == SpanKind.CLIENT
        assert span.status.status_code == StatusCode.UNSET
    agents = Counter(attributes(span)["gen_ai.agent.name"] for span in host.spans("invoke_agent"))
    assert agents == Counter(call["agent"] for call in run.calls())
    assert len({span.context.trace_id for span in spans}) == 1
    assert {span.instrumentation_scope.name for span in spans if span.instrumentation_scope} == {"uncanny"}


def test_inputs_of_a_large_run_have_traces_of_their_own(host: Host, tmp_path: Path) -> None:
    number = telemetry.MOST_IN_ONE_TRACE + 1
    images = tmp_path / "in"
    images.mkdir()
    for index in range(number):
        Image.new("RGB", (8, 8), (index, 0, 0)).save(images / f"{index:03}.png")
    uncanny.annotate(images, model="noop", out=tmp_path / "run", schedule="single")
    (whole,) = host.spans("invoke_workflow")
    inputs, spans = host.spans("uncanny.input"), host.spans()
    assert len({span.context.trace_id for span in inputs} | {whole.context.trace_id}) == number + 1
    for span in inputs:
        assert span.parent is None
        assert [link.context.span_id for link in span.links] == [whole.context.span_id]
    assert {parent(span, spans) in inputs for span in host.spans("invoke_agent")} == {True}


def test_a_call_says_what_its_record_says(host: Host, tmp_path: Path, run: Run) -> None:
    annotate(pictures(tmp_path / "in", 1), run)
    calls = {call["request_id"]: call for call in run.calls()}
    spans = {attributes(span)["gen_ai.response.id"]: attributes(span) for span in host.spans("chat")}
    assert spans.keys() == calls.keys()
    for request_id, call in calls.items():
        span = spans[request_id]
        assert span["gen_ai.operation.name"] == "chat"
        assert span["gen_ai.provider.name"] == "openai"
        assert span["gen_ai.request.model"] == "gpt-4o"
        assert span["gen_ai.response.model"] == call["served_model"]
        assert span["gen_ai.usage.input_tokens"] == call["input_tokens"]
        assert span["gen_ai.usage.output_tokens"] == call["output_tokens"]
        assert span["gen_ai.usage.cache_read.input_tokens"] == call["cached_tokens"]
        assert span["uncanny.cost_usd"] == call["cost_usd"] > 0
        assert span["gen_ai.response.finish_reasons"] == ("stop",)
        assert span["gen_ai.request.max_tokens"] > 0
        assert span["server.address"] == "127.0.0.1"
        assert span["uncanny.outcome"] == "answered"
        assert span["uncanny.replayed"] is False
    assert {span.name for span in host.spans("chat")} == {"chat gpt-4o"}


def test_metrics_add_up_to_the_call_records(host: Host, tmp_path: Path, run: Run) -> None:
    annotate(pictures(tmp_path / "in", 2), run)
    calls, points = run.calls(), host.points()
    tokens = {point.attributes["gen_ai.token.type"]: point for point in points["gen_ai.client.token.usage"]}
    for kind in ("input", "output"):
        assert tokens[kind].sum == sum(call[f"{kind}_tokens"] for call in calls)
        assert tokens[kind].explicit_bounds == TOKEN_BUCKETS
    (duration,) = points["gen_ai.client.operation.duration"]
    assert duration.count == len(calls)
    assert duration.sum == pytest.approx(sum(call["latency_s"] for call in calls))
    assert duration.explicit_bounds == DURATION_BUCKETS
    (cost,) = points["uncanny.call.cost"]
    assert cost.value == pytest.approx(sum(call["cost_usd"] for call in calls))
    (cached,) = points["uncanny.call.cached_tokens"]
    assert cached.value == sum(call["cached_tokens"] for call in calls)
    assert sum(point.value for point in points["uncanny.call.count"]) == len(calls)
    assert [point.value for point in points["uncanny.call.active"]] == [0]
    assert [point.count for point in points["uncanny.call.wait"]] == [len(calls)]
    assert [(dict(p.attributes), p.value) for p in points["uncanny.input.count"]] == [
        ({"uncanny.status": "ok"}, 2)
    ]


def test_the_buckets_are_those_of_the_conventions() -> None:
    assert DURATION_BUCKETS == (
        0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
    )  # fmt: skip
    assert TOKEN_BUCKETS == (
        1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864,
    )  # fmt: skip


def test_a_retry_is_a_call_of_the_same_agent(host: Host, tmp_path: Path, run: Run) -> None:
    annotate(pictures(tmp_path / "in", 4), run, faults={"500": 0.4})
    failed = [call for call in run.calls() if call["outcome"] == "error"]
    assert failed
    spans = host.spans()
    wrong = [span for span in host.spans("chat") if span.status.status_code == StatusCode.ERROR]
    assert len(wrong) == len(failed)
    for span in wrong:
        assert attributes(span)["error.type"] == "500"
        assert span.status.description is None
        assert span.events == ()
        agent = parent(span, spans)
        again = [each for each in host.spans("chat") if parent(each, spans) is agent]
        assert [attributes(each)["uncanny.attempt"] for each in again] == list(range(1, len(again) + 1))
        assert again[-1].status.status_code == StatusCode.UNSET
    durations = host.points()["gen_ai.client.operation.duration"]
    assert {point.attributes.get("error.type"): point.count for point in durations}["500"] == len(failed)


def test_a_generation_that_fails_is_an_error_of_its_agent(host: Host, tmp_path: Path, run: Run) -> None:
    annotate(pictures(tmp_path / "in", 1), run, faults={"refusal": 1.0})
    (agent,) = host.spans("invoke_agent")
    assert attributes(agent)["error.type"] == "RefusedError"
    (call,) = host.spans("chat")
    assert attributes(call)["gen_ai.response.finish_reasons"] == ("content_filter",)
    assert attributes(call)["uncanny.outcome"] == "refused"
    assert call.status.status_code == StatusCode.UNSET
    (image,) = host.spans("uncanny.input")
    assert attributes(image)["error.type"] == attributes(image)["uncanny.status"] == "failed"


def test_an_image_that_cannot_be_read_has_a_span(host: Host, tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", 1)
    (images / "p00.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    annotate(images, run)
    (span,) = host.spans("uncanny.input")
    assert attributes(span) == {
        "uncanny.input": "../in/p00.png",
        "uncanny.status": "unreadable",
        "error.type": "unreadable",
    }
    assert host.spans("chat") == []


def test_an_answer_from_the_cache_is_a_call_that_used_nothing(host: Host, tmp_path: Path, run: Run) -> None:
    with serving(objects=2) as server:
        asked: Any = {"model": "openai/gpt-4o", "base_url": server.v1, "out": run.path}
        uncanny.annotate(pictures(tmp_path / "in", 2), **asked)
        calls, before = run.calls(), host.points()
        host.exporter.clear()
        (run.path / "annotations.jsonl").unlink()
        uncanny.annotate(tmp_path / "in", **asked)
    spans = [attributes(span) for span in host.spans("chat")]
    assert len(spans) == len(calls)
    assert {span["uncanny.replayed"] for span in spans} == {True}
    assert not any("usage" in name or "cost" in name for span in spans for name in span)
    after = host.points()
    for name in ("gen_ai.client.token.usage", "gen_ai.client.operation.duration", "uncanny.call.cost"):
        assert sum(each.count if hasattr(each, "count") else each.value for each in after[name]) == sum(
            each.count if hasattr(each, "count") else each.value for each in before[name]
        )
    counted = Counter[bool]()
    for point in after["uncanny.call.count"]:
        counted[point.attributes["uncanny.replayed"]] += point.value
    assert counted == {True: len(calls), False: len(calls)}


@pytest.mark.parametrize("model", ["openai/gpt-4o", "anthropic/claude-sonnet-4"])
def test_no_text_no_image_and_no_key_is_told(
    model: str, host: Host, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_OTEL_TRACES_CONTENT_MODE", "content")
    annotate(pictures(tmp_path / "in", 2), run, model=model, faults={"malformed": 0.3})
    told = everything(host)
    calls = run.calls()
    assert calls
    for call in calls:
        asked = [line for line in call["asked"].splitlines() if len(line) > 20]
        assert asked
        assert [line for line in asked if orjson.dumps(line).decode()[1:-1] in told or line in told] == []
        assert len(call["answer"]) <= 3 or call["answer"][:30] not in told
    assert KEY not in told
    assert "base64" not in told
    assert {span.instrumentation_scope.name for span in host.spans() if span.instrumentation_scope} == {
        "uncanny"
    }


def test_texts_are_told_when_asked_for(
    host: Host, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CAPTURE, "SPAN_ONLY")
    annotate(pictures(tmp_path / "in", 1), run)
    calls = {call["request_id"]: call for call in run.calls()}
    for span in map(attributes, host.spans("chat")):
        call = calls[span["gen_ai.response.id"]]
        turns = orjson.loads(span["gen_ai.input.messages"])
        texts = [part["content"] for part in turns[-1]["parts"] if part["type"] == "text"]
        assert "\n\n".join(texts) == call["asked"]
        files = [part for turn in turns for part in turn["parts"] if part["type"] == "file"]
        assert bool(files) is call["sees_image"]
        assert {part["file_id"].partition(":")[0] for part in files} <= {"sha256"}
        (answer,) = orjson.loads(span["gen_ai.output.messages"])
        assert answer["parts"][0]["content"] == call["answer"]
        assert answer["finish_reason"] == "stop"
    assert KEY not in everything(host)
    assert "base64" not in everything(host)


def test_a_run_is_part_of_what_the_host_does(host: Host, tmp_path: Path, run: Run) -> None:
    with trace.get_tracer("host").start_as_current_span("request") as around:
        annotate(pictures(tmp_path / "in", 1), run)
    (whole,) = host.spans("invoke_workflow")
    assert whole.parent is not None
    assert whole.parent.span_id == around.get_span_context().span_id


async def test_images_of_an_open_session_are_parts_of_their_requests(host: Host, tmp_path: Path) -> None:
    images = sorted(pictures(tmp_path / "in", 2).iterdir())
    tracer = trace.get_tracer("host")

    async def request(annotator: uncanny.Annotator, image: Path) -> int:
        with tracer.start_as_current_span("request") as around:
            await annotator.annotate(image)
            return around.get_span_context().span_id

    async with uncanny.Annotator("demo") as annotator:
        around = await asyncio.gather(*(request(annotator, image) for image in images))
    inputs = host.spans("uncanny.input")
    assert {span.parent.span_id for span in inputs if span.parent} == set(around)
    assert host.spans("chat")


@pytest.mark.parametrize(
    ("name", "address", "expected"),
    [
        (
            "gemini/g-3",
            "https://user:secret@host.example/v1?key=secret",
            ("gcp.gemini", "g-3", "host.example", 443),
        ),
        ("vllm/a/b", "http://127.0.0.1:8000/v1", ("vllm", "a/b", "127.0.0.1", 8000)),
        ("demo", None, ("demo", "demo", None, None)),
        ("lab/m", "http://[not-one:x", ("lab", "m", None, None)),
        ("lab/m", "shelf 3", ("lab", "m", None, None)),
    ],
)
def test_models_are_named_as_in_the_conventions(
    name: str, address: str | None, expected: tuple[str, str, str | None, int | None]
) -> None:
    about = telemetry._named(name, address)
    keys = ("gen_ai.provider.name", "gen_ai.request.model", "server.address", "server.port")
    assert tuple(map(about.get, keys)) == expected
    assert "secret" not in str(about)


def test_errors_are_named_by_their_kind() -> None:
    assert error_type(TransientError("x", kind="http_429")) == "429"
    assert error_type(TransientError("x", kind="timeout")) == "timeout"
    assert error_type(RefusedError("words that nobody may see", words="")) == "RefusedError"
