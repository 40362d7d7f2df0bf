"""Limits on tokens and cost, and the model that takes over when the first one cannot go on."""

from __future__ import annotations

import re
import socket
from collections import Counter
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from tests.runs.e2e import Run, check_no_traceback, pictures, serving, uncanny_here
from uncanny.wording import cost, duration

# Calls for an image with two objects: by default, and with the paper's schedule.
AN_IMAGE = 1 + 1 + 1
PAPER_IMAGE = 3 + 6 * 2 + 1
IMAGES = 3


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return pictures(tmp_path / "in", IMAGES)


def tokens(run: Run) -> int:
    totals = run.manifest()["totals"]
    return int(totals["input_tokens"] + totals["output_tokens"])


def models(run: Run) -> Counter[str]:
    """How many answers came from each model."""
    return Counter(call["model"] for call in run.calls() if call["outcome"] == "answered")


@pytest.mark.slow
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize(
    ("schedule", "an_image", "limits"),
    [("packed", AN_IMAGE, (11_000, 11_500)), ("paper", PAPER_IMAGE, (20_000, 45_000))],
)
def test_the_token_limit_is_never_passed_and_a_higher_one_goes_on(
    schedule: str, an_image: int, limits: tuple[int, int], provider: str, images: Path, run: Run
) -> None:
    with serving(objects=2) as server:
        # Less than is usual is kept free for answers: a packed image has few calls, none of them cheap.
        longest = ("--max-output-tokens", "600", "--formatter-output-tokens", "600")
        options = ("-o", run.path, "--no-report", "--schedule", schedule, *longest)
        arguments = ("annotate", images, *server.asked(provider), *options)
        for limit in limits:
            done = uncanny_here(*arguments, "--max-tokens-total", str(limit))
            check_no_traceback(done)
            assert done.code == 3
            assert f"{limit:,}" in done.told
            assert len(done.told.splitlines()) == 1
            assert limit / 2 < tokens(run) <= limit
            assert run.manifest()["state"] == "budget"
        assert server.requests() < IMAGES * an_image
        assert uncanny_here(*arguments, "--max-tokens-total", "1000000").code == 0
        assert server.requests() == run.manifest()["totals"]["calls"] == IMAGES * an_image
    assert run.statuses() == {"ok": IMAGES}
    spent = [(call["input_tokens"], call["output_tokens"]) for call in run.calls()]
    assert tokens(run) == sum(given + made for given, made in spent)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schedule", "number"), [("packed", 30), pytest.param("paper", 10, marks=pytest.mark.slow)]
)
def test_most_of_a_budget_goes_into_whole_images(schedule: str, number: int, tmp_path: Path) -> None:
    """A limit of 58 % of what all cost: at least half of them are finished, and in order."""
    images = pictures(tmp_path / "in", number)
    with serving(objects=8, latency_ms=20) as server:
        options = ("--no-report", "--schedule", schedule)
        arguments = ("annotate", images, *server.asked("openai", "gpt-4o"), *options)
        whole = Run(tmp_path / "whole")
        assert uncanny_here(*arguments, "-o", whole.path).code == 0
        limit = 0.58 * whole.manifest()["totals"]["cost_usd"]
        for concurrency in (8, 32):
            run = Run(tmp_path / f"{concurrency}")
            at_once = ("--concurrency", concurrency)
            done = uncanny_here(*arguments, *at_once, "-o", run.path, "--max-cost-usd", limit)
            assert done.code == 3
            assert run.manifest()["totals"]["cost_usd"] <= limit
            assert len(run.records()) >= number / 2


def test_terminal_stop_message_records_and_report_have_the_same_figures(tmp_path: Path, run: Run) -> None:
    """Also where answers are booked by estimate, and where calls come back after one that did not fit."""
    images = pictures(tmp_path / "in", 20)
    with serving(objects=2, latency_ms=20, faults={"blocked": 0.1}, seed=3) as server:
        asked = server.asked(name="gpt-4o")
        limit = ("--max-cost-usd", "0.4", "--concurrency", "3")
        done = uncanny_here("annotate", images, *asked, "-o", run.path, *limit)
    assert done.code == 3, done.err
    totals = run.manifest()["totals"]
    page = (run.path / "report.html").read_text(encoding="utf-8")
    shown = " ".join(re.sub("<[^>]*>", " ", page).split())
    spent = totals["sums"]["cost_usd"]
    booked, guessed = spent + totals["estimated"]["cost_usd"], totals["estimated"]["cost_usd"]
    stop = f"{cost(booked)} of {cost(0.4)} spent, {cost(guessed)} of it estimated for answers without usage"
    assert stop in done.err
    assert stop in run.manifest()["error"]
    assert f"Cost     at least {cost(spent)}, " in done.out
    assert f"cost at least {cost(spent)}" in shown
    assert f"Time     {duration(totals['seconds'])}\n" in done.out
    assert f"wall time {duration(totals['seconds'])}" in shown
    measured = [call["cost_usd"] for call in run.calls() if call["cost_usd"] is not None]
    assert sum(measured) <= spent * 1.000001


def test_a_finished_run_over_its_limit_is_still_finished(images: Path, run: Run) -> None:
    with serving(objects=2) as server:
        arguments = ("annotate", images, *server.asked(), "-o", run.path, "--no-report")
        assert uncanny_here(*arguments).code == 0
        assert uncanny_here(*arguments, "--max-tokens-total", "10").code == 0


def test_the_cost_limit_is_never_passed_and_a_higher_one_goes_on(images: Path, run: Run) -> None:
    with serving(objects=2) as server:
        arguments = ("annotate", images, *server.asked("openai", "gpt-4o"), "-o", run.path, "--no-report")
        done = uncanny_here(*arguments, "--max-cost-usd", "0.08")
        assert (done.code, len(done.told.splitlines())) == (3, 1)
        assert "$0.0800" in done.told
        # The most a final text may cost, 5 cents, has to be left before it is asked for.
        assert 0.03 < run.manifest()["totals"]["cost_usd"] <= 0.08
        assert server.requests() < IMAGES * AN_IMAGE
        done = uncanny_here(*arguments, "--max-cost-usd", "5", "--json")
        assert done.code == 0
        assert server.requests() == IMAGES * AN_IMAGE
    total = sum(call["cost_usd"] for call in run.calls())
    assert done.json()["totals"]["cost_usd"] == pytest.approx(total)
    assert sum(record.usage.cost_usd or 0 for record in run.records()) == pytest.approx(total)


@pytest.mark.parametrize("name", ["openai/unheard-of", "openai-compatible/thing"])
def test_a_cost_limit_needs_a_price(name: str, images: Path, run: Run) -> None:
    with serving() as server:
        provider, _, model = name.partition("/")
        arguments = ("annotate", images, *server.asked(provider, model), "-o", run.path)
        done = uncanny_here(*arguments, "--max-cost-usd", "1")
        assert server.requests() == 0
    assert (done.code, done.out, len(done.told.splitlines())) == (2, "", 1)
    assert name in done.told
    assert "--prices" in done.told
    assert not (run.path / "annotations.jsonl").exists()


def test_the_fallback_takes_over_when_the_budget_is_spent(images: Path, run: Run) -> None:
    with serving(objects=2) as hosted, serving(objects=2) as own:
        fallback = ("--fallback", "vllm/own", "--base-url", f"vllm={own.v1}")
        arguments = ("annotate", images, *hosted.asked("openai", "gpt-4o"), *fallback, "-o", run.path)
        done = uncanny_here(*arguments, "--max-cost-usd", "0.08", "--no-report")
        assert (done.code, done.told) == (0, "")
        assert hosted.requests() + own.requests() == IMAGES * AN_IMAGE
        assert models(run) == {"openai/gpt-4o": hosted.requests(), "vllm/own": own.requests()}
        assert min(models(run).values()) > 2
    assert run.statuses() == {"ok": IMAGES}
    paid = sum(call["cost_usd"] for call in run.calls() if call["model"] == "openai/gpt-4o")
    assert 0.03 < paid <= 0.08  # the rest was reserved for calls that cost less than they might
    shared = sum(
        (Counter((record.model_extra or {}).get("models", {})) for record in run.records()), Counter()
    )
    assert set(shared) == {"openai/gpt-4o", "vllm/own"}


def test_the_fallback_takes_over_from_a_wrong_key(images: Path, run: Run) -> None:
    with serving(objects=2) as hosted, serving(objects=2) as own:
        fallback = ("--fallback", "vllm/own", "--base-url", f"vllm={own.v1}")
        arguments = ("annotate", images, *hosted.asked(), *fallback, "-o", run.path, "--no-report")
        done = uncanny_here(*arguments, env={"OPENAI_API_KEY": "wrong-key"})
        assert (done.code, len(done.told.splitlines())) == (0, 1)
        assert done.told.startswith("Warning: openai/any: HTTP 401")
        assert own.requests() == IMAGES * AN_IMAGE
        assert hosted.requests() <= 8
    assert models(run) == {"vllm/own": IMAGES * AN_IMAGE}
    assert run.statuses() == {"ok": IMAGES}
    assert run.manifest()["fallback"] == "vllm/own"


def test_the_fallback_takes_over_when_the_quota_is_used_up(
    images: Path, run: Run, httpserver: HTTPServer
) -> None:
    error = {"message": "You exceeded your current quota", "code": "insufficient_quota", "type": "x"}
    httpserver.expect_request("/v1/chat/completions").respond_with_json({"error": error}, status=429)
    primary = ("--model", "openai/any", "--base-url", httpserver.url_for("/v1"))
    with serving(objects=2) as own:
        fallback = ("--fallback", "vllm/own", "--base-url", f"vllm={own.v1}")
        done = uncanny_here("annotate", images, *primary, *fallback, "-o", run.path, "--no-report")
        assert done.code == 0
        assert own.requests() == IMAGES * AN_IMAGE
    assert "quota" in done.told
    assert len(httpserver.log) <= 8
    without = uncanny_here("annotate", images, *primary, "-o", run.path.with_name("without"))
    assert (without.code, without.out, len(without.told.splitlines())) == (2, "", 1)
    assert "Add credit" in without.told


@pytest.mark.slow
def test_the_fallback_takes_over_from_a_dead_server(images: Path, run: Run) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but nobody listens
        dead = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with serving(objects=2) as own:
            fallback = ("--fallback", "vllm/own", "--base-url", f"vllm={own.v1}", "--base-url", dead)
            arguments = ("annotate", images, "--model", "openai/any", *fallback, "-o", run.path)
            done = uncanny_here(*arguments, "--no-report")
            assert done.code == 0
            assert own.requests() == IMAGES * AN_IMAGE
    assert "cannot be reached" in done.told
    assert run.statuses() == {"ok": IMAGES}
