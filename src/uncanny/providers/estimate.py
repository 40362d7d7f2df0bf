"""Rough numbers of input tokens before anything is asked, for `--dry-run`."""

from __future__ import annotations

import math

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
