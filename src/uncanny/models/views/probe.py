"""Measure what a model sees of a picture: send blank squares of growing size, and read the usage.

Where tokens stop growing, the server makes larger pictures smaller. Squares of one color are small files, and
nothing about them has to be answered.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final

from PIL import Image

from uncanny.errors import ProviderDefectError, RequestRejectedError
from uncanny.models.base import Message, ModelProvider, ModelRequest, Part, Sampling, SentImage, encode_image
from uncanny.models.tokens import as_estimated, image_tokens
from uncanny.models.views import known_view

# Sides in pixels.
SIDES: Final = (256, 512, 768, 1024, 1536, 2048, 3072)
QUESTION: Final = "Which color is this? Answer with one word."
# Enough for a model that reasons first: some servers reject a request that is cut off before its answer.
_MOST_OUTPUT: Final = 512
# Tokens that differ by less than this share are the same.
_SAME: Final = 0.03


@dataclass(frozen=True, slots=True)
class Square:
    """A square as it was sent.

    `side` is in pixels. `tokens` are those of the picture as measured, None where the server rejected it, for
    the reason `rejected`. `table` are those by the table, None where it does not know the model.
    """

    side: int
    tokens: int | None
    table: int | None
    rejected: str | None = None


@dataclass(frozen=True, slots=True)
class Probe:
    """What was measured for `model`; `text_tokens` are those of the question, already subtracted."""

    model: str
    text_tokens: int
    squares: tuple[Square, ...]

    @property
    def agrees(self) -> bool | None:
        """Whether the table is right for all squares; None where it does not know what the model sees."""
        if not known_view(self.model):
            return None
        pairs = [(each.tokens, each.table) for each in self.squares if each.tokens is not None]
        return all(as_estimated(tokens, table) for tokens, table in pairs if table is not None)

    @property
    def plateau(self) -> int | None:
        """Index of the first square from which tokens stay the same.

        0 if all squares take as many. None if tokens grow up to the last square.
        """
        tokens = [each.tokens for each in self.squares if each.tokens is not None]
        first = next(at for at in range(len(tokens)) if all(_same(each, tokens[-1]) for each in tokens[at:]))
        return None if first == len(tokens) - 1 else first

    @property
    def view(self) -> int | None:
        """Side in pixels of the largest square that the model sees, about; None where tokens do not show it.

        If tokens grow up to the last square, its side.
        """
        at = self.plateau
        if at is None:
            return max(each.side for each in self.squares if each.tokens is not None)
        if at == 0:
            return None
        before, first = self.squares[at - 1], self.squares[at]
        # Tokens grow with pixels, so from the last square that was not shrunk.
        grown = before.side * math.sqrt((first.tokens or 0) / (before.tokens or 1))
        return min(first.side, round(grown))

    def sentences(self) -> list[str]:
        """What the figures mean."""
        at, view = self.plateau, self.view
        if view is None:
            meaning = (
                f"{self.model} takes the same number of tokens for every size, so they do not show what it "
                "sees of a picture."
            )
        elif at is None:
            meaning = f"{self.model} sees at least {view:,} × {view:,} pixels: tokens grow up to this size."
        else:
            tokens = self.squares[at].tokens
            most = f"{view:,} × {view:,}"
            meaning = f"{self.model} sees at most about {most} pixels: tokens stop growing at {tokens:,}."
        rejected = [each for each in self.squares if each.rejected]
        return [
            meaning,
            *(
                f"The server rejects {each.side:,} × {each.side:,} pixels: {each.rejected}"
                for each in rejected
            ),
        ]

    def json(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "model": self.model,
            "text_tokens": self.text_tokens,
            "squares": [
                {"side": each.side, "tokens": each.tokens, "table": each.table, "rejected": each.rejected}
                for each in self.squares
            ],
            "view": self.view,
            "table_agrees": self.agrees,
        }


def _same(first: int, second: int) -> bool:
    return abs(first - second) <= _SAME * second


async def probe(provider: ModelProvider, sides: Sequence[int] = SIDES) -> Probe:
    """Make one call without a picture, and one for each of `sides`, in pixels and ascending.

    It ends at a size that the server rejects. Raises `ProviderError` if the first size is rejected or a call
    fails otherwise, and `ProviderDefectError` where usage does not say how many tokens a picture takes.
    """
    text = await _input_tokens(provider, (QUESTION,))
    squares: list[Square] = []
    for side in sides:
        table = image_tokens(provider.name, side, side)
        try:
            tokens = await _input_tokens(provider, (blank_square(side), QUESTION)) - text
        except RequestRejectedError as error:
            if not squares:
                raise
            squares.append(Square(side, None, table, str(error)))
            break
        if tokens < 1:
            raise ProviderDefectError(
                f"{provider.name} counts no tokens for a picture of {side} × {side} pixels",
                remedy="Check that the model takes images: the server may leave them out.",
            )
        squares.append(Square(side, tokens, table))
    return Probe(provider.name, text, tuple(squares))


async def _input_tokens(provider: ModelProvider, parts: tuple[Part, ...]) -> int:
    sampling = Sampling(max_output_tokens=_MOST_OUTPUT)
    response = await provider.generate(ModelRequest((Message("user", parts),), sampling))
    if response.tokens.input is None:
        raise ProviderDefectError(
            f"{provider.name} does not report input tokens, so it cannot be probed",
            remedy="Its documentation may say which size it sees.",
        )
    return response.tokens.input


def blank_square(side: int) -> SentImage:
    """A gray square of `side` pixels, as PNG."""
    file = BytesIO()
    Image.new("RGB", (side, side), (128, 128, 128)).save(file, "PNG")
    data = file.getvalue()
    digest = hashlib.sha256(data).hexdigest()
    return encode_image(sha256=digest, media_type="image/png", width=side, height=side, data=data)
