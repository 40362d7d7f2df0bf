"""Locating artifacts over real protocols: one prefix, servers that misbehave, going on after a kill."""

from __future__ import annotations

import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

import uncanny as package
from tests.runs.e2e import (
    COMPATIBLE,
    VLLM,
    Run,
    Server,
    check_no_traceback,
    finish,
    pictures,
    serving,
    serving_process,
    start,
    uncanny,
    uncanny_here,
)
from uncanny.demo.scenes import scenes
from uncanny.demo.server.app import FaultName
from uncanny.eval.artifacts.run import LocatedArtifacts
from uncanny.schema import ARTIFACT_CATEGORIES

PROTOCOLS = ["openai", "anthropic"]
FAULTS: tuple[FaultName, ...] = ("429", "500", "hang", "malformed", "refusal", "length")


def located(run: Run) -> list[LocatedArtifacts]:
    """The records, checked: one an image, in order of names, and what they say hangs together."""
    lines = (run.path / "artifacts.jsonl").read_bytes().splitlines()
    found = [LocatedArtifacts.model_validate_json(line) for line in lines]
    names = [record.image for record in found]
    assert names == sorted(set(names))
    for record in found:
        check_located(record)
    return found


def check_located(record: LocatedArtifacts) -> None:
    """What must hold for every record, however the models behaved."""
    assert (record.status == "ok") == (not record.errors), record
    assert all(error.message and error.kind for error in record.errors), record
    answered = {*ARTIFACT_CATEGORIES} - {*record.unmeasured}
    assert (record.regions is None) == (not answered), record
    if record.status in ("failed", "unreadable"):
        assert not answered, record
    assert (record.score is None) == (record.source is None), record
    for region in record.regions or ():
        assert region.category in answered, record
        assert region.box is not None
        assert record.width is not None
        assert record.height is not None
        x0, y0, x1, y1 = region.box
        assert 0 <= x0 < x1 <= record.width, region
        assert 0 <= y0 < y1 <= record.height, region


def calls(run: Run) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (run.path / "calls.jsonl").read_bytes().splitlines()]


def content(run: Run) -> dict[str, Any]:
    left_out = {"image", "usage", "model", "file_stamp", "boxes"}
    return {Path(record.image).name: record.model_dump(exclude=left_out) for record in located(run)}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = Run(tmp_path_factory.mktemp("demo") / "run")
    done = uncanny_here("artifacts", "run", "scenes", "--model", "demo", "-o", run.path, "--likelihood")
    assert (done.code, done.told) == (0, "")
    return run


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


def test_the_bundled_scenes_are_found_but_for_the_listed_mistakes(demo: Run) -> None:
    records = {Path(record.image).stem: record for record in located(demo)}
    right = 0
    for scene in scenes():
        boxes = {(region.category, region.box) for region in records[scene.id].regions or ()}
        right += sum(
            any(category == a.category and near(box, a.box) for category, box in boxes)
            for a in scene.anomalies
        )
    assert right == 13
    assert {record.status for record in records.values()} == {"ok"}
    assert all(record.unmeasured == () for record in records.values())
    assert demo.manifest()["totals"]["calls"] == 8 * len(records)
    assert demo.manifest()["totals"]["regions"] == 19
    taken_for = Counter(record.source for record in records.values())
    assert taken_for == {"generated": 16, "real": 18}


def near(box: Any, other: Any) -> bool:
    """Thousandths are as exact as boxes can be asked for."""
    return all(abs(one - two) <= 2 for one, two in zip(box, other, strict=True))


@pytest.mark.parametrize("provider", [*PROTOCOLS, VLLM, COMPATIBLE])
def test_over_a_server_the_same_comes_back(provider: str, demo: Run, server: Server, run: Run) -> None:
    options = ("-o", run.path, "-q", "--limit", "10", "--likelihood")
    done = uncanny_here("artifacts", "run", "scenes", *server.asked(provider, "demo"), *options)
    assert (done.code, done.out, done.err) == (0, "", "")
    assert len(content(run)) == 10
    assert content(run).items() <= content(demo).items()
    assert run.manifest()["task"] == "artifacts"


@pytest.mark.slow
@pytest.mark.parametrize("model", ["gemini-3-pro", "qwen2.5-vl", "deepseek-vl2", "kimi-vl", "gpt-5.4"])
def test_every_form_of_boxes_comes_back_as_the_same_pixels(
    model: str, demo: Run, server: Server, run: Run
) -> None:
    asked = server.asked("openai-compatible", f"{model}-demo")
    done = uncanny_here("artifacts", "run", "scenes", *asked, "-o", run.path, "-q", "--joint")
    assert done.code == 0
    for name, record in content(run).items():
        expected = content(demo)[name]["regions"]
        assert [region["category"] for region in record["regions"]] == [
            region["category"] for region in sorted(expected, key=lambda r: r["category"] != "semantics")
        ] or len(expected) < 3
        by_note = {region["note"]: region["box"] for region in expected}
        for region in record["regions"]:
            assert near(region["box"], by_note[region["note"]])


@pytest.mark.parametrize("provider", [*PROTOCOLS, VLLM])
def test_all_categories_share_one_prefix(provider: str, run: Run) -> None:
    with serving() as server:
        options = ("-o", run.path, "-q", "--limit", "6")
        assert uncanny_here("artifacts", "run", "scenes", *server.asked(provider), *options).code == 0
        assert server.stats()["unique_prefixes"] == 6
        assert server.requests() == 42
    assert sum(bool(call["cached_tokens"]) for call in calls(run)) == 36


@pytest.mark.slow
@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_thirty_percent_of_faults_cost_nothing_but_what_they_spoil(
    provider: str, joint: bool, tmp_path: Path, run: Run
) -> None:
    images = pictures(tmp_path / "in", 40 if joint else 16)
    with serving(objects=3, faults=dict.fromkeys(FAULTS, 0.05), seed=5) as server:
        options = ("--timeout", "1", "--likelihood", *(["--joint"] if joint else []))
        done = uncanny_here(
            "artifacts", "run", images, *server.asked(provider), "-o", run.path, *options, "--json"
        )
        stats = server.stats()
    check_no_traceback(done)
    assert all(number > 0 for number in stats["faults"].values()), "make it longer: not all faults struck"
    found = located(run)
    assert len(found) == (40 if joint else 16)
    totals = run.manifest()["totals"]
    assert totals["calls"] == stats["requests"]
    assert totals["outcomes"]["refused"] == stats["faults"]["refusal"]
    assert done.code == (1 if any(record.errors for record in found) else 0)
    told = done.json()["regions"]
    counts = Counter(region.category for record in found for region in record.regions or ())
    assert told == {category: counts[category] for category in ARTIFACT_CATEGORIES}
    # Without faults the rest is asked, and nothing of what stands; another server has other answers.
    with serving(objects=3) as server:
        again = uncanny_here(
            "artifacts", "run", images, *server.asked(provider), "-o", run.path, *options, "-q"
        )
        assert again.code == 0
        unanswered = sum(record.status != "ok" for record in found)
        assert server.requests() == unanswered * (2 if joint else 8)
    assert {record.status for record in located(run)} == {"ok"}


def test_a_server_that_always_fails_leaves_nothing_known(tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", 2)
    with serving(faults={"refusal": 1.0}) as server:
        done = uncanny_here("artifacts", "run", images, *server.asked(), "-o", run.path)
        assert server.requests() == 14
    assert done.code == 1
    for record in located(run):
        assert (record.status, record.regions, record.unmeasured) == ("failed", None, ARTIFACT_CATEGORIES)
        assert [error.object for error in record.errors] == [*ARTIFACT_CATEGORIES]
    assert "ArtifactLocator 1:" in done.out


class Careless:
    """Answers about physics with a box that cannot be one, whatever it is asked again."""

    capabilities = package.Capabilities()

    def __init__(self, model: str) -> None:
        self.name = f"careless/{model}"

    async def generate(self, request: package.ModelRequest) -> package.ModelResponse:
        good, bad = '{"note": "floats", "bbox_2d": [0, 0, 500, 900]}', '{"note": "falls", "bbox_2d": []}'
        entries = f"{good}, {bad}" if request.subject == "physics" else good
        return package.ModelResponse(f'{{"answer": {{"artifacts": [{entries}]}}}}')


def test_a_partial_record_names_the_category_that_has_no_whole_answer(tmp_path: Path, run: Run) -> None:
    package.register_provider("careless", Careless, replace=True)
    images = pictures(tmp_path / "in", 1)
    done = uncanny_here("artifacts", "run", images, "-m", "careless/x", "-o", run.path)
    assert done.code == 1
    (record,) = located(run)
    assert (record.status, record.incomplete, record.unmeasured) == ("partial", ("physics",), ())
    assert [error.object for error in record.errors] == ["physics"]
    assert [region.category for region in record.regions or ()] == [*ARTIFACT_CATEGORIES]
    assert "p00.png (physics)  ArtifactLocator 1:" in done.out
    truth = tmp_path / "truth.jsonl"
    truth.write_bytes(orjson.dumps({"image": record.image, "source": "generated", "regions": []}) + b"\n")
    scores = uncanny_here("artifacts", "score", run.path, "--truth", truth, "--json", "-").json()
    assert scores["left_out"]["unmeasured"] == {"physics": [record.image]}


def test_odd_files_and_copies(tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", 3)
    shutil.copy(images / "p00.png", images / "copy.png")
    (images / "broken.png").write_bytes(b"no picture")
    with serving() as server:
        done = uncanny_here("artifacts", "run", images, *server.asked(), "-o", run.path)
        assert server.requests() == 21
    assert done.code == 1
    assert "broken.png" in done.out
    found = {Path(record.image).name: record for record in located(run)}
    assert Counter(record.status for record in found.values()) == {"ok": 4, "unreadable": 1}
    assert (found["broken.png"].width, found["broken.png"].regions) == (None, None)
    copies = [record for record in found.values() if "duplicate_of" in (record.model_extra or {})]
    assert len(copies) == 1
    assert found["copy.png"].regions == found["p00.png"].regions


def test_some_categories_leave_the_others_unknown(tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", 2)
    some = ("--category", "physics", "--category", "textures")
    with serving() as server:
        command = ("artifacts", "run", images, *server.asked(), "-o", run.path)
        forecast = uncanny_here(*command, *some, "--dry-run", "--json").json()
        assert uncanny_here(*command, *some, "-q").code == 0
        assert server.requests() == forecast["calls"] == 4
        # The order they are named in makes no other run; other ones do.
        turned = ("--category", "textures", "--category", "physics")
        assert uncanny_here(*command, *turned, "-q").code == 0
        other = uncanny_here(*command, "--category", "color", "-q")
    assert other.code == 2
    assert "--category: ['textures', 'physics'] before, ['color'] now" in other.err
    for record in located(run):
        assert record.status == "ok"
        assert {*ARTIFACT_CATEGORIES} - {*record.unmeasured} == {"physics", "textures"}


def test_one_model_for_the_locator_and_texts_of_ones_own(tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", 1)
    texts = tmp_path / "texts"
    assert uncanny_here("prompts", "artifacts", "-o", texts).code == 0
    (texts / "physics.md").write_text("Something floats, and nothing else.", encoding="utf-8")
    with serving() as server:
        command = ("artifacts", "run", images, *server.asked(), "-o", run.path, "--prompts", texts)
        done = uncanny_here(*command, "--role", "locator=openai/other")
        assert done.code == 0
        assert "physics.md in place of uncanny's" in done.out
    assert {call["model"] for call in calls(run)} == {"openai/other"}
    assert located(run)[0].prompts == run.manifest()["prompts"]["id"]
    (texts / "physics.md").write_text("", encoding="utf-8")
    done = uncanny_here("artifacts", "run", images, "-m", "demo", "-o", tmp_path / "b", "--prompts", texts)
    assert done.code == 2
    assert "physics.md is empty" in done.err


@pytest.mark.slow
def test_a_budget_stops_it_and_a_higher_one_goes_on(tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", 6)
    with serving() as server:
        command = ("artifacts", "run", images, *server.asked(), "-o", run.path, "-q")
        small = ("--max-output-tokens", "500", "--concurrency", "1")
        done = uncanny_here(*command, *small, "--max-tokens-total", "12000")
        assert done.code == 3
        assert "The budget does not cover" in done.err
        assert run.manifest()["state"] == "budget"
        assert 0 < server.requests() < 42
        assert uncanny_here(*command, *small).code == 0
        assert len(located(run)) == 6
        assert len(calls(run)) == server.requests() == 42


def test_a_run_of_another_task_is_not_gone_on_with(demo: Run, tmp_path: Path) -> None:
    done = uncanny_here("detect", "scenes", "-m", "demo", "-o", demo.path)
    assert done.code == 2
    assert "`artifacts run`" in done.err
    check_no_traceback(done)
    done = uncanny_here("artifacts", "run", tmp_path / "nowhere", "-m", "demo", "-o", tmp_path / "run")
    assert done.code == 2
    check_no_traceback(done)


@pytest.mark.slow
def test_killed_several_times_and_started_again(tmp_path: Path, run: Run) -> None:
    images, number, at_once, kills = pictures(tmp_path / "in", 12), 12, 4, 3
    with serving_process("--latency-ms", "40") as server:
        whole = Run(tmp_path / "whole")
        command = ["artifacts", "run", images, *server.asked(), "--concurrency", at_once, "-q"]
        assert uncanny(*command, "-o", whole.path).code == 0
        needed = server.requests()
        for kill in range(1, kills + 1):
            with start(*command, "-o", run.path) as process:
                while server.requests() < needed + 15 * kill:
                    assert process.poll() is None
                    time.sleep(0.005)
                process.kill()
                assert finish(process).code == -9
        done = uncanny(*command, "-o", run.path)
        assert (done.code, done.out, done.err) == (0, "", "")
        assert needed <= server.requests() - needed <= needed + kills * at_once
        asked = server.requests()
        assert uncanny_here(*command, "-o", run.path).code == 0
        assert server.requests() == asked
    assert content(run) == content(whole)
    assert len(located(run)) == number
    keys = Counter((call["image"], call["object"], call["attempt"]) for call in calls(run))
    assert set(keys.values()) == {1}
    assert run.manifest()["state"] == "finished"


@pytest.mark.slow
def test_an_interrupt_lets_calls_come_back_and_none_is_asked_twice(tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", 6)
    with serving_process("--latency-ms", "100") as server:
        command = ["artifacts", "run", images, *server.asked(), "--concurrency", 3, "-q", "-o", run.path]
        with start(*command) as process:
            while server.requests() < 10:
                assert process.poll() is None
                time.sleep(0.005)
            process.send_signal(signal.SIGINT)
            done = finish(process)
        assert done.code == 130
        check_no_traceback(done)
        assert run.manifest()["state"] == "interrupted"
        assert uncanny(*command).code == 0
        assert server.requests() == len(calls(run))
    assert {record.status for record in located(run)} == {"ok"}
