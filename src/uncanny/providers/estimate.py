"""Rough numbers of input tokens before anything is asked, for `--dry-run`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from uncanny.providers.base import Request
from uncanny.providers.image_tokens import image_tokens

CHARACTERS_PER_TOKEN = 4


def text_tokens(text: str) -> int:
    """Tokens of a text, taken as four characters each.

    An estimate: right within a fifth or so for English prose, too low for code and for most other scripts.
    """
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


def input_tokens(model: str, request: Request) -> int | None:
    """Estimate the input tokens of a request to `provider/model`; None where its image's are not known."""
    total = 0
    for message in request.messages:
        for part in message.parts:
            tokens = (
                text_tokens(part) if isinstance(part, str) else image_tokens(model, part.width, part.height)
            )
            if tokens is None:
                return None
            total += tokens
    return total


@dataclass(slots=True)
class InputEstimate:
    """Input tokens of many calls, those of text and those of images apart.

    How many tokens an image takes is not known for every model. Of such a model's images only the number is
    counted, in `uncounted`, and the model is in `models`.
    """

    text: int = 0
    images: int = 0
    uncounted: int = 0
    models: set[str] = field(default_factory=set)

    def add(self, model: str, text: int, *images: int | None, calls: int = 1) -> None:
        """So many calls with `text` tokens of text and an image for each of `images`; None is not known."""
        self.text += calls * text
        for tokens in images:
            if tokens is None:
                self.uncounted += calls
                if calls:
                    self.models.add(model)
            else:
                self.images += calls * tokens

    @property
    def total(self) -> int | None:
        """All of them; None where those of some images are not known."""
        return None if self.uncounted else self.text + self.images

    def as_json(self, suffix: str = "") -> dict[str, Any]:
        return {
            f"input_tokens{suffix}": self.total,
            f"input_tokens_known{suffix}": self.text + self.images,
            f"images_uncounted{suffix}": self.uncounted,
        }


def input_words(found: dict[str, Any], form: Callable[[int], str], *suffixes: str) -> str:
    """The estimate of `InputEstimate.as_json` as it is shown; with suffixes, from the least to the most."""
    suffixes = suffixes or ("",)
    known = _range([form(found[f"input_tokens_known{suffix}"]) for suffix in suffixes])
    images = _range([f"{found[f'images_uncounted{suffix}']:,}" for suffix in suffixes])
    if not any(found[f"images_uncounted{suffix}"] for suffix in suffixes):
        return f"{known} in"
    return f"{known} in, and {images} images on top"


def notes_of(found: dict[str, Any]) -> list[str]:
    """What an estimate leaves open, a line each: images of unknown tokens, addresses that are missing."""
    models = ", ".join(found["image_tokens_unknown"])
    why = f"How many tokens an image takes is not known for {models}; the cost is not, either."
    return [*([why] if models else []), *found["missing"]]


def _range(ends: list[str]) -> str:
    return " to ".join(dict.fromkeys(ends))
