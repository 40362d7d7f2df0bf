"""A finding as it comes back from a file of another tool, before it is known which finding of a run it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import Any, Final

from uncanny.errors import UsageError

# What tools call a finding that is of no known sort.
NO_KIND: Final = "anomaly"
QUADRUPLE: Final = ("name", "phenomenon", "reasoning", "severity")
TEXTS: Final = ("name", "phenomenon", "reasoning")
_FIELDS: Final = (*QUADRUPLE, "objects", "box", "kind", "found_by")


@dataclass(frozen=True, slots=True)
class Returned:
    """What a file says of one finding; of an image alone where `anomaly` and `decision` are None.

    `index` and `text_sha256` say which finding of the run it was made from, None where the file does not
    know: it is one that people have added then. `anomaly` has the fields of an anomaly as they stand in the
    file, not validated; None where only a decision came back. `where` names the place in the file.
    """

    image: str
    sha256: str | None
    size: tuple[int | None, int | None]
    where: str
    index: Any = None
    text_sha256: Any = None
    decision: Any = None
    anomaly: Mapping[str, Any] | None = None
    reviewer: str | None = None
    at: datetime | None = None


def returned_anomaly(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Those of `fields` that an anomaly has and that are not empty; `kind` without the word for none."""
    anomaly = {name: fields[name] for name in _FIELDS if fields.get(name) is not None}
    if anomaly.get("kind") == NO_KIND:
        del anomaly["kind"]
    return anomaly


def pixel_box(
    x0: float, y0: float, x1: float, y1: float, size: tuple[int | None, int | None], where: str
) -> tuple[int, int, int, int]:
    """Corners in any order as a box in whole pixels of the picture. Raises UsageError where none is left."""
    if not all(isinstance(each, int | float) and isfinite(each) for each in (x0, y0, x1, y1)):
        raise UsageError(f"{where}: the box has corners that are no numbers", remedy="Draw it again.")
    left, right = sorted((round(x0), round(x1)))
    top, bottom = sorted((round(y0), round(y1)))
    width, height = size
    box = (
        max(0, left),
        max(0, top),
        right if width is None else min(width, right),
        bottom if height is None else min(height, bottom),
    )
    if not (box[0] < box[2] and box[1] < box[3]):
        raise UsageError(f"{where}: the box covers no pixel of the picture", remedy="Draw it again.")
    return box
