"""Ten steps of reward fine-tuning on a tiny model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import uncanny.learn
from tests.learn.grounded import artifacts, question_words
from tests.learn.tiny_vlm import make_vlm, pretrain
from uncanny.answers.boxes import BOX_FORMATS
from uncanny.errors import UsageError
from uncanny.learn.grounding.data import Question, read_images
from uncanny.learn.grounding.rewards import box_reward, format_reward, read_answer, source_reward
from uncanny.learn.grounding.run import reward_functions

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


def test_ten_steps(tmp_path: Path) -> None:
    file = artifacts(tmp_path / "data", range(1))
    held_out = artifacts(tmp_path / "held-out", range(100, 101))
    images = read_images(file, None)
    asked, *answers = words = question_words(file)
    model = make_vlm(
        tmp_path / "base", [*words, "system user assistant You are a helpful assistant."], layers=2
    )
    # It gives either answer to either image: else none would be better than the others.
    # Most of the time a short question stands for the real one, which takes ten times as long.
    short, real = (
        [(image.file, question, answer) for image in images for answer in answers]
        for question in ("The answer?", asked)
    )
    pretrain(tmp_path / "base", model, [short, short, short, real], 80)
    settings: dict[str, Any] = {
        "box_format": "pixels",
        "min_pixels": 56 * 56,
        "max_pixels": 56 * 56,
        "recompute": False,
        "answer_tokens": 60,
        "learning_rate": 1e-3,
        "batch": 4,
        "accumulate": 1,
        "group": 4,
        "epochs": 100.0,
        "max_steps": 10,
        "every_layer": 1,
    }
    run = uncanny.learn.grounder(
        file, base=tmp_path / "base", out=tmp_path / "run", held_out=held_out, **settings
    )
    assert run.state == "finished"
    assert [each.step for each in run.steps] == list(range(1, 11))
    extra = run.steps[-1].model_extra or {}
    assert {f"rewards/{name}/mean" for name in ("format", "source", "boxes")} <= extra.keys()
    assert len(run.examples) == 2
    assert set(run.results["figures"]) == {"reward: format", "reward: source", "reward: boxes"}
    assert (run.model / "adapter_model.safetensors").is_file()
    assert "GRPO fine-tuned" in (run.model / "README.md").read_text()


def test_a_group_that_fits_no_step_is_refused_before_the_model_is_loaded(tmp_path: Path) -> None:
    file = artifacts(tmp_path / "data", range(1))
    with pytest.raises(UsageError, match="`group`, 5, does not divide `batch` × `accumulate`"):
        uncanny.learn.grounder(file, base=tmp_path / "none", out=tmp_path / "run", group=5)
    assert not (tmp_path / "run").exists()


def test_a_package_that_only_the_processor_wants_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(*_: object, **__: object) -> None:
        raise ImportError(
            "\nSomeProcessor requires the Torchvision library. Look at the instructions on the\npage."
        )

    monkeypatch.setattr("transformers.AutoProcessor.from_pretrained", load)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UsageError, match=r"SomeProcessor requires the Torchvision library\. Install what"):
        uncanny.learn.grounder(artifacts(tmp_path / "data", range(1)), base=tmp_path, out=tmp_path / "run")


def test_rewards_are_called_with_the_columns_of_the_data(tmp_path: Path) -> None:
    images = read_images(artifacts(tmp_path, range(1)), None)
    question = Question(BOX_FORMATS["pixels"])
    sizes = [(28, 28), (56, 56)]  # of the first the model sees a quarter of the pixels
    functions = reward_functions(question, images, sizes)
    assert [each.__name__ for each in functions] == ["format", "source", "boxes"]
    best = [
        question.answer(image.truth, sent=size, original=image.size)
        for image, size in zip(images, sizes, strict=True)
    ]
    completions = [[{"role": "assistant", "content": text}] for text in (*best, "nothing")]
    # Of what the model sees pixels are twice as wide: it says 8 to 28 by 8 to 36 of 7 to 28 by 7 to 35.
    overlap = 20 * 27
    rounded = {"boxes": overlap / (21 * 28 + 20 * 28 - overlap)}
    for reward in functions:
        values = reward(completions=completions, number=[0, 1, 0], prompts=[], completion_ids=[])
        assert values == pytest.approx([rounded.get(reward.__name__, 1.0), 1.0, 0.0])
    text = question.answer(images[0].truth, sent=(56, 56), original=(56, 56))
    said = read_answer(text, question.form, sent=(56, 56), original=(56, 56))
    assert (format_reward(said), source_reward(said, images[0].truth)) == (1.0, 1.0)
    assert box_reward(said, images[0].truth) == 1.0
