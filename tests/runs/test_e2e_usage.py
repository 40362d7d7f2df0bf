"""Usage that cannot be true is unmeasured, and no reason to lose a run: in an answer or in a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tests.bundled_runs import BundledRuns
from tests.runs.e2e import Run, check_no_traceback, edit_answers, pictures, serving, uncanny_here

pytestmark = pytest.mark.slow

ABSURD = [
    "9000000000000000000",
    "1" + 30 * "0",
    "1" + 5000 * "0",
    "1e400",
    "-5",
    "true",
    '"many"',
    "1.5",
    "[]",
    "null",
]
BODIES = {
    "openai": '{"model": "m", "choices": [{"message": {"role": "assistant", "content": "Hard to say."}, '
    '"finish_reason": "stop"}], "usage": {"prompt_tokens": FIGURE, "completion_tokens": 7, '
    '"prompt_tokens_details": {"cached_tokens": FIGURE}}}',
    "anthropic": '{"type": "message", "model": "m", "content": [{"type": "text", "text": "Hard to say."}], '
    '"stop_reason": "end_turn", "usage": {"input_tokens": FIGURE, "output_tokens": 7, '
    '"cache_read_input_tokens": FIGURE}}',
}


def answering(server: HTTPServer, provider: str, figure: str) -> tuple[str, ...]:
    """A server that reports this usage with every answer; the options that send a run there."""
    path, url = {"openai": ("/v1/chat/completions", "/v1"), "anthropic": ("/v1/messages", "")}[provider]
    body = BODIES[provider].replace("FIGURE", figure)

    def answer(_: Request) -> Response:
        return Response(body, content_type="application/json")

    server.expect_request(path).respond_with_handler(answer)
    return "--model", f"{provider}/gpt-4o", "--base-url", server.url_for(url)


@pytest.mark.parametrize("figure", ABSURD, ids=lambda figure: figure[:20])
@pytest.mark.parametrize("provider", BODIES)
def test_an_answer_with_absurd_usage_is_an_answer(
    provider: str, figure: str, httpserver: HTTPServer, tmp_path: Path, run: Run
) -> None:
    images = pictures(tmp_path / "in", 3)
    asked = answering(httpserver, provider, figure)
    done = uncanny_here("detect", images, *asked, "-o", run.path, "--max-tokens-total", "1000000")
    check_no_traceback(done)
    assert (done.code, done.told) == (0, "")
    # A verdict that is not clear is asked for once more.
    assert len(httpserver.log) == 6
    totals = run.manifest()["totals"]
    assert (totals["input_tokens"], totals["cost_usd"]) == (None, None)
    assert totals["output_tokens"] == 6 * 7
    assert {record.usage.input_tokens for record in run.records()} == {None}
    assert {call["cost_usd"] for call in run.calls()} == {None}
    again = uncanny_here("detect", images, *asked, "-o", run.path)
    assert (again.code, len(httpserver.log)) == (0, 6)


LIES: dict[str, dict[str, Any]] = {
    "cached beyond the input": {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 10**8}},
    "written beyond the input": {
        "prompt_tokens": 100,
        "prompt_tokens_details": {"cache_write_tokens": 10**8},
    },
    "input": {"prompt_tokens": 10**8},
    "all cached": {"prompt_tokens": 10**9, "prompt_tokens_details": {"cached_tokens": 10**9}},
    "a hundred times the input": {"prompt_tokens": 300_000},
    "output": {"prompt_tokens": 100, "completion_tokens": 10**8},
    "output beyond its limit": {"prompt_tokens": 100, "completion_tokens": 16_001},
    "the cost": {"prompt_tokens": 100, "cost": 1_000_000.0},
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("provider", ["openai", "openrouter", "anthropic"])
def test_no_server_can_use_up_a_budget_with_figures_that_cannot_be_true(
    provider: str, lie: str, httpserver: HTTPServer, tmp_path: Path, run: Run
) -> None:
    usage: dict[str, Any] = {"completion_tokens": 7, **LIES[lie]}
    if provider == "anthropic":
        details = usage.get("prompt_tokens_details", {})
        usage = {
            "input_tokens": usage["prompt_tokens"],
            "output_tokens": usage["completion_tokens"],
            "cache_read_input_tokens": details.get("cached_tokens"),
            "cache_creation_input_tokens": details.get("cache_write_tokens"),
        }
    model, path, url = {
        "openai": ("gpt-4o", "/v1/chat/completions", "/v1"),
        "openrouter": ("openai/gpt-4o", "/v1/chat/completions", "/v1"),
        "anthropic": ("claude-sonnet-4-5", "/v1/messages", ""),
    }[provider]
    body = orjson.loads(BODIES["anthropic" if provider == "anthropic" else "openai"].replace("FIGURE", "0"))
    httpserver.expect_request(path).respond_with_json(body | {"usage": usage})
    asked = ("--model", f"{provider}/{model}", "--base-url", httpserver.url_for(url))
    images = pictures(tmp_path / "in", 3)
    key = {"OPENROUTER_API_KEY": "k-of-a-test"}
    limits = ("--max-cost-usd", "0.3", "--max-tokens-total", "60000")
    done = uncanny_here("detect", images, *asked, "-o", run.path, *limits, env=key)
    check_no_traceback(done)
    assert (done.code, len(httpserver.log)) == (0, 6), done
    totals = run.manifest()["totals"]
    sums, estimated = totals["sums"], totals.get("estimated", {"tokens": 0, "cost_usd": 0})
    assert sums["cost_usd"] + estimated["cost_usd"] < 0.3
    assert sums["input_tokens"] + sums["output_tokens"] + estimated["tokens"] < 60_000
    assert (sums["cached_tokens"] or 0) <= (sums["input_tokens"] or 0)


def test_what_a_server_says_that_can_be_true_is_booked(
    httpserver: HTTPServer, tmp_path: Path, run: Run
) -> None:
    usage = {
        "prompt_tokens": 2_000,
        "completion_tokens": 9,
        "prompt_tokens_details": {"cached_tokens": 2_000},
        "cost": 0.0123,
    }
    body = orjson.loads(BODIES["openai"].replace("FIGURE", "0")) | {"usage": usage}
    httpserver.expect_request("/v1/chat/completions").respond_with_json(body)
    asked = ("--model", "openrouter/openai/gpt-4o", "--base-url", httpserver.url_for("/v1"))
    key = {"OPENROUTER_API_KEY": "k-of-a-test"}
    images = pictures(tmp_path / "in", 1)
    done = uncanny_here("detect", images, *asked, "-o", run.path, "--max-cost-usd", "1", env=key)
    assert done.code == 0, done
    totals = run.manifest()["totals"]
    assert (totals["input_tokens"], totals["cached_tokens"], totals["output_tokens"]) == (4_000, 4_000, 18)
    assert totals["cost_usd"] == pytest.approx(0.0246)


def rewritten(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    rows = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    for row in rows:
        change(row)
    # As text, since no JSON library of ours writes such numbers.
    text = b"".join(orjson.dumps(row) + b"\n" for row in rows)
    path.write_bytes(text.replace(b'"ABSURD"', b"27000000000000000000"))


FIGURES = dict.fromkeys(("input_tokens", "cached_tokens", "output_tokens", "cost_usd"), "ABSURD")


@pytest.mark.parametrize("killed", [False, True])
def test_a_run_with_absurd_usage_goes_on_and_is_reported(killed: bool, tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", 4)
    with serving(objects=2) as server:
        begun = uncanny_here(
            "annotate", images, *server.asked("openai", "gpt-4o"), "-o", run.path, "--limit", "2"
        )
    assert begun.code == 0
    rewritten(run.path / "annotations.jsonl", lambda row: row["usage"].update(FIGURES))
    rewritten(run.path / "calls.jsonl", lambda row: row.update(FIGURES))
    manifest = run.manifest()
    manifest["state"] = "running" if killed else "interrupted"
    manifest["totals"] |= {"sums": dict.fromkeys(FIGURES, 9e18), "input_tokens": 9 * 10**18}
    (run.path / "run.json").write_bytes(orjson.dumps(manifest))
    report = uncanny_here("report", run.path)
    check_no_traceback(report)
    assert report.code == 0
    with serving(objects=2) as server:
        asked = server.asked("openai", "gpt-4o")
        done = uncanny_here("annotate", images, *asked, "-o", run.path, "--json")
    check_no_traceback(done)
    assert done.code == 0
    totals = run.manifest()["totals"]
    assert (totals["ok"], totals["input_tokens"], totals["cost_usd"]) == (4, None, None)
    assert totals["unmeasured"]["input_tokens"] > 0


def test_absurd_answers_in_the_cache_are_replayed_unmeasured(tmp_path: Path, run: Run) -> None:
    images, answers = pictures(tmp_path / "in", 2), tmp_path / "answers"
    with serving(objects=2) as server:
        arguments = (
            "detect",
            images,
            *server.asked("openai", "gpt-4o"),
            "--cache-dir",
            answers,
            "--no-report",
        )
        assert uncanny_here(*arguments, "-o", run.path).code == 0
        edit_answers(answers, lambda call: call.update(input_tokens=9 * 10**18, cost_usd=2e13))
        requests = server.requests()
        again = Run(tmp_path / "again")
        assert uncanny_here(*arguments, "-o", again.path).code == 0
        assert server.requests() == requests
    assert {call["input_tokens"] for call in again.calls()} == {None}
    assert {record.usage.input_tokens for record in again.records()} == {None}


@pytest.mark.parametrize("field", ["input_tokens", "output_tokens", "cost_usd"])
@pytest.mark.parametrize("number", ["1" + 30 * "0", "1e400", "-1"])
def test_verdicts_and_annotations_with_absurd_usage_are_read(
    field: str, number: str, bundled_run: BundledRuns, tmp_path: Path
) -> None:
    verdicts = bundled_run("realism").copy(tmp_path / "realism")
    a, b = (bundled_run("annotate").copy(tmp_path / name) for name in "ab")
    for file in (verdicts / "verdicts.jsonl", a / "annotations.jsonl"):
        rewritten(file, lambda row: row["usage"].update({field: "ABSURD"}))
        file.write_bytes(file.read_bytes().replace(b"27000000000000000000", number.encode()))
    for command in (
        ("realism", "score", verdicts, "--resamples", "0", "--json", "-"),
        ("report", a, "--max-images", "1"),
        ("audit", f"a={a}", f"b={b}", "--resamples", "0", "--json", "-"),
    ):
        done = uncanny_here(*command)
        check_no_traceback(done)
        assert done.code == 0


def test_other_huge_numbers_in_a_record_do_no_harm_to_the_report(
    bundled_run: BundledRuns, tmp_path: Path
) -> None:
    folder = bundled_run("annotate").copy(tmp_path / "run")
    rewritten(folder / "annotations.jsonl", lambda row: row.update(other={"keys": ["ABSURD"]}))
    done = uncanny_here("report", folder)
    check_no_traceback(done)
    assert done.code == 0


def test_a_side_that_no_picture_has_is_an_invalid_line(bundled_run: BundledRuns, tmp_path: Path) -> None:
    folder = bundled_run("annotate").copy(tmp_path / "run")
    rewritten(folder / "annotations.jsonl", lambda row: row.update(width="ABSURD"))
    done = uncanny_here("report", folder)
    check_no_traceback(done)
    assert done.code == 2
    assert "field 'width'" in done.err


def test_a_number_of_calls_that_cannot_be_true_is_an_invalid_line(
    bundled_run: BundledRuns, tmp_path: Path
) -> None:
    folder = bundled_run("realism").copy(tmp_path / "run")
    rewritten(folder / "verdicts.jsonl", lambda row: row["usage"].update(calls="ABSURD"))
    done = uncanny_here("realism", "score", folder, "--json", "-")
    check_no_traceback(done)
    assert (done.code, done.out) == (2, "")
    assert "calls" in done.err


def test_an_answer_that_serves_two_images_is_paid_once(
    httpserver: HTTPServer, tmp_path: Path, run: Run
) -> None:
    image = pictures(tmp_path / "in", 1) / "p00.png"
    with Image.open(image) as opened:
        note = PngInfo()
        note.add_text("Comment", "other bytes, the same pixels")
        opened.save(image.with_name("again.png"), pnginfo=note)
    # As sent, in one format and without what is not pixels, both images are one.
    asked = answering(httpserver, "openai", "1000")
    done = uncanny_here("detect", image.parent, *asked, "-o", run.path, "--image-format", "jpeg")
    assert done.code == 0, done
    # A verdict that is not clear is asked for once more.
    assert (len(httpserver.log), len(run.calls())) == (2, 4)
    totals = run.manifest()["totals"]
    assert (totals["calls"], totals["replayed"], totals["input_tokens"]) == (2, 2, 2000)
