"""Every example of docs/formats.md is read by what it is for."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

import uncanny
from uncanny.client.prices import PriceTable
from uncanny.demo.scenes import scenes
from uncanny.eval.pairs.data import load_made
from uncanny.learn.common.chats import read_chats
from uncanny.learn.common.steps import read_steps
from uncanny.learn.reasoning.data import examples_of

PAGE = Path(__file__).parents[2] / "docs" / "formats.md"
IMAGES = {"cup.webp": "r01-cup-floating", "table.jpg": "r04-table-four-legs"}
# What sections without a file of their own are about.
WITHOUT_EXAMPLE = {"Scores", "A trained detector"}
_SECTION = re.compile(r"^## (.+?)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_EXAMPLE = re.compile(r"^```(json|csv)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _sections() -> dict[str, list[tuple[str, str]]]:
    text = PAGE.read_text(encoding="utf-8")
    return {title: _EXAMPLE.findall(body) for title, body in _SECTION.findall(text)}


def _file(title: str) -> Path:
    """The example of a section as a file in the current folder."""
    ((language, example),) = _sections()[title]
    suffix = "jsonl" if language == "json" else language
    path = Path(f"{title.lower().replace(' ', '-')}.{suffix}")
    path.write_text(example, encoding="utf-8")
    return path


def _annotations() -> None:
    file = _file("Annotations")
    result = uncanny.audit({"mine": file}, resamples=10)
    assert (result["mine"].images, result["mine"].af.value) == (2, 0.5)
    assert len(uncanny.semantic.load(file).images) == 2


def _true_anomalies() -> None:
    predictions = {"mine": _file("Annotations")}
    scores = uncanny.semantic.score(
        predictions, truth=_file("True anomalies"), similarity="chrf", resamples=10
    )
    assert scores["mine"].protocols["paper"].images == 2


def _true_sources() -> None:
    run = uncanny.detect("images", model="noop", out="runs/detect")
    assert run.score(_file("True sources")).truth.unused == 0


def _mcq_items() -> None:
    items = uncanny.mcq.load(_file("MCQ items"))
    assert uncanny.mcq.check(items) == ()
    assert [item.questions() for item in items] == [("q1", "q2", "q3", "q4")] * 2


def _mcq_answers() -> None:
    scores = uncanny.mcq.score(_file("MCQ items"), _file("MCQ answers"), resamples=10)
    assert scores["mine"].splits["overall"].q1 == 1


def _mcq_predictions() -> None:
    predictions = _file("MCQ predictions")
    scores = uncanny.mcq.score(_file("MCQ items"), {"mine": predictions}, people=predictions, resamples=10)
    assert scores["mine"].splits["overall"].q1 == scores["human"].splits["overall"].q1 == 1


def _item_reviews() -> None:
    kept = uncanny.mcq.keep(_file("MCQ items"), _file("MCQ item reviews"), least_verdicts=2)
    assert kept.counts == {"agreed": 1, "disputed": 1, "unsure": 0, "rejected": 0, "open": 0}


def _realism_pairs() -> None:
    (pair,) = uncanny.realism.load(_file("Realism pairs"))
    assert pair.original.is_file()
    assert pair.edited.is_file()


def _realism_verdicts() -> None:
    scores = uncanny.realism.score(_file("Realism verdicts"), resamples=10)
    assert [score.overall.labels["intermediate"].counts for score in scores.sets.values()] == [1]


def _people() -> None:
    answers = _file("People's answers about edits")
    scores = uncanny.realism.score(_file("Realism verdicts"), people=answers, resamples=10)
    (people,) = [score.people for score in scores.sets.values()]
    assert people is not None
    assert people.answers == 2


def _ratings() -> None:
    scores = uncanny.edits.score_ratings(_file("Edits"), _file("Ratings of people"), resamples=10)
    assert (scores.changes, scores.raters["ann"].passed) == ({"e1": "some"}, 1)


def _artifacts() -> None:
    file = _file("Artifacts")
    scores = uncanny.artifacts.score(file, truth=file, resamples=10)
    (score,) = scores.values()
    assert score.scopes["physics"].pixel["iou"].value == 1


def _candidates() -> None:
    _file("Candidate pairs").rename("candidates.jsonl")
    (pair,) = load_made(Path())
    assert (pair.candidate.seed, pair.candidate.region.name) == (0, "the cup")


def _verdicts_of_a_detector() -> None:
    verdicts = _file("A detector's verdicts")
    result = uncanny.edits.stress({"mine": verdicts}, meta=_file("Edits"), resamples=10)
    as_given = result.to_json()["detectors"]["mine"]["conditions"]["as given"]
    assert (as_given["images"], as_given["accuracy"]["value"]) == (2, 1.0)
    assert as_given["by"]["method"]["groups"]["brushnet"]["detected"] == 1
    assert len(uncanny.artifacts.load(verdicts)) == 2


def _edits() -> None:
    (measured,) = uncanny.edits.measure(_file("Edits"))
    assert (measured.id, measured.status, measured.scene_diversity) == ("e1", "ok", 2)  # two objects


def _texts() -> None:
    run = uncanny.curate.filter(_file("Pictures in words"), model="demo", out="run", question="prompt")
    assert run.passed() == ["1"]


def _prices() -> None:
    price = PriceTable.load(_file("Prices")).find("vllm/Qwen/Qwen3-VL-8B-Instruct")
    assert price is not None


def _calibrations() -> None:
    calibration = uncanny.Calibration.read(_file("Calibrations"))
    result = uncanny.audit({"mine": _file("Annotations")}, calibration=_file("Calibrations"), resamples=10)
    assert (calibration.probability(0.7), result["mine"].to_json()["expected_right"]) == (0.545556, None)


def _training_runs() -> None:
    (step,) = read_steps(_file("Training runs"))
    assert (step.step, step.loss, step.memory_bytes) == (1, 1.713, 28_311_552_000)


def _chats() -> None:
    (chat,) = read_chats(_file("Chats"))
    (example,) = examples_of([chat], Path())
    assert (example.turns, example.images) == (1, (Path("images/cup.webp"),))


READERS: Final[dict[str, Callable[[], None]]] = {
    "Annotations": _annotations,
    "True anomalies": _true_anomalies,
    "True sources": _true_sources,
    "MCQ items": _mcq_items,
    "MCQ answers": _mcq_answers,
    "MCQ predictions": _mcq_predictions,
    "MCQ item reviews": _item_reviews,
    "Realism pairs": _realism_pairs,
    "Realism verdicts": _realism_verdicts,
    "People's answers about edits": _people,
    "Ratings of people": _ratings,
    "Artifacts": _artifacts,
    "A detector's verdicts": _verdicts_of_a_detector,
    "Edits": _edits,
    "Candidate pairs": _candidates,
    "Pictures in words": _texts,
    "Calibrations": _calibrations,
    "Prices": _prices,
    "Training runs": _training_runs,
    "Chats": _chats,
}


def test_every_section_has_an_example_that_is_read() -> None:
    sections = _sections()
    assert set(sections) - WITHOUT_EXAMPLE == set(READERS)
    assert all(len(sections[title]) == 1 for title in READERS)


@pytest.mark.parametrize("title", READERS)
def test_the_example_is_read_by_what_it_is_for(
    title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    images = {scene.image_path.stem: scene.image_path for scene in scenes()}
    (tmp_path / "images").mkdir()
    for name, stem in IMAGES.items():
        shutil.copy(images[stem], tmp_path / "images" / name)
    READERS[title]()
