"""What the demo model is asked, read from what any model would see: texts, image digests, answer form.

The prompts say who asks in a line `Agent: NAME, step K of N`, tell repeats apart in a line `Draft: K of N`
and multiple-choice questions in a line `Question: NAME`, and carry data as JSON (notes as plain text) in
tagged blocks such as `<object>…</object>`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

SchemaForm = Literal["none", "own", "shared"]

IMAGE_TOKENS = 765
"""Tokens an image counts as in the estimates: a 1024² image at GPT-4o's rate."""

_AGENT = re.compile(r"^[ \t]*Agent: *(\w+), *step (\d{1,4}) of (\d{1,4})(?!\d)", re.MULTILINE)
_DRAFT = re.compile(r"^[ \t]*Draft: *(\d{1,4}) of (\d{1,4})(?!\d)", re.MULTILINE)
_NAMED = re.compile(r"^[ \t]*Question: *(\w+)", re.MULTILINE)
_TAG = re.compile(r"<(/?)([a-z][a-z0-9_-]*)>")


@dataclass(frozen=True, slots=True)
class Turn:
    """One message's text, its parts joined with line breaks, its images left out."""

    role: Literal["system", "user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class BrainRequest:
    """One request as a model sees it. `images` are the sha256 digests of the bytes as sent, in order."""

    turns: tuple[Turn, ...]
    images: tuple[str, ...] = ()
    schema: SchemaForm = "none"
    max_output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class BrainAnswer:
    """The answer's text; `finish` is `length` where the output limit cut it off."""

    text: str
    finish: Literal["stop", "length"] = "stop"


@dataclass(frozen=True, slots=True)
class Question:
    """Who asks what. `draft` is 1 where the prompt names none; `blocks` maps tags to their raw content.

    `name` is what the line `Question:` says, empty where there is none.
    """

    agent: str
    step: int
    steps: int
    draft: int = 1
    name: str = ""
    blocks: Mapping[str, str] = field(default_factory=dict)

    def text(self, tag: str) -> str:
        """The block as plain text, empty where there is none; a JSON string is unwrapped."""
        raw = self.blocks.get(tag, "")
        if raw.startswith('"') and isinstance(value := _parsed(raw), str):
            return value
        return raw

    def data(self, tag: str) -> Mapping[str, Any]:
        """The block as a JSON object, empty where it is missing or something else."""
        value = _parsed(self.blocks.get(tag, ""))
        return value if isinstance(value, dict) else {}

    def rows(self, tag: str) -> list[Mapping[str, Any]]:
        """The block as a JSON list of objects, empty where it is missing or something else."""
        value = _parsed(self.blocks.get(tag, ""))
        return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def read_question(turns: Sequence[Turn]) -> Question | None:
    """The last question asked; None where no user turn has an `Agent:` line.

    A repair question has none of its own, so the question it repairs is read again. Where a tag occurs
    more than once, the last block counts.
    """
    users = [turn.text for turn in turns if turn.role == "user"]
    unquoted = "\n".join(_without_blocks(text) for text in users)
    asked = _AGENT.findall(unquoted)
    if not asked:
        return None
    agent, step, steps = asked[-1]
    everything = "\n".join(users)
    drafts, names = _DRAFT.findall(everything), _NAMED.findall(unquoted)
    return Question(
        agent=agent,
        step=int(step),
        steps=int(steps),
        draft=int(drafts[-1][0]) if drafts else 1,
        name=names[-1] if names else "",
        blocks={tag: everything[start:end].strip(" \t\r\n") for tag, start, end in _blocks(everything)},
    )


def _blocks(text: str) -> Iterator[tuple[str, int, int]]:
    """Tag, beginning and end of the content of each `<tag>…</tag>`, none within another."""
    tags = [(found[2], bool(found[1]), found.start(), found.end()) for found in _TAG.finditer(text)]
    closing: dict[str, list[int]] = {}
    for tag, closes, start, _ in tags:
        if closes:
            closing.setdefault(tag, []).append(start)
    after = 0
    for tag, closes, start, end in tags:
        ends = closing.get(tag, [])
        number = bisect_left(ends, end)
        if not closes and start >= after and number < len(ends):
            yield tag, end, ends[number]
            after = ends[number] + len(f"</{tag}>")


def _without_blocks(text: str) -> str:
    kept, after = [], 0
    for tag, start, end in _blocks(text):
        kept.append(text[after : start - len(f"<{tag}>")])
        after = end + len(f"</{tag}>")
    return "".join([*kept, text[after:]])


def text_tokens(text: str) -> int:
    """Tokens a text counts as in the estimates: one for each four characters begun."""
    return -(-len(text) // 4)


def _parsed(raw: str) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
