"""The same images over every protocol: the same annotations, and prefixes a provider can reuse."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.runs.e2e import Run, Server, pictures, serving, uncanny_here
from uncanny.demo.scenes import scenes

PROVIDERS = ["openai", "anthropic", "vllm", "openai-compatible"]


def content(run: Run) -> dict[str, Any]:
    """What a run says of each image, without usage, model and the times of the file."""
    left_out = {"image", "usage", "model", "models", "file_stamp"}
    return {Path(record.image).name: record.model_dump(exclude=left_out) for record in run.records()}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("demo") / "run"
    done = uncanny_here("demo", "-o", folder)
    assert (done.code, done.told) == (0, "")
    return Run(folder)


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
    before = server.requests()
    options = ("-o", tmp_path / "run", "--quiet", "--no-report")
    done = uncanny_here("annotate", images, *server.asked(provider), *options)
    assert (done.code, done.out, done.err) == (0, "", "")
    run = Run(tmp_path / "run")
    expected = content(demo)
    assert content(run) == {name: expected[name] for name in (scene.image_path.name for scene in shown)}
    assert any(record.anomalies for record in run.records())
    assert server.requests() - before == len(run.calls()) == run.manifest()["totals"]["calls"]


def test_clean_scenes_are_ok_with_nothing_found_and_no_formatter(demo: Run) -> None:
    clean = [record for record in demo.records() if not record.anomalies]
    assert clean
    assert {record.status for record in clean} == {"ok"}
    for record in clean:
        agents = {call["agent"] for call in demo.calls() if call["image"] == record.image}
        assert agents == {"ObjectPerceiver", "AttributeAnalyzer", "RelationReasoner"}
        assert record.usage.calls == 3 + 4 * len(record.objects)


def test_fifty_two_calls_for_eight_objects(tmp_path: Path, run: Run) -> None:
    with serving(objects=8) as server:
        done = uncanny_here(
            "annotate", pictures(tmp_path / "in", 1), *server.asked(), "-o", run.path, "--json"
        )
        assert done.code == 0
        assert done.json()["totals"]["calls"] == server.requests() == 3 + 6 * 8 + 1


# The server takes schema, system text and all up to the image as the prefix. Hosted models are sent one
# schema for all steps: free and constrained answers make two prefixes. Servers whose grammars do not enter
# the prompt are sent each step's own, which the fake server counts apart: free, and four kinds of list.
PREFIXES = {
    "openai": {"an image": 2, "no image": 2},
    "anthropic": {"an image": 2, "no image": 2},
    "vllm": {"an image": 5, "no image": 2},
    "openai-compatible": {"an image": 5, "no image": 2},
}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_all_calls_of_an_image_share_their_prefix(provider: str, tmp_path: Path, run: Run) -> None:
    images = 3
    folder = pictures(tmp_path / "in", images)
    with serving(objects=3) as server:
        assert (
            uncanny_here(
                "annotate", folder, *server.asked(provider), "-o", run.path, "-q", "--no-report"
            ).code
            == 0
        )
        expected = PREFIXES[provider]["an image"] * images + PREFIXES[provider]["no image"]
        assert server.stats()["unique_prefixes"] == expected
    cached = [call for call in run.calls() if call["sees_image"] and call["cached_tokens"]]
    seeing = [call for call in run.calls() if call["sees_image"]]
    assert len(seeing) - len(cached) == PREFIXES[provider]["an image"] * images


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_first_call_of_a_prefix_comes_back_before_others_go_out(
    provider: str, tmp_path: Path, run: Run
) -> None:
    latency = timedelta(milliseconds=60)
    folder = pictures(tmp_path / "in", 1)
    with serving(objects=4, latency_ms=latency / timedelta(milliseconds=1)) as server:
        assert uncanny_here("annotate", folder, *server.asked(provider), "-o", run.path, "-q").code == 0
        assert server.stats()["max_concurrent"] >= 2
    drafts = [call for call in run.calls() if call["agent"] == "ObjectPerceiver"]
    first, *others = sorted(datetime.fromisoformat(call["started"]) for call in drafts)
    assert len(others) == 2
    assert all(other >= first + latency for other in others)
    if provider in ("openai", "anthropic"):  # the first free text opens a second prefix there
        looks = [c for c in run.calls() if (c["agent"], c["step"]) == ("AttributeAnalyzer", 1)]
        ahead, *rest = sorted(datetime.fromisoformat(call["started"]) for call in looks)
        assert len(rest) == 3
        assert all(other >= ahead + latency for other in rest)
