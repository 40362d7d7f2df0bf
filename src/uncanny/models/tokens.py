"""How many input tokens an image and a text take, for budgets and for `--dry-run`: estimates.

OpenAI's, Anthropic's and Google's formulas are those of their guides; where measurements on the API published
by users disagree with the guide (gpt-5-mini and -nano), the measurement is taken. Bills count what the API
reports, never this.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache
from typing import TypeVar

from uncanny.models.base import Detail, ModelRequest
from uncanny.models.presets import PRESETS

V = TypeVar("V")
_Formula = Callable[[int, int, Detail], int]
_Resize = Callable[[int, int], tuple[int, int]]
# What holds for the first pattern that is in a model's name, so exceptions stand before their family.
_Table = tuple[tuple[re.Pattern[str], V], ...]


def _compiled(*pairs: tuple[str, V]) -> _Table[V]:
    return tuple((re.compile(pattern), value) for pattern, value in pairs)


def _first(table: _Table[V], name: str) -> V | None:
    return next((value for pattern, value in table if pattern.search(name)), None)


def image_tokens(model: str, width: int, height: int, detail: Detail = "high") -> int | None:
    """Estimate the tokens of an image of `width` × `height` pixels for `provider/model`; None if unknown.

    `detail` is OpenAI's. Raises `ValueError` for sizes below 1.
    """
    if width < 1 or height < 1:
        raise ValueError(f"an image of {width} × {height} pixels has no tokens")
    formula = _formula(model)
    return None if formula is None else formula(width, height, detail)


@cache
def _formula(model: str) -> _Formula | None:
    return _first(_FAMILIES, _by_maker(model))


def _by_maker(model: str) -> str:
    """`provider/model` under the name of who made it, where the provider's names tell: `azure/gpt-4o` is
    `openai/gpt-4o`."""
    provider, _, name = model.lower().partition("/")
    made_by = PRESETS[provider].made_by if provider in PRESETS else None
    return model.lower() if made_by is None else f"{made_by}{name}"


def _tiles(base: int, tile: int) -> _Formula:
    """Tiles of 512 pixels, after fitting into 2048² and making the shorter side at most 768."""

    def tokens(width: int, height: int, detail: Detail) -> int:
        if detail == "low":
            return base
        scale = min(1.0, 2048 / max(width, height))
        scale = min(scale, 768 / min(width, height))
        return base + tile * _cells(width, 512, scale) * _cells(height, 512, scale)

    return tokens


def _patches(multiplier: float, most: int) -> _Formula:
    """Patches of 32 pixels, at most `most` unless the original size is asked for, times a multiplier."""

    def tokens(width: int, height: int, detail: Detail) -> int:
        scale = 1.0
        if detail != "original" and _cells(width, 32) * _cells(height, 32) > most:
            scale = math.sqrt(most * 32 * 32 / (width * height))
            across, down = width * scale / 32, height * scale / 32
            # One side is made a whole number of patches.
            fitted = min(math.floor(across) / across, math.floor(down) / down)
            scale *= fitted or 1.0
        return math.ceil(round(_cells(width, 32, scale) * _cells(height, 32, scale) * multiplier, 6))

    return tokens


def _claude(longest: int, most: int) -> _Formula:
    """Cells of 28 pixels, after fitting into `longest` pixels and `most` cells."""

    def tokens(width: int, height: int, _detail: Detail) -> int:
        scale = min(1.0, longest / max(width, height), math.sqrt(most * 28 * 28 / (width * height)))
        while _cells(width, 28, scale) * _cells(height, 28, scale) > most:
            scale *= 0.995
        return _cells(width, 28, scale) * _cells(height, 28, scale)

    return tokens


def _claude_3(width: int, height: int, _detail: Detail) -> int:
    scale = min(1.0, 1568 / max(width, height))
    return min(math.ceil(width * height * scale * scale / 750), 1600)


def _gemini_2(width: int, height: int, _detail: Detail) -> int:
    """258 for a small image, and for each tile of a larger one: its shorter side over 1.5, of 256 to 768."""
    if max(width, height) <= 384:
        return 258
    tile = min(max(math.floor(min(width, height) / 1.5), 256), 768)
    return 258 * math.ceil(width / tile) * math.ceil(height / tile)


def _gemini_3(_width: int, _height: int, _detail: Detail) -> int:
    """The most that the default resolution takes; there is no size that takes more."""
    return 1_120


def _qwen(cell: int) -> _Formula:
    """Cells of `cell` pixels, both sides rounded to whole cells; 4 to 16,384 of them."""

    def tokens(width: int, height: int, _detail: Detail) -> int:
        count = max(1, round(width / cell)) * max(1, round(height / cell))
        return min(max(count, 4), 16_384)

    return tokens


def _cells(length: int, cell: int, scale: float = 1.0) -> int:
    # Rounding first: 768.0000000001 pixels are 768.
    return max(1, math.ceil(round(length * scale / cell, 6)))


_FAMILIES: _Table[_Formula] = _compiled(
    (r"^openai/gpt-4o-mini", _tiles(2833, 5667)),
    (r"^openai/gpt-4\.1-mini", _patches(1.62, 1536)),
    (r"^openai/gpt-4\.1-nano", _patches(2.46, 1536)),
    (r"^openai/(chat)?gpt-(4o|4\.1|4\.5|4-turbo)", _tiles(85, 170)),
    (r"^openai/o4-mini", _patches(1.72, 1536)),
    (r"^openai/o[13](?!-mini)", _tiles(75, 150)),
    (r"^openai/gpt-5-mini", _patches(1.2, 1536)),
    (r"^openai/gpt-5-nano", _patches(1.5, 1536)),
    (r"^openai/gpt-5(\.1)?(?![.\d])", _tiles(70, 140)),
    (r"^openai/gpt-5\.([23]|\d+-(mini|nano))", _patches(1.2, 1536)),
    (r"^openai/gpt-(5\.[45]|6)(?!\d)", _patches(1.2, 2500)),
    (r"^anthropic/claude-3", _claude_3),
    (r"^anthropic/claude-(opus-4[-.][78]|[a-z]+-5)", _claude(2000, 4784)),
    (r"^anthropic/claude-[a-z]+-4", _claude(1568, 1568)),
    (r"gemini-(1\.5|2)", _gemini_2),
    (r"gemini-[3-9]", _gemini_3),
    (r"qwen2(\.5)?-?vl", _qwen(28)),
    (r"qwen3-?vl", _qwen(32)),
)


def seen_size(model: str, width: int, height: int) -> tuple[int, int]:
    """Width and height of an image as `provider/model` sees it, after what its server does to large ones.

    Boxes in pixels count these. An image of a model whose server's ways are not known stays as it is, and so
    does any image that is small enough.
    """
    resize = _first(_RESIZED, _by_maker(model))
    return (width, height) if resize is None else resize(width, height)


def _scaled(width: int, height: int, scale: float) -> tuple[int, int]:
    return max(1, round(width * scale)), max(1, round(height * scale))


def _resize_claude(longest: int, most: int) -> _Resize:
    def size(width: int, height: int) -> tuple[int, int]:
        scale = min(1.0, longest / max(width, height))
        while _cells(width, 28, scale) * _cells(height, 28, scale) > most:
            scale *= 0.995
        return _scaled(width, height, scale)

    return size


def _resize_patches(most: int) -> _Resize:
    def size(width: int, height: int) -> tuple[int, int]:
        if _cells(width, 32) * _cells(height, 32) <= most:
            return width, height
        return _scaled(width, height, math.sqrt(most * 32 * 32 / (width * height)))

    return size


def _resize_qwen(width: int, height: int) -> tuple[int, int]:
    return max(1, round(width / 28)) * 28, max(1, round(height / 28)) * 28


_RESIZED: _Table[_Resize] = _compiled(
    (r"^openai/gpt-5\.([23]|\d+-(mini|nano))", _resize_patches(1536)),
    (r"^openai/gpt-(5\.[45]|6)(?!\d)", _resize_patches(2500)),
    (r"claude-(opus-4[-.][78]|[a-z]+-5)", _resize_claude(2000, 4784)),
    (r"claude", _resize_claude(1568, 1568)),
    (r"qwen2\.5-?vl", _resize_qwen),
)


# OpenAI's guide to prompt caching, and Anthropic's, of 2026; the latter says
# 1,024 for claude-sonnet-4-6, and users measured 2,048.
_LEAST_CACHED: _Table[int] = _compiled(
    (r"^openai/", 1_024),
    (r"^anthropic/claude-(opus-4-[56]|haiku-4-5)", 4_096),
    (r"^anthropic/claude-(opus-4-7|sonnet-4-6|3-haiku|3-5-haiku)", 2_048),
    (r"^anthropic/claude-(opus|fable|mythos)-5", 512),
    (r"^anthropic/", 1_024),
)


def least_cached(model: str) -> int:
    """Tokens of the shortest prefix that the server of `provider/model` keeps for further requests; 0 where
    any is kept, or nothing is known of it."""
    return _first(_LEAST_CACHED, model.lower()) or 0


CHARACTERS_PER_TOKEN = 4


def text_tokens(text: str) -> int:
    """Tokens of a text, taken as four characters each.

    An estimate: right within a fifth or so for English prose, too low for code and for most other scripts.
    """
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


def input_tokens(model: str, request: ModelRequest) -> int | None:
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
