"""Samples: of the wanted size and probabilities, nested, alike in several runs, and nothing is dropped."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

import uncanny
from tests.runs.e2e import uncanny_here
from uncanny.errors import UsageError
from uncanny.eval.trust.draw import UNIFORM, deserved, inclusion
from uncanny.records.sample import SAMPLE, Design, Sample, read_sample

FOUND = {"name": "n", "phenomenon": "p", "reasoning": "r"}


def made_run(folder: Path, *, images: int = 40, status: str = "ok", stem: str = "i", **more: Any) -> Path:
    """A folder with annotations: every fourth image has a finding that the model is unsure of."""
    folder.mkdir(parents=True)
    lines = []
    for number in range(images):
        unsure = [{**FOUND, "severity": 50, "confidence": 0.5}] if number % 4 == 0 else []
        record = {
            **{"image": f"{stem}{number:04d}.png", "sha256": f"{number:064x}", "width": 8, "height": 8},
            **{
                "status": status if number else "ok",
                "anomalies": unsure,
                "model": "m",
                "prompts": "p@1",
                **more,
            },
        }
        lines.append(orjson.dumps(record) + b"\n")
    (folder / "annotations.jsonl").write_bytes(b"".join(lines))
    return folder


def drawn(run: Path) -> Sample:
    sample = read_sample(run)
    assert sample is not None
    return sample


def names(run: Path) -> list[str]:
    return [each.image for each in drawn(run).images]


@pytest.mark.parametrize("design", ["random", "active"])
def test_a_sample_grows_without_losing_an_image(tmp_path: Path, design: Any) -> None:
    run = made_run(tmp_path / "a")
    (first,) = uncanny.sample(run, size=10, design=design, seed=7).samples
    assert (first.added, first.sample.frame, first.sample.size) == (10, 40, 10)
    before = names(run)
    (more,) = uncanny.sample(run, size=25).samples  # design and seed are those of the sample there is
    assert (more.added, more.sample.design, more.sample.seed) == (15, design, 7)
    assert names(run)[:10] == before
    assert len(set(names(run))) == 25
    uncanny.sample(run, size=25)
    assert sorted(names(run)) == sorted(names(run))
    once = made_run(tmp_path / "b")
    uncanny.sample(once, size=25, design=design, seed=7)
    if design == "random":  # chances do not depend on the size
        assert sorted(names(once)) == sorted(names(run))
    assert sum(each.probability for each in drawn(run).images) <= 40


def test_what_was_drawn_stays_when_the_run_has_more_images(tmp_path: Path) -> None:
    run = made_run(tmp_path / "a", images=20)
    uncanny.sample(run, size=10)
    before = set(names(run))
    lines = (run / "annotations.jsonl").read_bytes()
    (run / "annotations.jsonl").write_bytes(
        lines + (made_run(tmp_path / "b", images=200, stem="new") / "annotations.jsonl").read_bytes()
    )
    with pytest.raises(
        UsageError, match="of its 220 images now, a sample with all that were drawn has at least"
    ):
        uncanny.sample(run, size=11)
    # Until then the sample tells of the images that it was drawn from alone.
    with pytest.raises(UsageError, match="has 200 images more than its sample was drawn from"):
        uncanny.trust(run)
    # A larger one is the sample that would have been drawn from all at once.
    uncanny.sample(run, size=200)
    assert before < set(names(run))
    assert {each.probability for each in drawn(run).images} == {200 / 220}
    other = tmp_path / "c"
    other.mkdir()
    shutil.copy(run / "annotations.jsonl", other)
    uncanny.sample(other, size=200)
    assert set(names(other)) == set(names(run))


def test_the_same_prompts_are_drawn_in_all_runs(tmp_path: Path) -> None:
    runs = [made_run(tmp_path / name) for name in "ab"]
    lone = made_run(tmp_path / "c", images=30)
    designs: tuple[Design, ...] = ("random", "active")
    for design in designs:
        uncanny.sample([*runs, lone], size=12, design=design, pair_by="stem")
        assert names(runs[0]) == names(runs[1])
        for run in (*runs, lone):
            (run / SAMPLE).unlink()
    with pytest.raises(UsageError, match="has no value for 'prompt_id'"):
        uncanny.sample(runs, size=3, pair_by="prompt_id")


def test_images_without_a_whole_annotation_are_not_drawn_and_counted(tmp_path: Path) -> None:
    run = made_run(tmp_path / "a", status="failed")
    (each,) = uncanny.sample(run, size=1).samples
    assert (each.sample.frame, each.left_out, names(run)) == (1, 39, ["i0000.png"])
    assert "39 images without a whole annotation cannot be drawn" in str(each)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"size": 41}, "has 40 images to draw from"),
        ({"size": 9}, "has a sample of 10, which is more than 9"),
        ({"size": 12, "design": "active"}, "has a sample with design 'random', not with design 'active'"),
        ({"size": 12, "seed": 1}, "has a sample with seed 0, not with seed 1"),
        ({"size": 12, "pair_by": "stem"}, "has a sample that is not paired, not paired by 'stem'"),
        ({"size": 0}, "`size` must be at least 1"),
    ],
)
def test_what_does_not_go_with_the_run_or_its_sample_is_refused(
    tmp_path: Path, more: dict[str, Any], told: str
) -> None:
    run = made_run(tmp_path / "a")
    uncanny.sample(run, size=10)
    before = (run / SAMPLE).read_bytes()
    with pytest.raises(UsageError) as caught:
        uncanny.sample([run], **more)
    assert told in str(caught.value)
    assert (run / SAMPLE).read_bytes() == before


def test_of_several_runs_all_are_drawn_or_none(tmp_path: Path) -> None:
    large, small = made_run(tmp_path / "a"), made_run(tmp_path / "b", images=5)
    with pytest.raises(UsageError):
        uncanny.sample([large, small], size=10)
    assert read_sample(large) is None
    with pytest.raises(UsageError, match="named twice"):
        uncanny.sample([large, tmp_path / "b" / ".." / "a"], size=2)
    with pytest.raises(UsageError, match="is not a run folder"):
        uncanny.sample(tmp_path / "nothing", size=2)


def test_images_of_which_the_model_is_unsure_are_drawn_more_often(tmp_path: Path) -> None:
    unsure, trials = 0, 200
    run = made_run(tmp_path / "a")
    for seed in range(trials):
        uncanny.sample(run, size=8, design="active", seed=seed)
        unsure += sum(int(each[1:5]) % 4 == 0 for each in names(run))
        probabilities = {each.image: each.probability for each in drawn(run).images}
        (run / SAMPLE).unlink()
    # A quarter of the images have all of the doubt: 0.5 of the chance is theirs, and a quarter of the rest.
    assert unsure / (8 * trials) == pytest.approx(0.625, abs=0.04)
    assert max(probabilities.values()) == pytest.approx(8 * 0.625 / 10)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60), st.data())
def test_probabilities_sum_to_the_size_and_none_is_above_one(doubt: list[float], data: st.DataObject) -> None:
    size = data.draw(st.integers(1, len(doubt)))
    chances = deserved(np.array(doubt))
    assert chances.min() >= UNIFORM
    probabilities = inclusion(chances, size)
    assert probabilities.sum() == pytest.approx(size)
    assert ((probabilities > 0) & (probabilities <= 1)).all()
    # A likelier image is never drawn less often.
    assert (np.diff(probabilities[np.argsort(chances, kind="stable")]) >= -1e-12).all()


def test_how_often_each_image_is_drawn_is_its_probability(tmp_path: Path) -> None:
    run, trials = made_run(tmp_path / "a", images=12), 400
    times: dict[str, int] = {}
    for seed in range(trials):
        uncanny.sample(run, size=4, design="active", seed=seed)
        wanted = {each.image: each.probability for each in drawn(run).images}
        for image in wanted:
            times[image] = times.get(image, 0) + 1
        (run / SAMPLE).unlink()
    uncanny.sample(run, size=12, design="active")
    likely = [times[f"i{n:04d}.png"] / trials for n in (0, 4, 8)]
    assert np.mean(likely) == pytest.approx(4 * 0.625 / 3, abs=0.05)


def test_the_command_draws_and_says_what(tmp_path: Path) -> None:
    run = made_run(tmp_path / "a")
    done = uncanny_here("sample", run, "--size", "10")
    assert done.code == 0
    assert done.out.strip() == f"{run}/sample.json: 10 of 40 images (random)."
    again = uncanny_here("sample", run, "--size", "12", "--json").json()
    assert again["samples"][0] == {
        **{"run": str(run), "file": f"{run}/sample.json", "version": 1, "design": "random", "seed": 0},
        **{"frame": 40, "size": 12, "added": 2, "left_out": 0},
    }
    refused = uncanny_here("sample", run, "--size", "5")
    assert (refused.code, "Give a larger number" in refused.err) == (2, True)
