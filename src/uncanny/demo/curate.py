"""The demo model's answers to the questions of the filter: the bundled scenes are drawings, and not blurred.

Of other images and of prompts it goes by a draw, or by words.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from uncanny.demo.character import seed_of
from uncanny.demo.recognition import RecognizedPrompt
from uncanny.demo.views import SYNTHETIC_MARK, View

_OTHER_MEDIA: Final = re.compile(
    r"\b(?:anime|cartoon|comic|drawing|illustration|logo|painting|pixel art|render\w*|sketch|watercolor)\b",
    re.IGNORECASE,
)


def photo(prompt: RecognizedPrompt, views: Sequence[View]) -> str:
    """No of a bundled scene; of other images one way or the other, always the same."""
    if views[0].scene is not None:
        return _said("Flat colors and even outlines: this is a drawing.", False)
    return _said(f"I looked at the whole picture ({SYNTHETIC_MARK}).", _draw(prompt, views) % 4 > 0)


def blurred(prompt: RecognizedPrompt, views: Sequence[View]) -> str:
    """No of a bundled scene; of one other image in eight yes."""
    if views[0].scene is not None:
        return _said("All outlines are sharp.", False)
    return _said(f"I looked at faces and plates ({SYNTHETIC_MARK}).", _draw(prompt, views) % 8 == 0)


def photo_prompt(prompt: RecognizedPrompt, _views: Sequence[View]) -> str:
    """No where the prompt names another medium."""
    found = _OTHER_MEDIA.search(prompt.text("caption"))
    return _said("It names no style." if found is None else f"It asks for {found[0]}.", found is None)


def _said(why: str, yes: bool) -> str:
    return f"{why}\n\nVerdict: {'Yes' if yes else 'No'}"


def _draw(prompt: RecognizedPrompt, views: Sequence[View]) -> int:
    return hashlib.sha256(f"filter:{seed_of(prompt.character, views[0].sha256)}".encode()).digest()[0]


ANSWERERS: Final[Mapping[str, Any]] = {"photo": photo, "blurred": blurred, "photo_prompt": photo_prompt}
"""Prompt → who answers it."""
WITHOUT_IMAGE: Final = ("photo_prompt",)
