"""Runs in the background: the same records for less, each question handed in once, whatever happens."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from threading import Lock

import orjson
import pytest
from werkzeug import Request, Response

from tests.runs.e2e import Run, Server, check_no_traceback, pictures, serving, start, uncanny_here
from tests.runs.test_e2e_batches import found
from tests.runs.test_e2e_discount_odd import between

# Sessions that wait for batches: seconds each.
pytestmark = pytest.mark.slow

IMAGES = 4
# One question goes ahead alone.
HANDED_IN = IMAGES - 1


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return pictures(tmp_path / "in", IMAGES)


def command(images: Path, server: Server, run: Run, *more: object, name: str = "any") -> list[object]:
    schedule = () if "--schedule" in more else ("--schedule", "single")
    options = (*schedule, "--no-report", "-q", *more)
    return ["annotate", images, *server.asked(name=name), "-o", run.path, *options]


def background(
    images: Path, server: Server, run: Run, *more: object, window: str = "2h", name: str = "any"
) -> tuple[int, str]:
    done = uncanny_here(*command(images, server, run, "--completion-window", window, *more, name=name))
    check_no_traceback(done)
    return done.code, done.err


def asked(server: Server) -> tuple[int, int]:
    """Calls that were handed in, and single calls."""
    stats = server.stats()
    return stats["background"], stats["requests"]


def entries(run: Run) -> list[bool]:
    """Of each line of the journal, whether it is about the end."""
    lines = (run.path / "background.jsonl").read_bytes().splitlines()
    return [orjson.loads(line).get("done", False) for line in lines]


@pytest.mark.parametrize("schedule", ["single", "packed"])
def test_a_run_in_the_background_finds_the_same(
    schedule: str, images: Path, run: Run, tmp_path: Path
) -> None:
    alone = Run(tmp_path / "alone")
    with serving(objects=2) as server:
        assert uncanny_here(*command(images, server, alone, "--schedule", schedule)).code == 0
        needed = server.requests()
        assert background(images, server, run, "--schedule", schedule) == (0, "")
        assert asked(server) == (needed - 1, needed + 1)
    assert found(run) == found(alone)
    totals, before = run.manifest()["totals"], alone.manifest()["totals"]
    for name in ("calls", "output_tokens", "replayed"):
        assert totals[name] == before[name]
    assert sorted(entries(run)) == [False] * (needed - 1) + [True] * (needed - 1)


@pytest.mark.parametrize(("window", "share"), [("2h", 0.7), ("8h", 0.6)])
def test_answers_in_the_background_cost_less(
    window: str, share: float, images: Path, run: Run, tmp_path: Path
) -> None:
    alone = Run(tmp_path / "alone")
    with serving() as server:
        assert uncanny_here(*command(images, server, alone, name="gpt-4o")).code == 0
    with serving() as server:
        assert background(images, server, run, window=window, name="gpt-4o")[0] == 0
    full = {call["image"]: call["cost_usd"] for call in alone.calls()}
    costs = {call["image"]: call["cost_usd"] for call in run.calls()}
    ratios = sorted(round(costs[image] / full[image], 6) for image in full)
    assert ratios == [share] * HANDED_IN + [1.0]
    assert run.manifest()["totals"]["cost_usd"] == pytest.approx(sum(costs.values()))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_stopped_run_waits_for_what_it_handed_in(how: signal.Signals, images: Path, run: Run) -> None:
    with serving(batch_seconds=3.0) as server:
        arguments = command(images, server, run, "--completion-window", "2h")
        with start(*arguments) as process:
            while not (run.path / "background.jsonl").exists() or len(entries(run)) < HANDED_IN:
                assert process.poll() is None
                time.sleep(0.02)
            process.send_signal(how)
            _, err = process.communicate(timeout=30)
        if how is signal.SIGINT:
            assert b"3 questions under way in the background; the same command waits" in err
        done = uncanny_here(*arguments)
        assert (done.code, done.err) == (0, "")
        assert asked(server) == (HANDED_IN, 1)
    assert run.statuses() == {"ok": IMAGES}


@pytest.mark.parametrize("fault", ["expired", "500"])
def test_a_question_without_an_answer_is_handed_in_once_more_and_asked_then(
    fault: str, images: Path, run: Run
) -> None:
    with serving(batch_faults={fault: 1.0}) as server:
        code, err = background(images, server, run)
        assert asked(server) == (2 * HANDED_IN, IMAGES)
    assert (code, run.statuses()) == (0, {"ok": IMAGES})
    assert "3 questions without an answer in the background were asked directly, at full price" in err


def test_a_rejected_question_is_asked_at_once(images: Path, run: Run) -> None:
    with serving(batch_faults={"rejected": 1.0}) as server:
        code, err = background(images, server, run)
        assert asked(server) == (0, IMAGES)
    assert (code, run.statuses()) == (0, {"ok": IMAGES})
    assert "asked directly" in err


@pytest.mark.parametrize("fault", ["refusal", "length", "malformed"])
def test_answers_in_the_background_are_read_like_others(fault: str, images: Path, run: Run) -> None:
    with serving(batch_faults={fault: 1.0}) as server:
        background(images, server, run)
        handed_in, single = asked(server)
    assert handed_in == HANDED_IN
    assert single == (1 if fault == "refusal" else IMAGES)  # repairs are single calls
    statuses = run.statuses()
    assert statuses.get("ok", 0) == (1 if fault == "refusal" else IMAGES)


def test_the_budget_holds_in_the_background(images: Path, run: Run) -> None:
    with serving() as server:
        code, _err = background(images, server, run, "--max-cost-usd", "0.05", name="gpt-4o")
    assert code != 0
    assert run.manifest()["totals"]["cost_usd"] <= 0.05
    assert run.manifest()["state"] == "budget"


def test_what_cannot_be_asked_in_the_background_is_said_at_the_start(images: Path, run: Run) -> None:
    with serving() as server:
        claude = ("annotate", images, *server.asked("anthropic"), "-o", run.path)
        done = uncanny_here(*claude, "--completion-window", "2h")
        assert done.code == 2
        assert "cannot be asked in the background" in done.err
        both = uncanny_here(*command(images, server, run, "--completion-window", "2h", "--batch"))
        assert both.code == 2
        assert "exclude each other" in both.err
        assert server.requests() == 0


def test_without_the_option_a_run_says_what_is_under_way(images: Path, run: Run) -> None:
    with serving(batch_seconds=60.0) as server:
        with start(*command(images, server, run, "--completion-window", "8h")) as process:
            while not (run.path / "background.jsonl").exists() or len(entries(run)) < HANDED_IN:
                assert process.poll() is None
                time.sleep(0.02)
            process.kill()
        done = uncanny_here(*command(images, server, run))
    assert run.statuses() == {"ok": IMAGES}
    assert "3 questions under way in the background; without" in done.err


def test_what_is_never_answered_is_handed_in_once_more_and_asked_then(
    images: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uncanny.client.background.LONGEST", timedelta(seconds=0.5))
    with serving(batch_seconds=600.0) as server:
        code, err = background(images, server, run)
        assert asked(server) == (2 * HANDED_IN, IMAGES)
    assert (code, run.statuses()) == (0, {"ok": IMAGES})
    assert "no answer within 0:00:00.5" in err


def test_what_a_server_refuses_as_too_much_slows_down_what_is_handed_in(tmp_path: Path, run: Run) -> None:
    """Each question would otherwise ask again, and wait twice as long, by itself."""
    many = pictures(tmp_path / "many", 40)
    open_now, most, refused, counting = 0, 3, 0, Lock()

    def change(request: Request, forward: Callable[[], Response]) -> Response | None:
        nonlocal open_now, refused
        if request.method != "POST" or request.path != "/v1/responses":
            return None
        with counting:
            open_now += 1
            too_many = open_now > most
            refused += too_many
        try:
            if too_many:
                return Response("{}", 429)
            time.sleep(0.05)
            return forward()
        finally:
            with counting:
                open_now -= 1

    with serving() as server, between(server, change) as odd:
        assert background(many, odd, run) == (0, "")
        assert server.stats()["background"] == 39
    assert refused < 39
