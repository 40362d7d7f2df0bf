"""Boxes in answers: in which numbers each family of models gives them, and how those become pixels.

Numbers alone do not tell what they count: 0 to 1000 read as pixels is never out of range on a picture of 1024
pixels. So a model is asked in the form it was trained on, which is known by its name or said by the user, and
its answer is read in that form. What cannot be a box is None, and never an error: a finding is worth having
without.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator

from uncanny.schema import Box

BoxFormatName = Literal["xyxy-1000", "yxyx-1000", "xyxy-999", "xyxy-1", "pixels"]

# How far beyond the picture, as a share of its side, a box may reach and is clipped.
OVERSHOOT: Final = 0.02


@dataclass(frozen=True, slots=True)
class BoxFormat:
    """One way of giving a box.

    `key` is the name of the field. `side` is the number that stands for the whole width or height, None where
    numbers are pixels of the image as it was sent. With `y_first` it is y0, x0, y1, x1.
    """

    name: BoxFormatName
    key: str
    side: float | None
    y_first: bool = False


BOX_FORMATS: Final[Mapping[BoxFormatName, BoxFormat]] = {
    each.name: each
    for each in (
        BoxFormat("xyxy-1000", "bbox_2d", 1000),
        BoxFormat("yxyx-1000", "box_2d", 1000, y_first=True),
        BoxFormat("xyxy-999", "box", 999),
        BoxFormat("xyxy-1", "box", 1),
        BoxFormat("pixels", "box", None),
    )
}
# The first that is found in a model's name, in lower case, holds. Sources: the models' own papers and pages.
_TRAINED_ON: Final[tuple[tuple[str, BoxFormatName], ...]] = (
    (r"gemini", "yxyx-1000"),
    (r"deepseek-?vl2?", "xyxy-999"),
    (r"qwen-?2[.-]5-?vl", "pixels"),
    (r"qwen|internvl|glm-", "xyxy-1000"),
    (r"kimi", "xyxy-1"),
    # Of earlier ones nothing is known.
    (r"claude|gpt-?([5-9]|\d\d)", "pixels"),
)
DEFAULT_BOX_FORMAT: Final[BoxFormatName] = "xyxy-1000"
# Keys under which boxes come, whatever was asked for.
BOX_KEYS: Final = ("box", "box_2d", "bbox_2d", "bbox", "bounding_box", "boundingbox")


@cache
def box_format(model: str) -> BoxFormat:
    """The form that a model was trained on, by its name; `xyxy-1000` where nothing is known of it."""
    name = model.casefold()
    for pattern, known in _TRAINED_ON:
        if re.search(pattern, name):
            return BOX_FORMATS[known]
    return BOX_FORMATS[DEFAULT_BOX_FORMAT]


@dataclass(frozen=True, slots=True)
class GivenBox:
    """Four numbers as `model` gave them, in its order, and the key they stood under."""

    numbers: tuple[float, float, float, float]
    key: str
    model: str = ""


_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
# A box has four numbers; text with more than these characters is none.
_LONGEST = 200
# Far beyond any picture; larger whole numbers cannot even be made floats.
_LARGEST = 1e9
_CORNERS = (
    ("x0", "y0", "x1", "y1"),
    ("x1", "y1", "x2", "y2"),
    ("xmin", "ymin", "xmax", "ymax"),
    ("x_min", "y_min", "x_max", "y_max"),
    ("left", "top", "right", "bottom"),
)
_EXTENTS = (("x", "y", "width", "height"), ("x", "y", "w", "h"), ("left", "top", "width", "height"))


def given_box(value: object, key: str = "box") -> GivenBox | None:
    """The four numbers in what a model wrote for a box; None where there are none, or no such four.

    Takes `[1, 2, 3, 4]`, `[[1, 2], [3, 4]]`, `[[1, 2, 3, 4]]`, such a list as text or with tags around it,
    numbers as text, and objects with named corners or with a corner, width and height.
    """
    if isinstance(value, GivenBox):
        return value
    if isinstance(value, str):
        if len(value) > _LONGEST or "%" in value:
            return None
        value = [float(number) for number in _NUMBER.findall(value)]
    if isinstance(value, Mapping):
        return _of_named(value)
    numbers = _flat(value)
    if numbers is None or len(numbers) != 4:
        return None
    return GivenBox((numbers[0], numbers[1], numbers[2], numbers[3]), key)


def _of_named(value: Mapping[Any, object]) -> GivenBox | None:
    names = {str(key).casefold(): each for key, each in value.items()}
    known = next((each for each in (*_CORNERS, *_EXTENTS) if names.keys() >= set(each)), None)
    if known is None or not all(_is_number(names[name]) for name in known):
        return None
    a, b, c, d = (float(names[name]) for name in known)  # type: ignore[arg-type]
    # Named corners say themselves which is x: no format turns them round.
    return GivenBox((a, b, a + c, b + d) if known in _EXTENTS else (a, b, c, d), "named")


def _flat(value: object) -> list[float] | None:
    if not isinstance(value, list | tuple) or len(value) > 4:
        return None
    numbers: list[float] = []
    for each in value:
        if isinstance(each, list | tuple):
            inner = _flat(each)
            if inner is None:
                return None
            numbers += inner
        elif _is_number(each):
            numbers.append(float(each))
        else:
            return None
    return numbers


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        return _NUMBER.fullmatch(value.strip()) is not None
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST


def pixels(
    given: GivenBox, form: BoxFormat, *, sent: tuple[int, int], original: tuple[int, int]
) -> Box | None:
    """The box in pixels of the original image; None where the numbers cannot be one.

    `sent` and `original` are width and height of the image as the model saw it and of the file. The key the
    numbers stood under goes before `form` where it says the order: `box_2d` has y first, `bbox_2d` x. A box
    that reaches beyond the picture by up to `OVERSHOOT` of its side is clipped.
    """
    a, b, c, d = given.numbers
    if given.key == "box_2d" or (form.y_first and given.key not in ("bbox_2d", "named")):
        a, b, c, d = b, a, d, c
    width, height = sent if form.side is None else (form.side, form.side)
    if form.side not in (None, 1) and max(a, b, c, d) <= 1 and not all(n.is_integer() for n in given.numbers):
        width = height = 1  # shares of the side, where thousandths were asked for
    across = _within(a / width, c / width, original[0])
    down = _within(b / height, d / height, original[1])
    return None if across is None or down is None else (across[0], down[0], across[1], down[1])


def in_format(
    box: Box, form: BoxFormat, *, sent: tuple[int, int], original: tuple[int, int]
) -> list[int] | list[float]:
    """A box in pixels of the original image as `form` has it: what `pixels` reads back, but for rounding."""
    width, height = sent if form.side is None else (form.side, form.side)
    across = (box[0] / original[0] * width, box[2] / original[0] * width)
    down = (box[1] / original[1] * height, box[3] / original[1] * height)
    first, last = (down, across) if form.y_first else (across, down)
    numbers = (first[0], last[0], first[1], last[1])
    return [round(each, 3) for each in numbers] if form.side == 1 else [round(each) for each in numbers]


def _within(first: float, last: float, side: int) -> tuple[int, int] | None:
    """Ends, given as shares of `side` pixels, in whole pixels, rounded outwards and clipped."""
    if not -OVERSHOOT <= first < last <= 1 + OVERSHOOT:
        return None
    # Shares come of divisions: what is a whole pixel but for their rest is that pixel.
    start = max(math.floor(round(first * side, 6)), 0)
    end = min(math.ceil(round(last * side, 6)), side)
    return (start, end) if start < end else None


def overlap(first: Box, second: Box) -> float:
    """Intersection over union of two boxes, from 0, apart, to 1, the same."""
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    if width <= 0 or height <= 0:
        return 0.0
    shared = width * height
    return shared / (area(first) + area(second) - shared)


def area(box: Box) -> int:
    """In pixels."""
    return (box[2] - box[0]) * (box[3] - box[1])


# A field of an item: whatever stands there, a box or None.
AnyBox = Annotated[GivenBox | None, BeforeValidator(given_box)]
