"""Training on this machine: time of an optimizer step and peak memory, with a tiny model.

Needs the packages of the extra `learn`, and torchvision. The model has 0.6 million weights: the figures are
those of libraries and our own work more than of arithmetic: `learn_gpu` measures a model of real size, and
`learn_size` calculates one of 7 billion. One thread: two are slower for matrices as small as these.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.common import figure, sized
from tests.learn import conftest  # noqa: F401  makes torchvision importable beside a torch without CUDA
from tests.learn.grounded import artifacts, question_words
from tests.learn.planted import QUESTION, SMALL, planted, write_chats
from tests.learn.tiny_vlm import COLORS, make_vlm, pretrain
from uncanny.learn.grounding.data import read_images

STEPS = sized(20, 3)


def main() -> None:
    import uncanny.learn

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        data = write_chats(folder / "chats", train=range(8), test=range(0))
        truth = artifacts(folder / "truth", range(1))
        asked, *answers = question_words(truth)
        words = [QUESTION, *map(planted, COLORS), asked, *answers]
        model = make_vlm(folder / "base", [*words, "system user assistant You are a helpful assistant."])
        # It gives each answer to each image: else none would be better than the others.
        batch = [(image.file, asked, answer) for image in read_images(truth, None) for answer in set(answers)]
        pretrain(folder / "base", model, [batch], 60)
        shared: dict[str, Any] = {"base": folder / "base", "max_steps": STEPS, "epochs": 1000.0}
        run = uncanny.learn.reasoner(
            data, out=folder / "reasoner", batch=4, accumulate=2, **shared, **SMALL, before_and_after=0
        )
        state("reasoner, 8 chats a step", run.steps)
        settings = {**SMALL, "batch": 4, "accumulate": 2, "group": 4, "learning_rate": 1e-3}
        run = uncanny.learn.grounder(
            truth, out=folder / "grounder", box_format="pixels", **shared, **settings
        )
        state("grounder, 8 answers of up to 60 tokens a step", run.steps)


def state(what: str, steps: Any) -> None:
    """The first steps are left out: they load what the others find. At best is as if nothing else ran."""
    seconds = [each.seconds for each in steps[len(steps) // 4 :]]
    figure(f"{what}: time at best", min(seconds), "s")
    figure(f"{what}: time in the median", statistics.median(seconds), "s")
    figure(f"{what}: peak memory", max(each.memory_bytes for each in steps) / 2**20, "MiB")


if __name__ == "__main__":
    main()
