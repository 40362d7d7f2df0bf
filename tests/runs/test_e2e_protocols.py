"""The same images over every protocol: the same annotations, and prefixes a provider can reuse."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.bundled_runs import BundledRuns
from tests.runs.e2e import COMPATIBLE, VLLM, Run, Server, pictures, serving, uncanny_here
from uncanny.demo.scenes import scene_files, scenes

PROVIDERS = ["openai", "anthropic", VLLM, COMPATIBLE]


def content(run: Run) -> dict[str, Any]:
    """What a run says of each image, without usage, model and the times of the file."""
    left_out = {"image", "usage", "model", "models", "file_stamp"}
    return {Path(record.image).name: record.model_dump(exclude=left_out) for record in run.records()}


@pytest.fixture(scope="module")
def demo(bundled_run: BundledRuns) -> Run:
    return Run(bundled_run("annotate").path)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.mark.parametrize("provider", PROVIDERS)
def test_bundled_scenes_give_what_the_demo_gives(
    provider: str, demo: Run, server: Server, tmp_path: Path
) -> None:
    images = tmp_path / "images"
    images.mkdir()
    shown = scenes()[::2]
    for scene in shown:
        shutil.copy(scene.image_path, images)
    shutil.copy(scene_files()[-1], images)
    before = server.requests()
    options = ("-o", tmp_path / "run", "--quiet", "--no-report")
    done = uncanny_here("annotate", images, *server.asked(provider, "demo"), *options)
    assert (done.code, done.out, done.err) == (0, "", "")
    run = Run(tmp_path / "run")
    expected = content(demo)
    assert content(run) == {name: expected[name] for name in (scene.image_path.name for scene in shown)}
    assert any(record.anomalies for record in run.records())
    assert server.requests() - before == len(run.calls()) == run.manifest()["totals"]["calls"]


def test_every_call_about_a_scene_is_told_from_the_others(demo: Run) -> None:
    keys = ("image", "agent", "step", "object", "sample")
    calls = [(*(call[key] for key in keys), *call.get("objects", ())) for call in demo.calls()]
    assert len(set(calls)) == len(calls)
    for call in demo.calls():
        assert "objects" not in call or call["agent"] in ("AttributeAnalyzer", "RelationReasoner")


def test_clean_scenes_are_ok_with_nothing_found_and_no_formatter(demo: Run) -> None:
    clean = [record for record in demo.records() if not record.anomalies]
    assert clean
    assert {record.status for record in clean} == {"ok"}
    calls = demo.calls()
    for record in clean:
        agents = {call["agent"] for call in calls if call["image"] == record.image}
        compared = any(each.sort in ("reflection", "shadow") for each in record.objects)
        assert ("RelationReasoner" in agents) == compared
        assert agents <= {"ObjectPerceiver", "AttributeAnalyzer", "RelationReasoner"}
        regions = (record.model_extra or {}).get("regions", ())
        assert record.usage.calls <= 1 + compared + -(-len(regions) // 4)


@pytest.mark.parametrize(
    ("options", "calls"),
    [
        # The look, one batch of what is enlarged of so small a picture, and the integrator.
        ((), 1 + 1 + 1),
        # The look and a second draft, two further scans, and the integrator.
        (("--repeats", "2", "--scene-scans", "3", "--max-regions", "0"), 2 + 2 + 1),
        (("--schedule", "paper"), 3 + 6 * 8 + 1),
        (("--schedule", "single"), 1),
    ],
)
def test_calls_for_eight_objects(options: tuple[str, ...], calls: int, tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", 1)
    with serving(objects=8) as server:
        done = uncanny_here("annotate", images, *server.asked(), "-o", run.path, "--json", *options)
        assert done.code == 0
        assert done.json()["totals"]["calls"] == server.requests() == calls


# The server takes schema, system text and all up to the image as the prefix. Hosted models are sent one
# schema for all steps of the paper's schedule; its free answers make a second prefix. Servers whose grammars
# do not enter the prompt are sent each step's own, which the fake server counts apart: free text and four
# kinds of list.
PREFIXES = {
    "openai": {"an image": 2, "no image": 2},
    "anthropic": {"an image": 2, "no image": 2},
    "vllm": {"an image": 5, "no image": 2},
    "openai-compatible": {"an image": 5, "no image": 2},
}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_all_calls_of_an_image_share_their_prefix(provider: str, tmp_path: Path, run: Run) -> None:
    images = 3
    prefixes = PREFIXES[provider]
    # So large that Anthropic, too, keeps what begins with them.
    folder = pictures(tmp_path / "in", images, size=(1024, 1024))
    options = ("-o", run.path, "-q", "--no-report", "--schedule", "paper")
    with serving(objects=3) as server:
        assert uncanny_here("annotate", folder, *server.asked(provider), *options).code == 0
        expected = prefixes["an image"] * images + prefixes["no image"]
        assert server.stats()["unique_prefixes"] == expected
    cached = [call for call in run.calls() if call["sees_image"] and call["cached_tokens"]]
    seeing = [call for call in run.calls() if call["sees_image"]]
    assert len(seeing) - len(cached) == prefixes["an image"] * images


LATENCY = timedelta(milliseconds=60)


def started(run: Run, agent: str) -> list[datetime]:
    """When the first calls of an agent began."""
    calls = [call for call in run.calls() if (call["agent"], call["step"]) == (agent, 1)]
    return sorted(datetime.fromisoformat(call["started"]) for call in calls)


@pytest.mark.slow
@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_first_call_of_a_prefix_comes_back_before_others_go_out(
    provider: str, tmp_path: Path, run: Run
) -> None:
    folder = pictures(tmp_path / "in", 1)
    options = ("-o", run.path, "-q", "--schedule", "paper")
    with serving(objects=4, latency_ms=LATENCY / timedelta(milliseconds=1)) as server:
        assert uncanny_here("annotate", folder, *server.asked(provider), *options).code == 0
        assert server.stats()["max_concurrent"] >= 2
    first, *others = started(run, "ObjectPerceiver")
    assert len(others) == 2
    assert all(other >= first + LATENCY for other in others)
    if provider in ("openai", "anthropic"):  # the first free text opens a second prefix there
        ahead, *rest = started(run, "AttributeAnalyzer")
        assert len(rest) == 3
        assert all(other >= ahead + LATENCY for other in rest)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_no_call_of_a_packed_image_begins_like_another(provider: str, tmp_path: Path, run: Run) -> None:
    folder = pictures(tmp_path / "in", 2, size=(1024, 1024))
    with serving(objects=3) as server:
        options = ("-o", run.path, "-q", "--no-report")
        assert uncanny_here("annotate", folder, *server.asked(provider), *options).code == 0
        assert server.stats()["unique_prefixes"] == server.requests()
    assert {call["cached_tokens"] or 0 for call in run.calls()} == {0}


@pytest.mark.parametrize("provider", ["vllm"])
def test_scans_and_drafts_share_the_first_prefix_of_a_packed_image(
    provider: str, tmp_path: Path, run: Run
) -> None:
    folder = pictures(tmp_path / "in", 1)
    options = ("-o", run.path, "-q", "--repeats", "2", "--scene-scans", "2")
    with serving(objects=4, latency_ms=LATENCY / timedelta(milliseconds=1)) as server:
        assert uncanny_here("annotate", folder, *server.asked(provider), *options).code == 0
    first, *others = sorted([*started(run, "ObjectPerceiver"), *started(run, "SceneScanner")])
    assert len(others) == 2
    assert all(other >= first + LATENCY for other in others)
