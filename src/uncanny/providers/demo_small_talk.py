"""What the fake server says to questions that are not uncanny's own: made up, but readable as answers."""

from __future__ import annotations

import re

import orjson

from uncanny.providers.demo_mcq import made_up_choice
from uncanny.providers.demo_question import BrainRequest
from uncanny.providers.demo_view import SYNTHETIC_MARK

_LETTER = re.compile(r"\b[A-F]\b")
_RANGE = re.compile(r"\bA *(?:-|–|—|to) *([D-F])\b")
_YES, _NO = re.compile(r"\byes\b", re.IGNORECASE), re.compile(r"\bno\b", re.IGNORECASE)
_SENTENCE = f"This is a {SYNTHETIC_MARK}: it answers the questions of uncanny's own prompts only."


def small_talk(request: BrainRequest) -> str:
    """A letter where the last question names options A–D or more, yes or no where it names both, or a remark.

    F is the answer without an image, where it is an option, and never with one. The choice is drawn from the
    images and the question; it comes as `{"answer": …}` where the texts or a schema ask for that.
    """
    text = next((turn.text for turn in reversed(request.turns) if turn.role == "user"), "")
    choice = _choice(text, request.images)
    if choice is None:
        return _SENTENCE
    wants_json = request.schema != "none" or any(
        '"answer"' in turn.text for turn in request.turns if turn.role != "assistant"
    )
    return orjson.dumps({"answer": choice}).decode() if wants_json else choice


def _choice(text: str, images: tuple[str, ...]) -> str | None:
    seed = "\n".join((*images, text))
    letters = _letters(text)
    if letters:
        if "F" in letters and not images:
            return "F"
        return made_up_choice(seed, "letter", letters.replace("F", ""))
    return made_up_choice(seed, "q1") if _YES.search(text) and _NO.search(text) else None


def _letters(text: str) -> str:
    """The options the text names, such as `ABCDE`; empty where A–D are not all among them."""
    found = set(_LETTER.findall(text))
    for last in _RANGE.findall(text):
        found.update("ABCDEF"[: "ABCDEF".index(last) + 1])
    return "".join(sorted(found)) if found >= set("ABCD") else ""
