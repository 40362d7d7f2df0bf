"""Images with one artifact and images without, for a tiny model to locate."""

from __future__ import annotations

import json
from pathlib import Path

from tests.learn.tiny_vlm import colored
from uncanny.answers.boxes import BOX_FORMATS
from uncanny.learn.grounding.data import Question, read_images


def artifacts(folder: Path, numbers: range) -> Path:
    folder.mkdir(exist_ok=True)
    lines = []
    for number in numbers:
        red, blue = colored(folder, "red", number), colored(folder, "blue", number)
        region = {"category": "physics", "box": [7, 7, 28, 35]}
        lines.append({"image": red.name, "source": "generated", "regions": [region]})
        lines.append({"image": blue.name, "source": "real", "regions": []})
    file = folder / "artifacts.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return file


def question_words(file: Path) -> list[str]:
    """The question about the images, and the best answer to each."""
    question = Question(BOX_FORMATS["pixels"])
    images = read_images(file, None)
    answers = [question.answer(each.truth, sent=(56, 56), original=each.size) for each in images]
    return [question.ask((56, 56)), *answers]
