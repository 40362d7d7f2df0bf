"""Servers that misbehave in every way they know: no image is lost, nothing wrong passes for an answer."""

from __future__ import annotations

import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tests.runs.e2e import IN_ORDER, Run, check_no_traceback, pictures, serving, uncanny_here
from uncanny.demo.server.faults import FAULT_NAMES, FaultName

pytestmark = pytest.mark.slow

KINDS = {"unparseable", "refused", "truncated", "infrastructure", "rejected"}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_thirty_percent_of_all_answers_faulty(provider: str, tmp_path: Path, run: Run) -> None:
    faults = dict.fromkeys(FAULT_NAMES, 0.03)
    # Of 12 images now and then none came through whole: which call meets which fault differs from run to run.
    images = pictures(tmp_path / "in", 40)
    with serving(objects=3, faults=faults, seed=3) as server:
        arguments = ("annotate", images, *server.asked(provider, "demo"), "-o", run.path, "--timeout", "2")
        # By its many calls an image each fault strikes.
        done = uncanny_here(*arguments, "--concurrency", "16", "--schedule", "paper")
        stats = server.stats()
    check_no_traceback(done)
    assert all(number > 0 for number in stats["faults"].values()), "make it longer: not all faults struck"
    records = run.records()
    assert len(records) == 40
    assert {record.status for record in records} <= {"ok", "partial", "failed"}
    assert {error.kind for record in records for error in record.errors} <= KINDS
    assert "ok" in run.statuses()
    assert done.code == (0 if set(run.statuses()) == {"ok"} else 1)
    totals = run.manifest()["totals"]
    assert run.manifest()["state"] == "finished"
    assert totals["calls"] == stats["requests"]
    outcomes = totals["outcomes"]
    assert sum(outcomes.values()) == totals["calls"]
    assert outcomes["refused"] == sum(stats["faults"][name] for name in ("refusal", "blocked"))
    # Free text that is cut in half or emptied is told by its finish or its emptiness, a list by its form.
    assert outcomes["unparseable"] >= stats["faults"]["length"]
    broken = ("429", "429-retry-after", "500", "529", "overloaded", "hang", "cut", "truncated-json")
    assert outcomes["error"] == sum(stats["faults"][name] for name in broken)
    assert min(outcomes.values()) > 0


def content(run: Run) -> list[dict[str, Any]]:
    """What the records say of the images, without what the way to it cost."""
    return [record.model_dump(exclude={"usage", "file_stamp"}) for record in run.records()]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("schedule", "provider"), [("packed", "openai"), ("packed", "anthropic"), ("paper", "openai")]
)
def test_after_thirty_percent_faulty_answers_the_records_are_those_of_none(
    schedule: str, provider: str, tmp_path: Path, run: Run
) -> None:
    images = pictures(tmp_path / "in", 40 if schedule == "packed" else 8)
    faults = dict.fromkeys(FAULT_NAMES, 0.03)
    options = ("--schedule", schedule, "--timeout", "2", "--concurrency", "16", "--no-report", "-q")
    with serving(objects=8) as server:
        undisturbed = Run(tmp_path / "undisturbed")
        done = uncanny_here(
            "annotate", images, *server.asked(provider, "demo"), *options, "-o", undisturbed.path
        )
        assert done.code == 0
    with serving(objects=8, faults=faults, seed=5) as server:
        arguments = ("annotate", images, *server.asked(provider, "demo"), *options, "-o", run.path)
        check_no_traceback(uncanny_here(*arguments))
        assert all(number > 0 for number in server.stats()["faults"].values()), "make it longer"
        assert {error.kind for record in run.records() for error in record.errors} <= KINDS
        # What was refused or used up its tries is asked again by the same command.
        for _ in range(20):
            if uncanny_here(*arguments).code == 0:
                break
    assert run.statuses() == {"ok": len(undisturbed.records())}
    assert content(run) == content(undisturbed)


@pytest.mark.parametrize("fault", ["malformed", "refusal"])
@pytest.mark.parametrize(
    ("schedule", "agents"),
    [
        ("packed", ["ObjectPerceiver"]),
        ("paper", ["ObjectPerceiver"]),
        ("single", ["SceneScanner"]),
    ],
)
def test_a_model_that_never_answers_right(
    schedule: str, agents: list[str], fault: FaultName, tmp_path: Path, run: Run
) -> None:
    images = pictures(tmp_path / "in", 3)
    with serving(objects=3, faults={fault: 1.0}) as server:
        options = ("-o", run.path, "-q", "--schedule", schedule)
        done = uncanny_here("annotate", images, *server.asked(), *options)
    assert (done.code, done.out, done.err) == (1, "", "")
    assert run.statuses() == {"failed": 3}
    expected = "refused" if fault == "refusal" else "unparseable"
    for record in run.records():
        assert [(error.agent, error.kind) for error in record.errors] == [(each, expected) for each in agents]
    assert run.manifest()["totals"]["outcomes"]["answered"] == 0


@pytest.mark.parametrize("provider", ["openai", "anthropic", "vllm"])
def test_cut_off_answers_are_asked_for_at_twice_the_length_up_to_sixteen_thousand(
    provider: str, tmp_path: Path, run: Run
) -> None:
    images = pictures(tmp_path / "in", 1)
    with serving(objects=3, faults={"length": 1.0}) as server:
        options = ("-o", run.path, "--scene-scans", "0")
        done = uncanny_here("annotate", images, *server.asked(provider), *options)
        assert server.requests() == 4
    assert done.code == 1
    (record,) = run.records()
    assert record.status == "failed"
    assert [error.kind for error in record.errors] == ["truncated"]
    assert record.objects == ()
    details = [call["detail"] for call in run.calls()]
    assert details == [f"cut off at {n} output tokens" for n in (2_000, 4_000, 8_000, 16_000)]
    assert {call["outcome"] for call in run.calls()} == {"unparseable"}
    assert "truncated" not in (run.path / "annotations.jsonl").read_text().split('"errors"')[0]


def test_half_of_all_answers_cut_off_is_only_slower(tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", 8)
    with serving(objects=2) as server:
        asked = server.asked(name="demo")
        assert uncanny_here("annotate", images, *asked, "-o", tmp_path / "whole", "-q").code == 0
    with serving(objects=2, faults={"length": 0.4}, seed=2) as server:
        done = uncanny_here("annotate", images, *server.asked(name="demo"), "-o", run.path, "-q")
        cut = server.stats()["faults"]["length"]
    calls = run.calls()
    assert cut == sum(call["outcome"] == "unparseable" for call in calls) > 5
    # Half of a list that was cut off could be read as a shorter list; it never is.
    whole = {Path(record.image).name: record for record in Run(tmp_path / "whole").records()}
    for record in run.records():
        expected = whole[Path(record.image).name]
        if record.status == "ok":
            assert (record.objects, record.anomalies) == (expected.objects, expected.anomalies)
        else:
            assert {error.kind for error in record.errors} == {"truncated"}
    assert run.statuses()["ok"] > 0
    assert done.code == (0 if run.statuses()["ok"] == 8 else 1)


def test_a_failed_object_makes_an_image_partial_and_names_the_step(tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", 6)
    with serving(objects=4, faults={"refusal": 0.06}, seed=4) as server:
        options = ("-o", run.path, "--schedule", "paper", *IN_ORDER)
        done = uncanny_here("annotate", images, *server.asked(), *options)
    assert done.code == 1
    partial = [record for record in run.records() if record.status == "partial"]
    assert partial
    for record in partial:
        assert record.anomalies
        for error in record.errors:
            assert error.object in {found.name for found in record.objects}
            assert (error.kind, error.step > 0) == ("refused", True)
        assert f"{record.errors[0].agent} {record.errors[0].step}: " in done.out
    for record in run.records():
        if record.status == "failed":
            assert record.errors[-1].agent in ("ObjectPerceiver", "AnomalyFormatter")


def test_a_refused_closer_look_makes_an_image_partial(tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", 30)
    with serving(objects=8, faults={"refusal": 0.2}, seed=4) as server:
        done = uncanny_here("annotate", images, *server.asked(), "-o", run.path, *IN_ORDER)
    assert done.code == 1
    partial = [record for record in run.records() if record.status == "partial"]
    assert any(error.agent == "AttributeAnalyzer" for record in partial for error in record.errors)
    for record in partial:
        # What the look found stands.
        assert record.anomalies
        assert {error.kind for error in record.errors} == {"refused"}
    for record in run.records():
        if record.status == "failed":
            assert record.errors[-1].agent in ("ObjectPerceiver", "AnomalyFormatter")


def test_a_server_that_takes_few_at_once_is_asked_by_so_many(tmp_path: Path, run: Run) -> None:
    """What it refuses is counted and asked again, and the limit is followed when it changes."""
    images = pictures(tmp_path / "in", 60)
    limits = ((0.0, 6), (0.5, 3), (1.0, 6))
    with serving(objects=1, at_once=limits, latency_ms=20) as server:
        options = ("--schedule", "single", "--concurrency", "40", "--no-report", "-q")
        done = uncanny_here("annotate", images, *server.asked(), "-o", run.path, *options)
        stats = server.stats()
    assert (done.code, run.statuses()) == (0, {"ok": 60})
    assert stats["max_concurrent"] == 6
    refused = run.manifest()["totals"]["outcomes"]["error"]
    assert 0 < stats["too_many"] == refused < 120


@pytest.mark.timeout(300)
def test_an_outage_shorter_than_patience_fails_no_image(
    tmp_path: Path, run: Run, httpserver: HTTPServer
) -> None:
    images = pictures(tmp_path / "in", 30)
    began: list[float] = []
    with serving(objects=2) as server:

        def answer(request: Request) -> Response:
            if server.requests() > 40:
                began.append(time.monotonic())
                if time.monotonic() - began[0] < 8:
                    return Response("out of order", 500)
            onward = urllib.request.Request(
                server.url + request.path, request.get_data(), {"content-type": "application/json"}
            )
            with urllib.request.urlopen(onward, timeout=30) as reply:
                return Response(reply.read(), reply.status, content_type="application/json")

        httpserver.expect_request("/v1/chat/completions").respond_with_handler(answer)
        url = httpserver.url_for("/v1")
        arguments = ("annotate", images, "-m", "openai/any", "--base-url", url, "-o", run.path)
        done = uncanny_here(*arguments, "--patience", "60", "--concurrency", "16")
    assert done.code == 0, done.err
    assert run.statuses() == {"ok": 30}
    assert run.manifest()["totals"]["outcomes"]["error"] > 0
