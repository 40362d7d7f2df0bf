"""Which of uncanny's prompts a request asks with, and the values of its variables.

The demo model gets what any model gets: texts. It compares them with the templates of the prompt package,
from the first word to the last; how white space is laid out makes no difference. A match says which prompt it
is and what stands in the place of each `$variable`, so no prompt has to carry a word for the demo model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from string import Template
from typing import Any, Final, Literal

import orjson

from uncanny.demo.character import Character
from uncanny.prompts import prompt_set
from uncanny.protocol import prompt_names
from uncanny.schema import ARTIFACT_CATEGORIES

# (task, prompt) → the prompt whose text may stand ahead of it in the same message.
_PRECEDED_BY: Final = {
    ("annotate", "relation_look"): "relation_context",
    ("annotate", "relation_verify"): "relation_context",
}
# They are about an answer that could not be read, and the prompt before them is meant.
_REPAIRS: Final = ("repair", "repair_text")
# System texts are not read, and the others are parts of other prompts.
_NOT_ASKED: Final = (
    *("system", "relation_context", "open", "strict"),
    *("open_look", "inventory", "listed", "shown", "doubts", "known"),
    *("small", "medium", "large"),
    *ARTIFACT_CATEGORIES,
)


@dataclass(frozen=True, slots=True)
class Turn:
    """One message's text, its parts joined with line breaks, its images left out."""

    role: Literal["system", "user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class RecognizedPrompt:
    """A prompt of one of the package's sets; `variables` are the texts it was filled with, stripped.

    `character` is that of the model that is asked; None is the demo model.
    """

    task: str
    name: str
    variables: Mapping[str, str] = field(default_factory=dict)
    character: Character | None = None

    def text(self, variable: str) -> str:
        """The variable as it stands; empty where the prompt has none of that name."""
        return self.variables.get(variable, "")

    def record(self, variable: str) -> Mapping[str, Any]:
        """The variable as a JSON object; empty where it is missing or something else."""
        value = _parsed(self.text(variable))
        return value if isinstance(value, dict) else {}

    def lines(self, variable: str) -> list[Mapping[str, Any]]:
        """The variable as JSON objects, one a line; a line that is none is left out."""
        values = (_parsed(line) for line in self.text(variable).splitlines())
        return [row for row in values if isinstance(row, dict)]

    def records(self, variable: str) -> list[Mapping[str, Any]]:
        """The variable as a JSON list of objects; empty where it is missing or something else."""
        value = _parsed(self.text(variable))
        return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def recognize(turns: Sequence[Turn]) -> RecognizedPrompt | None:
    """The last prompt of the package in the user's turns; None where there is none.

    A repair prompt counts for nothing by itself: the prompt whose answer it is about is answered again. Nor
    do texts that are quoted within a prompt, or that stand in the system's or the assistant's turns.
    """
    for turn in reversed(turns):
        prompt = _recognize_text(turn.text) if turn.role == "user" else None
        if prompt is not None and prompt.name not in _REPAIRS:
            return prompt
    return None


# What stands between the pictures of one message.
_LABELS: Final = re.compile(r"(?:(?:That was the whole picture\.|(?:The whole picture|Part \d+):)\s+)*+")


def _recognize_text(text: str) -> RecognizedPrompt | None:
    text = text.strip()
    text = text[_LABELS.match(text).end() :]  # type: ignore[union-attr]
    for pattern in prompt_patterns():
        if (match := pattern.regex.match(text)) is not None:
            values = (value.strip() for value in match.groups())
            return RecognizedPrompt(
                pattern.task, pattern.name, dict(zip(pattern.variables, values, strict=True))
            )
    return None


@dataclass(frozen=True, slots=True)
class PromptPattern:
    """A template as a regular expression, with a group for each place of a variable."""

    task: str
    name: str
    variables: tuple[str, ...]
    regex: re.Pattern[str]


@cache
def prompt_patterns() -> tuple[PromptPattern, ...]:
    """Patterns of all prompts of all sets. The first call takes tens of milliseconds."""
    patterns: dict[str, PromptPattern] = {}
    for task in prompt_names():
        texts = prompt_set(task).texts()
        for name in (name for name in texts if name not in _NOT_ASKED and not name.startswith("box_")):
            first = _PRECEDED_BY.get((task, name))
            wholes = [texts[name]] if first is None else [texts[name], f"{texts[first]}\n{texts[name]}"]
            for whole in wholes:
                patterns.setdefault(whole, _pattern(task, name, whole))
    return tuple(patterns.values())


def _pattern(task: str, name: str, template: str) -> PromptPattern:
    """Matches what the template looks like filled in, in time proportional to the text.

    A value ends where the words behind it first appear, and is never tried longer (atomic groups): a shorter
    one leaves more text for the rest. Only the words behind the last value must be where the text ends.
    """
    literals, variables = [""], list[str]()
    end = 0
    for place in Template.pattern.finditer(template):
        literals[-1] += template[end : place.start()]
        end = place.end()
        variable = place["named"] or place["braced"]
        if variable:
            variables.append(variable)
            literals.append("")
        else:
            literals[-1] += "$"
    literals[-1] += template[end:]
    first, *behind = map(_words, literals)
    middle = "".join(f"(?>(.*?){words})" for words in behind[:-1])
    last = f"(?>(.*?){behind[-1]}\\Z)" if behind else r"\Z"
    return PromptPattern(task, name, tuple(variables), re.compile(first + middle + last, re.DOTALL))


def _words(literal: str) -> str:
    """The words with any white space between them; what stands at the edges belongs to the values."""
    return r"\s++".join(map(re.escape, literal.split())) or (r"\s" if literal else "")


def _parsed(raw: str) -> Any:
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
