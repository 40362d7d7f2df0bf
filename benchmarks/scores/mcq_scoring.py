"""Scoring 20 models × 3,681 multiple-choice answers with 10,000 bootstrap resamples."""

from __future__ import annotations

import json
import sys
import time

from benchmarks.common import apart, figure, peak_memory_mb, sized
from uncanny.eval.mcq.data.items import Answer, Item, Split

MODELS = sized(20, 2)
SIZES: dict[Split, int] = {"art_dg": 356, "art_pg": 119, "ref_real": 356, "ref_pg": 119}


def release_like() -> list[Item]:
    """As many items as the released set, without pictures."""
    texts, boxes = dict.fromkeys("ABCD", "a part"), dict.fromkeys("ABCD", (0, 0, 9, 9))
    items = []
    for split, size in SIZES.items():
        word = "yes" if split.startswith("art") else "no"
        for n in range(size):
            letter = "ABCD"[n % 4] if word == "yes" else "E"
            fields = {
                "id": f"{split}{n}",
                "image": f"{split}{n}.png",
                "split": split,
                "artifact_type": ("anatomy", "topology", "count")[n % 3] if word == "yes" else None,
                "q1": None if split == "ref_pg" else {"answer": word},
                "q2": {"options": texts, "answer": letter},
                "q3": {"boxes": boxes, "answer": letter},
                "q4": {"options": texts, "answer": letter},
            }
            items.append(Item.model_validate(fields))
    return items


def drawn_answers(items: list[Item], models: int) -> list[Answer]:
    """Random answers of so many models to all questions."""
    from uncanny.eval.mcq.score.controls import baseline_answers

    return [
        answer.model_copy(update={"model": f"model-{model}"})
        for model in range(models)
        for answer in baseline_answers(items, "random", seed=model)
    ]


def measure() -> None:
    from uncanny.eval.mcq.score.score import score

    items = release_like()
    answers = drawn_answers(items, MODELS)
    began, busy = time.perf_counter(), time.process_time()
    scores = score(items, answers)
    wall, processor = time.perf_counter() - began, time.process_time() - busy
    print(json.dumps([len(answers), len(scores), wall, processor, peak_memory_mb()]))


def main() -> None:
    answers, models, wall, processor, peak = apart("benchmarks.scores.mcq_scoring")
    print(f"  {answers:,} answers of {models} models, on two cores")
    figure("wall time", wall, "s", 10)
    figure("CPU time", processor, "s")
    figure("peak memory", peak, "MB")


if __name__ == "__main__":
    if sys.argv[1:] == ["--child"]:
        measure()
    else:
        main()
