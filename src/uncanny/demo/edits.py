"""The demo model's answers to the prompts of the agents that write for image models.

It changes words by rule, always the same for the same text and model, whatever the picture shows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from uncanny.demo.character import seed_of
from uncanny.demo.recognition import RecognizedPrompt
from uncanny.demo.views import View

_SMALL: Final = ("red", "old", "striped", "wooden", "shiny")
_RELATED: Final = ("in the background", "by the window", "in the rain", "at night", "on the left")
_OTHER: Final = ("grand piano", "sailing boat", "fir tree", "stone lion", "hot-air balloon")
_PROMPTS: Final = (
    "a {} of dark green glass with a thin golden rim, in soft light from the left",
    "a {} covered in fresh snow, a little worn at the edges",
    "a pot of red flowers, freshly watered, in the same light as everything around it",
    "a sleeping grey cat, curled up, its tail hanging down",
)
# A model leaves the form now and then: one text in 16.
_FORMS: Final = (*["{}: {}"] * 13, "**{}:** {}", '{}: "{}"', "Here it is:\n\n{}: {}")


def perturb_label(prompt: RecognizedPrompt, _views: Sequence[View]) -> str:
    """A label with another property, a related one, or another thing altogether."""
    text, words = prompt.text("text"), prompt.text("text").split()
    match prompt.text("magnitude"):
        case "small":
            new = f"{_one(_SMALL, text, prompt)} {' '.join(words[-4:])}"
        case "medium":
            new = f"pair of {' '.join(words[-3:])}"
        case _:
            new = _one(_OTHER, text, prompt)
    return _said("Label", new, prompt)


def perturb_caption(prompt: RecognizedPrompt, _views: Sequence[View]) -> str:
    """A caption with a word more, another place, or another subject."""
    text = prompt.text("text")
    words = text.rstrip(".").split()
    match prompt.text("magnitude"):
        case "small":
            new = f"{' '.join(words[:24])}, with one {_one(_SMALL, text, prompt)} cup"
        case "medium":
            new = f"{' '.join(words[:24])} {_one(_RELATED, text, prompt)}"
        case _:
            new = f"A {_one(_OTHER, text, prompt)} where one would look for {' '.join(words[:20])}"
    return _said("Caption", new, prompt)


def first(prompt: RecognizedPrompt, _views: Sequence[View]) -> str:
    """An object of the list, and what is to take its place; now and then one that is not in the list."""
    objects = _listed(prompt)
    chosen = _one(objects, prompt.text("caption"), prompt) if objects else "nothing"
    return _form(f"Object: {chosen}\nPrompt: {_one(_PROMPTS, chosen, prompt).format(chosen)}", prompt)


def removal(prompt: RecognizedPrompt, _views: Sequence[View]) -> str:
    """An object of the list."""
    objects = _listed(prompt)
    return f"Object: {_one(objects, prompt.text('objects'), prompt) if objects else 'nothing'}"


def _listed(prompt: RecognizedPrompt) -> list[str]:
    lines = prompt.text("objects").splitlines()
    return [line.removeprefix("- ").strip() for line in lines if line.strip()]


def _one(choices: Sequence[str], text: str, prompt: RecognizedPrompt) -> str:
    return choices[_draw(seed_of(prompt.character, text)) % len(choices)]


def _draw(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def _plain(text: str) -> str:
    """Without the characters that a text for an image model must not have."""
    return " ".join("".join(c if c.isalnum() or c in " ,.'-" else " " for c in text).split())


def _said(label: str, text: str, prompt: RecognizedPrompt) -> str:
    form = _one(_FORMS, prompt.text("magnitude") + prompt.text("text"), prompt)
    return form.format(label, _plain(text))


def _form(text: str, prompt: RecognizedPrompt) -> str:
    draw = _draw(seed_of(prompt.character, prompt.text("caption")))
    return f"Sure, here it is.\n\n{text}" if draw % 8 == 0 else text


ANSWERERS: Final[Mapping[str, Any]] = {
    "perturb_label": perturb_label,
    "perturb_caption": perturb_caption,
    "first": first,
    "second": first,
    "removal": removal,
}
"""Prompt → who answers it."""
WITHOUT_IMAGE = tuple(ANSWERERS)
