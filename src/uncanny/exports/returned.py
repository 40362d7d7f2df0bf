"""A finding as it comes back from a file of another tool, before it is known which finding of a run it is.

And what readers of such files share: they are from anybody, so that nothing in them is taken for what it
should be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import cos, floor, isfinite, radians, sin
from pathlib import Path
from typing import Any, Final, cast

import orjson

from uncanny.errors import UsageError
from uncanny.eval.common.inputs.image_files import read_bytes
from uncanny.eval.common.parameters import MIN_CONFIDENCE
from uncanny.records.reviews import Review, ReviewedImage, review_image
from uncanny.schema import KINDS
from uncanny.wording import counted, option, shown

# What tools call a finding that is of no known sort.
NO_KIND: Final = "anomaly"
QUADRUPLE: Final = ("name", "phenomenon", "reasoning", "severity")
TEXTS: Final = ("name", "phenomenon", "reasoning")
_FIELDS: Final = (
    *QUADRUPLE,
    "severity_rated",
    "objects",
    "box",
    "kind",
    "found_by",
    "confidence",
    "probability",
)
# What a box is labelled with.
LABELS: Final = (*KINDS, NO_KIND)
Size = tuple[int | None, int | None]
# What a file calls the picture, its digest and its size.
Picture = tuple[str, str | None, Size]


@dataclass(frozen=True, slots=True)
class Returned:
    """What a file says of one finding; of an image alone where `anomaly` and `decision` are None.

    `index` and `text_sha256` say which finding of the run it was made from, None where the file does not
    know: it is one that people have added then. `anomaly` has the fields of an anomaly as they stand in the
    file, not validated; None where only a decision came back. `where` names the place in the file.
    `knows_kind` is False where the file has no place for a kind: that none came back says nothing then.
    """

    image: str
    sha256: str | None
    size: Size
    where: str
    index: Any = None
    text_sha256: Any = None
    decision: Any = None
    anomaly: Mapping[str, Any] | None = None
    reviewer: str | None = None
    at: datetime | None = None
    knows_kind: bool = True

    @classmethod
    def of(
        cls,
        picture: Picture,
        where: str,
        attributes: Mapping[str, Any],
        fields: Mapping[str, Any],
        **more: Any,
    ) -> Returned:
        """From the `attributes` of a box, with what its shape and label say of it in `fields`."""
        more = {key: attributes.get(key) for key in ("index", "text_sha256", "decision")} | more
        return cls(*picture, where, anomaly=returned_anomaly({**attributes, **fields}), **more)


def returned_anomaly(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Those of `fields` that an anomaly has and that are not empty; `kind` without the word for none."""
    anomaly = {name: fields[name] for name in _FIELDS if fields.get(name) is not None}
    if anomaly.get("kind") == NO_KIND:
        del anomaly["kind"]
    return anomaly


def box_around(points: object, size: Size, where: str) -> tuple[int, int, int, int]:
    """The smallest box around `points`, pairs of x and y, in whole pixels of the picture.

    It has the pixels whose middle lies in it, as pycocotools has it. Raises UsageError where they are no
    points, or nothing of the box is in the picture.
    """
    pairs = list(points) if isinstance(points, Iterable) else []
    if not pairs or not all(isinstance(each, list | tuple) and len(each) == 2 for each in pairs):
        raise UsageError(f"{where}: has no points with x and y", remedy="Draw it again.")
    numbers = [number for pair in pairs for number in pair]
    if not all(isinstance(each, int | float) and isfinite(each) for each in numbers):
        raise UsageError(f"{where}: the box has corners that are not numbers", remedy="Draw it again.")
    xs, ys = numbers[::2], numbers[1::2]
    width, height = size
    left, top, right, bottom = (floor(each + 0.5) for each in (min(xs), min(ys), max(xs), max(ys)))
    box = (
        max(0, left),
        max(0, top),
        right if width is None else min(width, right),
        bottom if height is None else min(height, bottom),
    )
    if not (box[0] < box[2] and box[1] < box[3]):
        raise UsageError(f"{where}: the box covers no pixel of the picture", remedy="Draw it again.")
    return box


def turned(
    points: Iterable[tuple[float, float]], degrees: float, around: tuple[float, float]
) -> list[tuple[float, float]]:
    """`points` turned clockwise, as pictures have their y axis."""
    angle = radians(degrees)
    (x, y), (c, s) = around, (cos(angle), sin(angle))
    return [(x + (px - x) * c - (py - y) * s, y + (px - x) * s + (py - y) * c) for px, py in points]


def whole(value: object) -> int | None:
    """A width or a height; None for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def known_object(value: object) -> dict[str, Any]:
    """An object of JSON; empty for what is none."""
    return value if isinstance(value, dict) else {}


def json_object(file: Path) -> Mapping[str, Any]:
    """Raises UsageError where the file holds none."""
    try:
        content = orjson.loads(read_bytes(file))
    except orjson.JSONDecodeError as error:
        raise UsageError(f"{file} is not valid JSON: {error}", remedy="Export it again.") from error
    if not isinstance(content, dict):
        raise UsageError(
            f"{file} does not contain a JSON object",
            remedy=f"If it has another format, pass {option('format')}.",
        )
    return content


def objects(content: Mapping[str, Any], key: str, file: Path) -> list[dict[str, Any]]:
    """A list of objects. Raises UsageError where it is something else."""
    value = content.get(key, [])
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise UsageError(f"{file}: {key!r} is not a list of objects", remedy="Export it again.")
    return cast("list[dict[str, Any]]", value)


def check_decided(
    images: Mapping[str, ReviewedImage],
    known: Mapping[str, Sequence[Review]],
    fresh: Sequence[Review],
) -> None:
    """That each finding of `images` has a decision, in the reviews that are `known` of it or in `fresh` ones.

    Raises UsageError: who has not judged all findings has not judged the image as a whole.
    """
    said: dict[str, list[Review]] = {}
    for each in fresh:
        said.setdefault(each.image, []).append(each)
    judged = {
        name: review_image(image.annotation, (*known.get(name, ()), *said.get(name, ())))
        for name, image in images.items()
    }
    undecided = [name for name, each in judged.items() if each.has_decisions(MIN_CONFIDENCE) is False]
    if undecided:
        have = "has" if len(undecided) == 1 else "have"
        raise UsageError(
            f"{counted(len(undecided), 'image')} of the file {have} findings without a decision, such as "
            f"{shown(undecided[0])}",
            remedy=f"Decide on each, or leave these images out: {option('complete', True)} is for images "
            "that were judged as a whole.",
        )
