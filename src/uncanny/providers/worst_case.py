"""The most one request can use: what budgets hold back before a call."""

from __future__ import annotations

from uncanny.providers.base import Request, Tokens
from uncanny.providers.image_tokens import image_tokens

# Dense text, such as JSON or a script without spaces, has fewer characters a token than prose has.
_CHARACTERS_PER_TOKEN = 3
_TURN_TOKENS = 8
_UNKNOWN_IMAGE_TOKENS = 4_000


def worst_case(model: str, request: Request) -> Tokens:
    """Input as an upper estimate, output at its limit, nothing cached."""
    total = 0
    for message in request.messages:
        total += _TURN_TOKENS
        for part in message.parts:
            if isinstance(part, str):
                total += len(part) // _CHARACTERS_PER_TOKEN + 1
            else:
                total += image_tokens(model, part.width, part.height) or _UNKNOWN_IMAGE_TOKENS
    if request.schema is not None:
        total += 600
    return Tokens(input=total, output=request.sampling.max_output_tokens, cached=0, cache_written=0)
