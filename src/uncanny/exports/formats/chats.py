"""Chats for fine-tuning a model on verified anomalies: to list them, or first to say whether there are any.

The list is in the `@k` form of the published evaluation, in an order that is shuffled by seed and image, so
that a model learns no order that means nothing. A list over the token limit becomes several chats. An image
whose findings are not all judged is left out: a list with gaps would teach a model to overlook things.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from random import Random
from typing import Final

from uncanny.exports.data import ExportImage
from uncanny.exports.writer import FormatWriter
from uncanny.files import dump_json
from uncanny.models.tokens import text_tokens
from uncanny.prompts import prompt_set
from uncanny.schema import Anomaly

NOTHING: Final = "No anomalies."
VERDICTS: Final = {"generated": "Yes.", "real": "No."}
_TAG: Final = "<image>"
# What would begin an entry or a field of its own, inside of one.
_ENTRY: Final = re.compile(r"@(?=\s*\d)")
_FIELD: Final = re.compile(r"\b(name|phenomenon|reasoning|severity(?: score)?)\s*[:：]", re.IGNORECASE)


def listed(number: int, anomaly: Anomaly) -> str:
    """One entry of the `@k` form. Texts are on one line, and cannot pass for another entry or field."""
    severity = f"\nSeverity Score: {anomaly.severity}." if anomaly.severity_rated else ""
    return (
        f"@{number}. Name: {_inline(anomaly.name)}\nPhenomenon: {_inline(anomaly.phenomenon)}\n"
        f"Reasoning: {_inline(anomaly.reasoning)}{severity}"
    )


def _inline(text: str) -> str:
    line = _ENTRY.sub("@ ", " ".join(text.split()))
    return _FIELD.sub(lambda match: f"{match[1]} –", line)


class ChatWriter(FormatWriter):
    """`train.jsonl` and `test.jsonl`: `messages`, `images`, and which image of the run it is.

    In the form `parts` a message's content is a list of parts, as TRL and the chat templates of transformers
    take it; in the form `tags` it is a text with `<image>`, as LLaMA-Factory and ms-swift do.
    """

    def start(self) -> None:
        self._files = {split: self.open(self.target / f"{split}.jsonl") for split in ("train", "test")}
        self._texts = prompt_set("finetune")

    @abstractmethod
    def turns(self, image: ExportImage) -> Iterator[list[tuple[str, str]]]:
        """What is asked and answered, a list of turns a chat; none where the image cannot be told of."""

    def add(self, image: ExportImage) -> None:
        if not image.complete:
            self.note("images not reviewed to the end, left out")
            return
        chats = list(self.turns(image))
        for number, turns in enumerate(chats):
            messages = []
            for place, (asked, answer) in enumerate(turns):
                messages.append({"role": "user", "content": self._content(asked, picture=not place)})
                messages.append({"role": "assistant", "content": self._content(answer)})
            chat = {
                "messages": messages,
                "images": [self.reference(image)],
                "run_image": image.record.image,
                "sha256": image.record.sha256,
                "group": image.group,
                "part": number + 1,
                "parts": len(chats),
            }
            self._files[image.split].write(dump_json(chat) + b"\n")

    def _content(self, text: str, *, picture: bool = False) -> str | list[dict[str, str]]:
        if self.job.parameters.chat == "tags":
            # A tag in the text would be counted as a picture that is not there.
            plain = text.replace(_TAG, "‹image›")
            return f"{_TAG}{plain}" if picture else plain
        parts = [{"type": "text", "text": text}]
        return [{"type": "image"}, *parts] if picture else parts

    def asked(self, name: str) -> str:
        return self._texts[name].fill().strip()

    def lists(self, image: ExportImage) -> list[str]:
        """The anomalies as answers, each within the token limit where more than one entry is in it."""
        anomalies = [each.anomaly for each in image.anomalies if each.decision != "reject"]
        if not anomalies:
            return [NOTHING]
        Random(f"{self.job.parameters.seed} {image.record.sha256 or image.record.image}").shuffle(anomalies)
        answers: list[str] = []
        batch: list[Anomaly] = []
        for anomaly in anomalies:
            if batch and self._tokens([*batch, anomaly]) > self.job.parameters.max_tokens:
                answers.append(_answer(batch))
                batch = []
            batch.append(anomaly)
            if len(batch) == 1 and self._tokens(batch) > self.job.parameters.max_tokens:
                self.note("anomalies over the token limit by themselves")
        return [*answers, _answer(batch)]

    def _tokens(self, anomalies: Sequence[Anomaly]) -> int:
        count = self.job.parameters.count_tokens or text_tokens
        return count(_answer(anomalies))


def _answer(anomalies: Sequence[Anomaly]) -> str:
    return "\n".join(listed(number, anomaly) for number, anomaly in enumerate(anomalies, 1))


class ListWriter(ChatWriter):
    """One turn: everything that is wrong, as a list."""

    def turns(self, image: ExportImage) -> Iterator[list[tuple[str, str]]]:
        if image.source == "real":
            self.note("real photographs, left out")
            return
        for answer in self.lists(image):
            yield [(self.asked("list"), answer)]


class DetectWriter(ChatWriter):
    """Two turns: is it generated, and then what is wrong, or what a real photograph shows."""

    def turns(self, image: ExportImage) -> Iterator[list[tuple[str, str]]]:
        if image.source is None:
            self.note("images without a `source`, left out")
            return
        verdict = (self.asked("source"), VERDICTS[image.source])
        if image.source == "generated":
            for answer in self.lists(image):
                yield [verdict, (self.asked("list"), answer)]
            return
        description = _description(image)
        if description is None:
            self.note("real photographs without a description, left out")
            return
        yield [verdict, (self.asked("content"), description)]


def _description(image: ExportImage) -> str | None:
    """What a run of `detect` was told of the photograph, else the objects that were found in it."""
    told = (image.record.model_extra or {}).get("description")
    if isinstance(told, str) and told.strip():
        return told.strip()
    lines = [f"{each.name}: {each.description}" for each in image.record.objects if each.description.strip()]
    return "\n".join(lines) or None
