"""Scoring 20 models × 3,681 multiple-choice answers with 10,000 bootstrap resamples."""

from __future__ import annotations

import subprocess
import sys
import time

from benchmarks.common import peak_memory_mb
from uncanny.eval.mcq.data.items import Answer, Item, Split

MODELS = 20
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


def measure() -> None:
    from uncanny.eval.mcq.score.controls import baseline_answers
    from uncanny.eval.mcq.score.score import score

    items = release_like()
    answers: list[Answer] = []
    for model in range(MODELS):
        drawn = baseline_answers(items, "random", seed=model)
        answers += [answer.model_copy(update={"model": f"model-{model}"}) for answer in drawn]
    began, busy = time.perf_counter(), time.process_time()
    scores = score(items, answers)
    wall, processor = time.perf_counter() - began, time.process_time() - busy
    peak = peak_memory_mb()
    print(
        f"  {len(answers):,} answers of {len(scores)} models: {wall:.1f} s, {processor:.1f} CPU s, "
        f"peak {peak:.0f} MB   (wanted: at most 10 s on two cores)"
    )


def main() -> None:
    # Its own process: the peak is then of nothing but this.
    subprocess.run([sys.executable, "-m", "benchmarks.mcq_scoring", "--child"], check=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--child"]:
        measure()
    else:
        main()
