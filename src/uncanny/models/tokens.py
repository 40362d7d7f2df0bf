"""How many input tokens an image and a text take, for budgets and for `--dry-run`: estimates.

Those of images are in the table of `views`. Bills count what the API reports, never this.
"""

from __future__ import annotations

import math
import re
from typing import Final

from uncanny.models.base import Detail, ModelRequest
from uncanny.models.views import family_of
from uncanny.wording import counted, option


def image_tokens(model: str, width: int, height: int, detail: Detail = "high") -> int | None:
    """Estimate the tokens of an image of `width` × `height` pixels for `provider/model`; None if unknown.

    `detail` is OpenAI's. Raises `ValueError` for sizes below 1.
    """
    if width < 1 or height < 1:
        raise ValueError(f"an image of {width} × {height} pixels has no tokens")
    family = family_of(model)
    return None if family is None else family.geometry.at(detail).tokens(width, height)


# OpenAI's guide to prompt caching, and Anthropic's, of 2026; the latter says
# 1,024 for claude-sonnet-4-6, and users measured 2,048.
_LEAST_CACHED: Final = (
    (r"^openai/", 1_024),
    (r"^anthropic/claude-(opus-4-[56]|haiku-4-5)", 4_096),
    (r"^anthropic/claude-(opus-4-7|sonnet-4-6|3-haiku|3-5-haiku)", 2_048),
    (r"^anthropic/claude-(opus|fable|mythos)-5", 512),
    (r"^anthropic/", 1_024),
)


def least_cached(model: str) -> int:
    """Tokens of the shortest prefix that the server of `provider/model` keeps for further requests; 0 where
    any is kept, or nothing is known of it."""
    name = model.lower()
    return next((least for pattern, least in _LEAST_CACHED if re.search(pattern, name)), 0)


CHARACTERS_PER_TOKEN = 4


def text_tokens(text: str) -> int:
    """Tokens of a text, taken as four characters each.

    An estimate: right within a fifth or so for English prose, too low for code and for most other scripts.
    """
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


# The table is right within this share, or this many tokens a picture: servers add a few around each.
_NEAR_SHARE, _NEAR_TOKENS = 0.05, 16


def as_estimated(measured: int, estimate: int, images: int = 1) -> bool:
    """Whether the tokens of pictures that a server counted are those of the table."""
    return abs(measured - estimate) <= max(images * _NEAR_TOKENS, _NEAR_SHARE * estimate)


def disagreement(model: str, request: ModelRequest, measured: int | None) -> str | None:
    """What to tell the user where `provider/model` counted other tokens for the images of a request than the
    table says; None where it did not, or one of the figures is not known."""
    images = [part for message in request.messages for part in message.parts if not isinstance(part, str)]
    estimates = [image_tokens(model, image.width, image.height) for image in images]
    known = [each for each in estimates if each is not None]
    if not images or measured is None:
        return None
    if measured == 0:
        return (
            f"{model} counted no tokens for images: check that it takes them, the server may leave them out"
        )
    if len(known) < len(images) or as_estimated(measured, sum(known), len(images)):
        return None
    sizes = f"{images[0].width} × {images[0].height} pixels" + (" the first of them" if images[1:] else "")
    return (
        f"{model} counted {measured:,} tokens for {counted(len(images), 'image')} ({sizes}) "
        f"where {sum(known):,} were expected: it may see them at another size. Probe it as the "
        f"documentation of providers says, and set {option('view')}"
    )
