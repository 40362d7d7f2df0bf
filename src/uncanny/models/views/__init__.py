"""What each family of models is shown of a picture: the size it sees, and the tokens that takes.

The only table of it. `FAMILIES` is as of November 2026, from documentation, model configurations and the
source of transformers; no hosted service was called for it. Names change faster than tables: measure yours
with `uncanny providers --probe MODEL`, and pass `--view` where the table is wrong.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cache
from typing import Final

from uncanny.models.presets import PRESETS
from uncanny.models.views.geometry import (
    Budget,
    Cells,
    Geometry,
    Multiples,
    OwnTiles,
    PaddedGrid,
    PaddedPatches,
    PaddedTiles,
    Patches,
    ScaledTo,
    ShortSideTiles,
    Size,
    Square,
    StretchedGrid,
    fit,
)

# Long side in pixels, and pixels in all, that a model of which nothing is known is taken to see: what hosted
# services recommended for years, and no family of the table but those of small tiles falls much below.
DEFAULT_VIEW: Final = 1568
DEFAULT_PIXELS: Final = 1_150_000
# Pixels of a part's side: at most, and where nothing is known of the model.
LARGEST_PART: Final = DEFAULT_VIEW
USUAL_PART: Final = 1024


@dataclass(frozen=True, slots=True)
class Family:
    """The models whose names `pattern` finds, in lower case and under their maker's name."""

    name: str
    pattern: str
    geometry: Geometry
    source: str


_OPENAI = "OpenAI, Images and vision, November 2026"
_CLAUDE = "Anthropic, Coordinates and bounding boxes, November 2026"
_GOOGLE = "Google, Image understanding and Media resolution, November 2026"
_TRANSFORMERS = "transformers 5.23, November 2026"
_CONFIGURATION = "preprocessor_config.json of the model, November 2026"

# The first whose pattern is found holds, so exceptions stand before their family.
FAMILIES: Final[tuple[Family, ...]] = (
    Family("GPT-4o mini", r"^openai/gpt-4o-mini", ShortSideTiles(2833, 5667), _OPENAI),
    Family("GPT-4.1 mini", r"^openai/gpt-4\.1-mini", Patches(1.62), _OPENAI),
    Family("GPT-4.1 nano", r"^openai/gpt-4\.1-nano", Patches(2.46), _OPENAI),
    Family(
        "GPT-4o, 4.1, 4.5, 4 Turbo",
        r"^openai/(chat)?gpt-(4o|4\.1|4\.5|4-turbo)",
        ShortSideTiles(85, 170),
        _OPENAI,
    ),
    Family("o4-mini", r"^openai/o4-mini", Patches(1.72), _OPENAI),
    Family("o1, o3", r"^openai/o[13](?!-mini)", ShortSideTiles(75, 150), _OPENAI),
    # The guide says 1.62 and 2.46 for these two. Users measured 1.2 and 1.5 on the API.
    Family("GPT-5 mini", r"^openai/gpt-5-mini", Patches(1.2), f"{_OPENAI}; tokens as users measured them"),
    Family("GPT-5 nano", r"^openai/gpt-5-nano", Patches(1.5), f"{_OPENAI}; tokens as users measured them"),
    Family("GPT-5, 5.1", r"^openai/gpt-5(\.1)?(?![.\d])", ShortSideTiles(70, 140), _OPENAI),
    # An earlier version of the guide had 6,144 patches for GPT-5.2.
    Family(
        "GPT-5.2, 5.3, 5.x mini and nano", r"^openai/gpt-5\.([23]|\d+-(mini|nano))", Patches(1.2), _OPENAI
    ),
    Family(
        "GPT-5.4, 5.5",
        r"^openai/gpt-5\.[45](?!\d)",
        Patches(1.2, 2500, original=(6000, 10_000)),
        _OPENAI,
    ),
    # Without a limit of the long side: users measured 2,931 tokens for 2560 × 1440.
    Family(
        "GPT-5.6, 6",
        r"^openai/gpt-(5\.6|6)(?!\d)",
        Patches(1.2, 2500, longest=None, original=(None, None)),
        _OPENAI,
    ),
    # Above 20 images a request, each may have at most 2,000 pixels: uncanny sends no more.
    Family(
        "Claude 4.7 and later",
        r"(^|[/.])claude-[a-z]+-(4[-.][789]|[5-9]|\d\d)(?!\d)",
        Cells(28, longest=2576, most=4784),
        _CLAUDE,
    ),
    # Width times height over 750, the rule of the Claude 3 models' time, is obsolete.
    Family("Claude before 4.7", r"(^|[/.])claude", Cells(28, longest=1568, most=1568), _CLAUDE),
    Family("Gemini 1.5, 2", r"gemini-(1\.5|2)", OwnTiles(258), _GOOGLE),
    # The default, high. Low takes 280 tokens, medium 560, ultra 2,240.
    Family("Gemini 3", r"gemini-[3-9]", Budget(1120), _GOOGLE),
    # The default of 70, 140, 280, 560 and 1,120, which is the server's to choose.
    Family("Gemma 4", r"gemma-?4(?!\d)", ScaledTo(48, 280), _TRANSFORMERS),
    Family("Gemma 3", r"gemma-?3(?![n\d])", Square(896, 256), "Gemma 3 model card, November 2026"),
    Family(
        "Qwen2-VL, Qwen2.5-VL",
        r"qwen-?2([.-]5)?-?vl",
        Multiples(28, least=3136, most=12_845_056),
        _CONFIGURATION,
    ),
    # Servers may cap lower.
    Family(
        "Qwen3-VL, Qwen3.5",
        r"qwen-?3(\.\d)?-?vl|qwen-?3\.[5-9]",
        Multiples(32, least=65_536, most=16_777_216),
        _CONFIGURATION,
    ),
    Family("InternVL", r"internvl", StretchedGrid(448, 12, 256), _CONFIGURATION),
    # Version 1.5 resizes in another way.
    Family(
        "LLaVA-OneVision",
        r"llava-?one-?vision(?!-1\.5)",
        PaddedGrid(384, 6, across=27, most=9),
        _TRANSFORMERS,
    ),
    Family("Llama 4", r"llama-?4(?!\d)", PaddedTiles(336, 16, 144), _TRANSFORMERS),
    Family("Pixtral", r"pixtral", Cells(16, longest=1024, breaks=True), _TRANSFORMERS),
    Family("GLM-4.1V, 4.5V, 4.6V", r"glm-?4\.\dv", Multiples(28, least=6272, most=5_880_000), _TRANSFORMERS),
    Family("Kimi K2.5", r"kimi-k2\.[5-9]", PaddedPatches(longest=7168, most=16_384), _TRANSFORMERS),
)
_COMPILED: Final = tuple((re.compile(family.pattern), family) for family in FAMILIES)


@cache
def family_of(model: str) -> Family | None:
    """The family of `provider/model`; None where the table does not know it."""
    name = _by_maker(model)
    return next((family for pattern, family in _COMPILED if pattern.search(name)), None)


def _by_maker(model: str) -> str:
    """`provider/model` under the name of who made it, where the provider's names tell: `azure/gpt-4o` is
    `openai/gpt-4o`."""
    provider, _, name = model.lower().partition("/")
    made_by = PRESETS[provider].made_by if provider in PRESETS else None
    return model.lower() if made_by is None else f"{made_by}{name}"


def known_view(model: str) -> bool:
    """Whether the table knows at which size `provider/model` sees a picture.

    False for families of which only the tokens are known.
    """
    family = family_of(model)
    return family is not None and family.geometry.sized


def seen_size(model: str, width: int, height: int, *, view: int | None = None) -> Size:
    """Width and height at which `provider/model` sees a picture of this size as sent.

    Boxes in pixels count these. A picture for a model that the table does not know stays as it is.

    Parameters
    ----------
    width, height
        Pixels of the picture as sent, at least 1.
    view
        Long side in pixels that the user gives, at least 1. It replaces the table: the picture is made
        smaller to fit, never larger.
    """
    if view is not None:
        return fit(width, height, view)
    family = family_of(model)
    return (width, height) if family is None else family.geometry.seen(width, height)


def shown_size(model: str, width: int, height: int, *, view: int | None = None) -> Size:
    """As `seen_size`, with an assumption for models that the table does not know.

    They are taken to see at most `DEFAULT_VIEW` pixels of the long side and `DEFAULT_PIXELS` in all. This
    decides what is worth enlarging; boxes are not computed by it.
    """
    if view is not None or known_view(model):
        return seen_size(model, width, height, view=view)
    scale = min(1.0, DEFAULT_VIEW / max(width, height), math.sqrt(DEFAULT_PIXELS / (width * height)))
    return max(1, round(width * scale)), max(1, round(height * scale))


@cache
def part_side(model: str, *, view: int | None = None) -> int:
    """Side in pixels of the largest square part that `provider/model` sees without shrinking it.

    At most `LARGEST_PART`. `USUAL_PART` for models that the table does not know. `view`, the long side that
    the user gives, replaces the table.
    """
    if view is None and not known_view(model):
        return USUAL_PART
    sides = range(LARGEST_PART, 0, -1)
    return next(side for side in sides if min(seen_size(model, side, side, view=view)) >= side)
