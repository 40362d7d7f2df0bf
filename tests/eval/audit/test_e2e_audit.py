"""Audits of image folders: by the demo model, over servers, through faults, stopped and taken up again."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.runs.e2e import Run, check_no_traceback, finish, pictures, serving, start, uncanny_here
from uncanny.errors import BudgetError, StoppedError, UsageError
from uncanny.eval.audit.run import audit, audit_async
from uncanny.eval.audit.score.result import AuditResult
from uncanny.runs.stop import Stop

SCENES = ("rendered=scenes:rendered", "drawn=scenes:drawn")
# Calls for an image with two objects.
AN_IMAGE = 1 + 1 + 1
FAST = ("--resamples", 50, "--no-report", "--json", "-")


def naive(run: Run) -> tuple[float, float]:
    """MAI and AF by plain loops over what the records say and the model is sure of."""
    images = [record for record in run.records() if record.status == "ok"]
    sure = (a for record in images for a in record.anomalies if a.confidence is None or a.confidence >= 0.5)
    unreal = [1 - anomaly.severity / 100 for anomaly in sure]
    return sum(unreal) / len(images), len(unreal) / len(images)


def check_scores(scores: dict[str, Any], out: Path) -> None:
    for name, score in scores["generators"].items():
        mai, af = naive(Run(out / name))
        assert (score["mai"], score["af"], score["cap"]) == pytest.approx((mai, af, mai * af))


@pytest.mark.slow
def test_scenes_by_style_with_the_demo_model(tmp_path: Path) -> None:
    done = uncanny_here("audit", *SCENES, "--model", "demo", "-o", tmp_path / "a", *FAST)
    assert done.code == 0
    scores = done.json()
    assert {name: score["images"] for name, score in scores["generators"].items()} == {
        "rendered": 14,
        "drawn": 20,
    }
    assert all(score["anomalies"] > 0 for score in scores["generators"].values())
    check_scores(scores, tmp_path / "a")
    names = {record.image for record in Run(tmp_path / "a" / "drawn").records()}
    assert all(Path(name).name.startswith("d") for name in names)
    both = uncanny_here("audit", "all=scenes", "--model", "demo", "-o", tmp_path / "b", *FAST).json()
    images, anomalies = (
        sum(score[key] for score in scores["generators"].values()) for key in ("images", "anomalies")
    )
    assert both["generators"]["all"]["images"] == images == 34
    assert both["generators"]["all"]["anomalies"] == anomalies


@pytest.fixture(scope="module")
def demo_scores(tmp_path_factory: pytest.TempPathFactory) -> Any:
    out = tmp_path_factory.mktemp("demo") / "a"
    return uncanny_here("audit", *SCENES, "--model", "demo", "-o", out, "--repeats", 1, *FAST).json()


@pytest.mark.slow
@pytest.mark.parametrize(
    "provider", ["openai", *(pytest.param(name, marks=pytest.mark.slow) for name in ("anthropic", "vllm"))]
)
def test_scenes_over_a_server_are_those_of_the_demo(tmp_path: Path, provider: str, demo_scores: Any) -> None:
    with serving() as server:
        options = (*server.asked(provider, "demo"), "-o", tmp_path / "a", "--repeats", 1)
        hosted = uncanny_here("audit", *SCENES, *options, *FAST).json()
    for name, score in demo_scores["generators"].items():
        for key in ("images", "mai", "af", "cap", "u_mean", "ci", "severities", "names"):
            assert hosted["generators"][name][key] == score[key]
    assert hosted["order"] == demo_scores["order"]


@pytest.mark.slow
def test_faults_that_pass_leave_no_trace_in_the_figures(tmp_path: Path) -> None:
    with serving() as server:
        calm = uncanny_here("audit", *SCENES, *server.asked(), "-o", tmp_path / "a", *FAST).json()
    with serving(faults={"429": 0.1, "500": 0.05, "cut": 0.05}) as server:
        done = uncanny_here("audit", *SCENES, *server.asked(), "-o", tmp_path / "b", *FAST)
        assert server.stats()["faults"]
    assert done.code == 0
    for name, score in calm["generators"].items():
        assert done.json()["generators"][name]["mai"] == score["mai"]


def test_failed_images_are_left_out_counted_and_asked_again(tmp_path: Path) -> None:
    folders = [f"{name}={pictures(tmp_path / name, 12, first)}" for name, first in (("a", 0), ("b", 12))]
    out = tmp_path / "out"
    # Which images are struck is chance, how many requests is not: too few for all images of a folder.
    with serving(objects=2, faults={"refusal": 0.08}) as server:
        done = uncanny_here("audit", *folders, *server.asked(), "-o", out, *FAST)
        assert 4 <= server.stats()["faults"]["refusal"] < 12
    check_no_traceback(done)
    assert done.code == 1
    scores = done.json()
    left_out = {name: sum(score["left_out"].values()) for name, score in scores["generators"].items()}
    assert sum(left_out.values()) > 0
    for name, score in scores["generators"].items():
        statuses = Run(out / name).statuses()
        assert score["images"] == statuses["ok"] == 12 - left_out[name]
        assert score["left_out"]["partial"] == statuses["partial"]
        assert score["left_out"]["failed"] == statuses["failed"]
        assert any(f"{name}: {left_out[name]} of 12 images" in notice for notice in scores["notices"]) == (
            left_out[name] > 0
        )
    check_scores(scores, out)
    with serving(objects=2) as server:
        done = uncanny_here("audit", *folders, *server.asked(), "-o", out, *FAST)
        requests = server.requests()
    assert done.code == 0
    assert {score["images"] for score in done.json()["generators"].values()} == {12}
    # Images that were whole are not asked again.
    assert 0 < requests <= AN_IMAGE * sum(left_out.values())


def test_an_unreadable_image_is_no_flawless_one(tmp_path: Path) -> None:
    folder = pictures(tmp_path / "images", 3)
    (folder / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nno more")
    with serving(objects=1) as server:
        done = uncanny_here("audit", f"a={folder}", *server.asked(), "-o", tmp_path / "out", *FAST)
    assert done.code == 1
    score = done.json()["generators"]["a"]
    assert (score["images"], score["left_out"]["unreadable"]) == (3, 1)


@pytest.mark.slow
def test_a_spent_budget_stops_the_audit_and_more_of_it_goes_on(tmp_path: Path) -> None:
    folders = [f"{name}={pictures(tmp_path / name, 4, first)}" for name, first in (("a", 0), ("b", 4))]
    out = tmp_path / "out"
    with serving(objects=2) as server:
        options = (*server.asked(), "-o", out, "--concurrency", 2, *FAST)
        whole = uncanny_here("audit", *folders, *server.asked(), "-o", tmp_path / "whole", *FAST)
        assert whole.code == 0
        totals = [Run(tmp_path / "whole" / name).manifest()["totals"] for name in "ab"]
        used = [each["input_tokens"] + each["output_tokens"] for each in totals]
        # Enough for the first folder, not for both: the limit is that of the audit.
        limit = used[0] + used[1] * 3 // 4
        done = uncanny_here("audit", *folders, *options, "--max-tokens-total", limit)
        assert (done.code, done.out) == (3, "")
        assert "b: Stopped" in done.err
        assert Run(out / "a").manifest()["state"] == "finished"
        done = uncanny_here("audit", *folders, *options, "--max-tokens-total", 2 * sum(used))
    assert done.code == 0
    assert done.json()["generators"] != {}
    check_scores(done.json(), out)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_audit_goes_on_where_it_was(tmp_path: Path, number: signal.Signals) -> None:
    folders = [f"{name}={pictures(tmp_path / name, 5, first)}" for name, first in (("a", 0), ("b", 5))]
    with serving(objects=2) as server:
        calm = uncanny_here("audit", *folders, *server.asked(), "-o", tmp_path / "calm", *FAST)
        all_asked = server.requests()
    with serving(objects=2, latency_ms=30) as server:
        command = ("audit", *folders, *server.asked(), "-o", tmp_path / "out", "--concurrency", 4, *FAST)
        with start(*command) as process:
            while server.requests() < 0.7 * all_asked:
                assert process.poll() is None
                time.sleep(0.01)
            process.send_signal(number)
            done = finish(process)
        if number == signal.SIGINT:
            assert (done.code, done.out) == (130, "")
            assert "b: Interrupted" in done.err
        again = uncanny_here(*command)
        assert server.requests() <= all_asked + (0 if number == signal.SIGINT else 8)
    assert again.code == 0
    for name, score in calm.json()["generators"].items():
        assert again.json()["generators"][name]["mai"] == score["mai"]
        assert again.json()["generators"][name]["ci"] == score["ci"]


def test_a_finished_audit_again_asks_nothing(tmp_path: Path) -> None:
    folder, out = pictures(tmp_path / "a", 3), tmp_path / "out"
    with serving(objects=2) as server:
        first = uncanny_here("audit", f"a={folder}", *server.asked(), "-o", out, *FAST)
        before = server.requests()
        again = uncanny_here("audit", f"a={folder}", *server.asked(), "-o", out, *FAST)
        assert server.requests() == before
    assert again.json() == first.json()
    # Its runs are runs like any other.
    offline = uncanny_here("audit", f"a={out / 'a'}", *FAST)
    assert offline.json()["generators"]["a"]["ci"] == first.json()["generators"]["a"]["ci"]


def test_mixing_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    folder = pictures(tmp_path / "images", 2)
    assert uncanny_here("audit", SCENES[0], "--model", "demo", "-o", tmp_path / "a", *FAST).code == 0
    made = f"rendered={tmp_path / 'a' / 'rendered'}"
    with serving(objects=1) as server:
        command = ("audit", made, f"b={folder}", *server.asked(), "-o", tmp_path / "b", *FAST)
        refused = uncanny_here(*command)
        assert refused.code == 2
        assert "models: rendered: demo; b: openai/any" in refused.err
        assert server.requests() == 0
        assert not (tmp_path / "b").exists()
        allowed = uncanny_here(*command, "--allow-mixed")
    assert allowed.code == 0
    assert allowed.json()["mixed"] == [
        {"aspect": "model", "what": "models", "values": {"rendered": ["demo"], "b": ["openai/any"]}}
    ]


def test_a_dry_run_asks_and_leaves_nothing(tmp_path: Path) -> None:
    with serving() as server:
        done = uncanny_here("audit", *SCENES, *server.asked(), "-o", tmp_path / "a", "--dry-run")
        assert server.requests() == 0
    assert (done.code, done.err) == (0, "")
    assert "Images   14, 14 to do" in done.out
    assert "Images   20, 20 to do" in done.out
    assert list(tmp_path.iterdir()) == []


def test_names_that_make_no_folder(tmp_path: Path) -> None:
    for name in ("../a", "a/b", ".."):
        done = uncanny_here("audit", f"{name}=scenes:drawn", "--model", "demo", "-o", tmp_path / "o", *FAST)
        assert done.code == 2
        assert "cannot be a folder name" in done.err
    assert orjson.dumps([str(each) for each in tmp_path.iterdir()]) == b"[]"


def without_places(scores: dict[str, Any]) -> dict[str, Any]:
    """JSON of an audit but for where its runs are."""
    for score in scores["generators"].values():
        del score["source"]
    return scores


@pytest.mark.slow
def test_the_function_annotates_as_the_command_does(tmp_path: Path) -> None:
    sources = {"rendered": "scenes:rendered", "drawn": "scenes:drawn"}
    options: dict[str, Any] = {"model": "demo", "out": tmp_path / "b", "repeats": 1, "resamples": 50}
    command = ("audit", *SCENES, "--model", "demo", "--repeats", 1, *FAST, "-o", tmp_path / "a")
    expected = without_places(uncanny_here(*command).json())
    records: list[object] = []

    async def twice() -> list[AuditResult]:
        """Also where an event loop is running, as in a notebook."""
        return [audit(sources, **options), await audit_async(sources, on_record=records.append, **options)]

    for result in asyncio.run(twice()):
        assert without_places(orjson.loads(orjson.dumps(result.to_json()))) == expected
    assert records == []


async def test_a_stopped_function_goes_on_where_it_was(tmp_path: Path) -> None:
    stop, sources = Stop(), {"a": "scenes:drawn"}
    options: dict[str, Any] = {"model": "demo", "out": tmp_path / "out", "repeats": 1, "concurrency": 1}
    with pytest.raises(StoppedError, match="images of a are not annotated"):
        await audit_async(sources, stop=stop, on_record=lambda _: stop.request(), **options)
    begun = len(Run(tmp_path / "out" / "a").records())
    assert 0 < begun < 20
    annotated: list[str] = []
    result = await audit_async(sources, on_record=lambda each: annotated.append(each.image), **options)
    assert result.leaderboard.generators["a"].images == 20
    assert len(annotated) == 20 - begun


def test_a_spent_budget_ends_the_function(tmp_path: Path) -> None:
    folder = pictures(tmp_path / "images", 3)
    with pytest.raises(BudgetError):
        audit({"a": folder}, model="demo", out=tmp_path / "out", max_tokens_total=1)
    with pytest.raises(UsageError, match="no model is named"):
        audit({"a": folder})
    with pytest.raises(UsageError, match="no folder is named for them"):
        audit({"a": folder}, model="demo")
    with pytest.raises(UsageError, match="repeats"):
        audit({"a": folder}, model="demo", out=tmp_path / "other", repeats=0)
    with pytest.raises(UsageError, match="Annotate them first"):
        audit({"a": folder}, against={"a": folder})
