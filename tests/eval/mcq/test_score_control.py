"""The control without image in the scores of a run."""

from __future__ import annotations

from pathlib import Path

from tests.eval.mcq.made_sets import scored
from uncanny.eval.mcq.data.items import Answer
from uncanny.eval.mcq.data.load import copy_scenes, load
from uncanny.eval.mcq.score.controls import baseline_answers


def test_a_run_with_the_control_is_scored_as_it_is(tmp_path: Path) -> None:
    items = load(copy_scenes(tmp_path))
    answers = baseline_answers(items, "always-E/no")
    model = answers[0].model
    plain = scored(items, answers, resamples=0)
    control = [
        Answer(id=item.id, question="q4_no_image", raw="F" if number % 4 else "E", model=model)
        for number, item in enumerate(items)
    ]
    with_control = scored(items, [*answers, *control], resamples=0)
    figures = with_control.pop("no_image")
    assert with_control == plain
    assert (figures["n"], figures["missing"]) == (34, 0)
    assert figures["f_rate"] == 25 / 34
    assert figures["a_to_e_rate"] == 9 / 34


def test_with_several_models_it_stands_with_the_one_that_was_asked(tmp_path: Path) -> None:
    items = load(copy_scenes(tmp_path))
    answers = [*baseline_answers(items, "always-E/no"), *baseline_answers(items, "random")]
    asked = answers[0].model
    control = [Answer(id=item.id, question="q4_no_image", raw="F", model=asked) for item in items]
    models = scored(items, [*answers, *control], resamples=0)["models"]
    assert models[asked]["no_image"]["f_rate"] == 1.0
    assert [model for model in models if "no_image" in models[model]] == [asked]
