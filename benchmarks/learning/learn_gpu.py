"""The reasoner on a GPU: tokens a second and peak memory, beside what `learn_size` calculates.

    python -m benchmarks.learning.learn_gpu [--hidden 1024 --layers 24 --batch 4 --accumulate 2 --steps 12]

The model is a Qwen2.5-VL with random weights, and learns nothing of use. Nothing is downloaded: the script
needs the packages of the extra `learn`, and torchvision, which the processor of Qwen-VL uses. Pictures have
614,656 pixels, answers the length of a list of some five anomalies. With smaller sizes it runs on a CPU.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from tokenizers import Tokenizer

from benchmarks.learning.learn_size import ANSWER, GIB, GPUS, PARTS, QUESTION, needs, shape_of
from tests.learn.tiny_vlm import make_vlm

WORDS = [f"{first}{second}" for first in "bcdfghklmnprst" for second in ("a", "e", "in", "or", "ul", "ash")]
SIDE = 784


def sentence(chance: random.Random, words: int) -> str:
    return " ".join(chance.choice(WORDS) for _ in range(words))


def write_chats(folder: Path, number: int, side: int, words: tuple[int, int]) -> None:
    """`train.jsonl` with pictures of noise, each with a question and a list of these numbers of words."""
    chance = random.Random(0)
    with (folder / "train.jsonl").open("w", encoding="utf-8") as file:
        for each in range(number):
            pixels = np.random.default_rng(each).integers(0, 256, (side, side, 3), np.uint8)
            Image.fromarray(pixels).save(folder / f"{each}.jpg", quality=80)
            part = words[1] // 15
            entries = [
                f"@{k}. Name: {sentence(chance, 2)}\nPhenomenon: {sentence(chance, part)}\n"
                f"Reasoning: {sentence(chance, 2 * part)}\nSeverity Score: {chance.randrange(101)}."
                for k in range(1, 6)
            ]
            question = [{"type": "image"}, {"type": "text", "text": sentence(chance, words[0])}]
            answer = [{"type": "text", "text": "\n".join(entries)}]
            chat = {
                "messages": [
                    {"role": "user", "content": question},
                    {"role": "assistant", "content": answer},
                ],
                "images": [f"{each}.jpg"],
            }
            file.write(json.dumps(chat) + "\n")


def answer_tokens(data: Path, base: Path) -> float:
    """Mean number of tokens of the answers, with the two that end them."""
    tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
    chats = map(json.loads, (data / "train.jsonl").read_text(encoding="utf-8").splitlines())
    answers = (chat["messages"][1]["content"][0]["text"] for chat in chats)
    return statistics.mean(len(tokenizer.encode(each).ids) for each in answers) + 2


def main(arguments: Sequence[str] = ()) -> None:
    """Measure with these options, by default with those for one GPU."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--hidden", type=int, default=1024)
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--side", type=int, default=SIDE)
    parser.add_argument("--vocabulary", type=int, default=152_064)
    parser.add_argument("--every", type=int, default=4)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as place:
        measure(Path(place), given)


def measure(folder: Path, given: Any) -> None:
    import torch

    import uncanny.learn

    texts = [*WORDS, "Name: Phenomenon: Reasoning: Severity Score: @ 0123456789"]
    model = make_vlm(
        folder / "base",
        texts,
        hidden=given.hidden,
        layers=given.layers,
        width=5 * given.hidden,
        vocabulary=given.vocabulary,
        dtype=torch.bfloat16 if torch.cuda.is_available() else torch.float32,
    )
    shape = shape_of(model)
    weights = sum(each.numel() for each in model.parameters())
    del model
    data = folder / "data"
    data.mkdir()
    write_chats(data, given.batch * given.accumulate * 2, given.side, (QUESTION, ANSWER))
    run = uncanny.learn.reasoner(
        data,
        base=folder / "base",
        out=folder / "run",
        batch=given.batch,
        accumulate=given.accumulate,
        epochs=10_000.0,
        max_steps=given.steps,
        every_layer=given.every,
        before_and_after=0,
        checkpoint_every=10**9,
    )
    steps = run.steps
    # The first steps load libraries and choose kernels.
    seconds = statistics.median(each.seconds or 0 for each in steps[len(steps) // 3 :])
    results = run.results
    tokens = results["tokens"]["train"] / results["examples"]["train"]
    peak = max(each.memory_bytes or 0 for each in steps)
    patch = 14
    scored = answer_tokens(data, folder / "base")
    calculated = needs(
        shape,
        tokens=round(tokens),
        scored=round(scored),
        patches=(given.side // patch) ** 2,
        batch=given.batch,
        accumulate=given.accumulate,
        every=given.every,
    )
    a_step = tokens * given.batch * given.accumulate
    rate = calculated.operations / seconds / 1e12
    print(f"{results['machine']}, torch {torch.__version__}")
    print(f"{weights / 1e6:,.0f} million weights, {results['trainable_parameters']:,} of them trained")
    print(f"{tokens:,.0f} tokens a chat, {scored:,.0f} of the answer")
    print(f"batch {given.batch}, accumulation {given.accumulate}")
    print(f"{seconds:.3f} s a step, {a_step / seconds:,.0f} tokens a second, {rate:,.1f} TFLOP/s")
    print(f"peak memory {peak / GIB:.2f} GiB, calculated {calculated.bytes / GIB:.2f} GiB:")
    for name in PARTS[:-1]:
        print(f"  {name.replace('_', ' '):13} {getattr(calculated, name) / GIB:8.3f} GiB")
    for gpu, (most, _, _) in GPUS.items():
        print(f"  {rate / most:6.1%} of the peak of {gpu}; calculated {calculated.seconds(gpu):.3f} s a step")
    print("loss " + " ".join(f"{each.loss:.3f}" for each in steps if each.loss is not None))


if __name__ == "__main__":
    main(sys.argv[1:])
