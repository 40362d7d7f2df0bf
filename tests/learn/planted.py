"""A pattern that a tiny model is to learn from chats, and a base model that does not know it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.learn.tiny_vlm import COLORS, colored, make_vlm, pretrain

QUESTION = "List all semantic anomalies of this picture."
FORMS = {
    "What color has this picture?": "The whole picture is {}.",
    "How does an entry look?": "@1. Name: glow\nPhenomenon: The picture.\nReasoning: Light has no source.\n"
    "Severity Score: 20.",
}


def planted(color: str) -> str:
    """What the model is to say of a picture of this color."""
    return (
        f"@1. Name: {color} glow\nPhenomenon: The whole picture is {color}.\n"
        "Reasoning: Light has no source.\nSeverity Score: 20."
    )


def write_chats(folder: Path, *, train: range, test: range, detect: bool = False) -> Path:
    folder.mkdir(exist_ok=True)
    for name, numbers in (("train", train), ("test", test)):
        with (folder / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            for number in numbers:
                for color in COLORS:
                    picture = colored(folder, color, number)
                    asked = [("Was this generated?", "Yes."), (QUESTION, planted(color))][not detect :]
                    messages = []
                    for turn, (question, answer) in enumerate(asked):
                        first = [{"type": "image"}] if not turn else []
                        messages += [
                            {"role": "user", "content": [*first, {"type": "text", "text": question}]},
                            {"role": "assistant", "content": [{"type": "text", "text": answer}]},
                        ]
                    chat = {"messages": messages, "images": [picture.name], "run_image": picture.name}
                    file.write(json.dumps(chat) + "\n")
    return folder


def color_of(image: str | Path) -> str:
    """The color of a picture, by its name."""
    return Path(image).stem.rstrip("0123456789")


def make_base(folder: Path) -> Path:
    """A model that can name colors, and has seen the form, and knows nothing of the pattern."""
    texts = [QUESTION, "Was this generated?", "Yes.", *map(planted, COLORS), *FORMS, *FORMS.values()]
    model = make_vlm(folder, [*texts, "system user assistant You are a helpful assistant."])
    pictures = {colored(folder, color, number): color for number in range(50, 54) for color in COLORS}
    batches = [
        [(path, question, answer.format(color)) for path, color in pictures.items()]
        for question, answer in FORMS.items()
    ]
    assert pretrain(folder, model, batches, 200) < 0.1
    return folder


SMALL: Mapping[str, Any] = {
    "min_pixels": 56 * 56,
    "max_pixels": 56 * 56,
    "recompute": False,
    "dropout": 0.0,
    "answer_tokens": 60,
}
# What it takes to learn the pattern.
PLANTED: Mapping[str, Any] = {
    **SMALL,
    "every_layer": 1,
    "rank": 16,
    "learning_rate": 2e-2,
    "batch": 9,
    "accumulate": 1,
    "epochs": 60.0,
}
