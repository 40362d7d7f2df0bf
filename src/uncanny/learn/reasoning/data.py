"""Chats as a trainer takes them: with their pictures, within the token limit, loss on answers only."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from uncanny.answers.verdicts import read_source
from uncanny.errors import AnswerError, ImageError, UsageError
from uncanny.images.prepared import read_rgb
from uncanny.learn.common.chats import Chat
from uncanny.wording import option

if TYPE_CHECKING:
    from PIL import Image

_TAG: Final = "<image>"
_ENTRY: Final = re.compile(r"^@\d+\.", re.MULTILINE)

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Example:
    """A chat to train on: its messages in parts, and the files of its pictures."""

    messages: tuple[Message, ...]
    images: tuple[Path, ...]
    key: str

    @property
    def turns(self) -> int:
        """How often the model answers."""
        return sum(each["role"] == "assistant" for each in self.messages)

    def pictures(self) -> list[Image.Image]:
        """The pixels, upright, in RGB. Raises ImageError."""
        return [read_rgb(each)[0] for each in self.images]


def row_of(example: Example, *, markers: bool) -> dict[str, Any]:
    """An example as TRL takes it, its pictures read. Raises ImageError.

    With `markers` the loss is on all answers, told by the marks of the chat template; without them the last
    answer is apart from the messages before it.
    """
    messages = [dict(each) for each in example.messages]
    if markers:
        return {"messages": messages, "images": example.pictures()}
    return {"prompt": messages[:-1], "completion": messages[-1:], "images": example.pictures()}


def data_set_of(examples: Sequence[Example], *, markers: bool) -> Any:
    """A data set of `datasets` that reads pictures when a batch is made.

    Messages stay outside of Arrow, which would fill parts of different kinds up to one kind.
    """
    from datasets import Dataset

    def rows(batch: Mapping[str, Sequence[int]]) -> dict[str, list[Any]]:
        read = [row_of(examples[number], markers=markers) for number in batch["number"]]
        return {name: [row[name] for row in read] for name in read[0]}

    return Dataset.from_dict({"number": list(range(len(examples)))}).with_transform(rows)


def examples_of(chats: Sequence[Chat], root: Path, special: Sequence[str] = ()) -> list[Example]:
    """The chats with their messages in parts and their pictures below `root`.

    A text that contains one of the `special` tokens of a model would be taken for a picture or for the end of
    a turn: a blank goes into it. Raises UsageError for pictures that are not there.
    """
    examples = []
    missing = []
    for chat in chats:
        files = tuple(root / each for each in chat.images)
        missing += [each for each in files if not each.is_file()]
        messages = tuple(
            {"role": turn.role, "content": _parts(turn.content, special)} for turn in chat.messages
        )
        examples.append(Example(messages, files, chat.sha256 or chat.run_image or str(files[0])))
    if missing:
        raise UsageError(
            f"{len(missing):,} of the images of the chats do not exist, first {missing[0]}",
            remedy=f"Pass the folder that their paths start from with {option('root')}.",
        )
    return examples


def _parts(content: str | Sequence[Mapping[str, Any]], special: Sequence[str]) -> list[Message]:
    if isinstance(content, str):
        pieces = content.split(_TAG)
        parts: list[Message] = []
        for number, piece in enumerate(pieces):
            parts += [{"type": "image"}] if number else []
            parts += [{"type": "text", "text": piece}] if piece else []
        content = parts
    return [
        {"type": "image"}
        if part.get("type") == "image"
        else {"type": "text", "text": _harmless(part, special)}
        for part in content
    ]


def _harmless(part: Mapping[str, Any], special: Sequence[str]) -> str:
    text = str(part.get("text", ""))
    for token in special:
        text = text.replace(token, f"{token[0]} {token[1:]}")
    return text


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message in parts."""
    return "".join(part.get("text", "") for part in message["content"])


@dataclass(slots=True)
class Fitted:
    """Examples that are within the token limit, and what was done for it.

    `split` chats became several; `left_out` ones are too long with a single entry, `unreadable` says why
    the picture of others cannot be read, by key. `tokens` are those of each example.
    """

    examples: list[Example] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    split: int = 0
    left_out: int = 0
    unreadable: dict[str, str] = field(default_factory=dict)


def fit(
    examples: Sequence[Example], count: Callable[[Example], int], limit: int | None, done: Callable[[], None]
) -> Fitted:
    """The examples as far as they fit the limit; `count` says how many tokens one has, pictures included.

    A list that is too long is divided in halves until each fits, its entries numbered anew. Nothing is ever
    cut. `done` is called after each example.
    """
    fitted = Fitted()
    for example in examples:
        try:
            parts = list(_fitting(example, count, limit))
        except ImageError as error:
            fitted.unreadable[example.key] = f"{example.images[0]}: {error.text}"
        else:
            fitted.split += len(parts) > 1
            for part, tokens in parts:
                if tokens is None:
                    fitted.left_out += 1
                else:
                    fitted.examples.append(part)
                    fitted.tokens.append(tokens)
        done()
    return fitted


def _fitting(
    example: Example, count: Callable[[Example], int], limit: int | None
) -> Iterator[tuple[Example, int | None]]:
    tokens = count(example)
    if limit is None or tokens <= limit:
        yield example, tokens
        return
    halves = _halves(example)
    if not halves:
        yield example, None
    for half in halves:
        yield from _fitting(half, count, limit)


def _halves(example: Example) -> list[Example]:
    """The example with either half of the entries of its last answer; none where there are not two."""
    *before, last = example.messages
    entries = split_entries(text_of(last))
    if len(entries) < 2:
        return []
    middle = len(entries) // 2
    return [
        Example(
            (*before, {"role": last["role"], "content": [{"type": "text", "text": join_entries(half)}]}),
            example.images,
            example.key,
        )
        for half in (entries[:middle], entries[middle:])
    ]


def split_entries(answer: str) -> list[str]:
    """The entries of a list in the `@k` form, without their numbers; none of another text."""
    if not _ENTRY.match(answer):
        return []
    return [each.strip() for each in _ENTRY.split(answer)[1:]]


def join_entries(entries: Sequence[str]) -> str:
    """Entries as a list in the `@k` form, numbered from 1."""
    return "\n".join(f"@{number}. {entry}" for number, entry in enumerate(entries, 1))


def questions(examples: Sequence[Example]) -> Mapping[str, str]:
    """What `uncanny detect` has to ask of the trained model: by the name of its prompt, the usual question.

    A model knows the questions that it was trained on; these are the most frequent ones of the chats.
    """
    asked: dict[str, Counter[str]] = {
        name: Counter() for name in ("system", "source", "anomalies", "content")
    }
    for example in examples:
        system = [text_of(each) for each in example.messages if each["role"] == "system"]
        users = [text_of(each) for each in example.messages if each["role"] == "user"]
        answers = [text_of(each) for each in example.messages if each["role"] == "assistant"]
        asked["system"][system[0] if system else ""] += 1
        if len(users) > 1:
            asked["source"][users[0]] += 1
        asked["content" if len(users) > 1 and _is_real(answers[0]) else "anomalies"][users[-1]] += 1
    return {name: texts.most_common(1)[0][0] for name, texts in asked.items() if texts}


def _is_real(answer: str) -> bool:
    try:
        return read_source(answer) == "real"
    except AnswerError:
        return False
