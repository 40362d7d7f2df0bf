"""Models that give a mask: the candidate box under which the mask is highest is their answer to Q3.

Source: SalArt-VQA, section 4.2. Such a model cannot answer E, so that references are wrong by construction.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil, floor
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncanny.errors import UsageError
from uncanny.eval.common.estimates import Share, shares_of
from uncanny.eval.common.json_fields import as_json, intervals_json, json_of
from uncanny.eval.common.pixels.masks import read_scores
from uncanny.eval.common.tables.table import Column, Table, TableResult
from uncanny.eval.mcq.data.items import Answer, Box, Option
from uncanny.eval.mcq.data.load import ItemSource, load
from uncanny.eval.mcq.parameters import BoxScoreParameters
from uncanny.eval.metrics.intervals import ratio
from uncanny.eval.metrics.mcq import ARTIFACT, within
from uncanny.parameters import path_of, takes
from uncanny.wording import option, shown, some_of

BOX_NOTE = "a mask cannot answer E: every reference is wrong by construction"
Mask = NDArray[np.float64]

_GROUPS = {
    "artifact": ARTIFACT,
    "ref_real": ("ref_real",),
    "ref_pg": ("ref_pg",),
    "overall": (*ARTIFACT, "ref_real"),
}


@dataclass(frozen=True, slots=True)
class BoxPick:
    """The chosen box, the mean mask score under each, and whether another box scores the same."""

    box: Option
    means: Mapping[Option, float]
    tied: bool


def choose_box(
    mask: NDArray[np.generic], boxes: Mapping[Option, Box], *, size: tuple[int, int] | None = None
) -> BoxPick:
    """The box with the highest mean score; of equal ones, the first letter.

    `mask` has the shape (height, width), any number type, higher is more suspicious. Boxes are in pixels of
    the image, whose `size` is (width, height); without it the mask is taken to be as large as the image. A
    box counts every mask pixel it touches.

    Raises `UsageError` for a mask that is not two-dimensional or not finite, and for a box outside of it.

    >>> import numpy as np
    >>> uncanny.mcq.choose_box(np.eye(4), {"A": (0, 0, 2, 2), "B": (2, 0, 4, 2)}).box
    'A'
    """
    try:
        scores = np.asarray(mask, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"{shown(mask)} is not a mask: {error}", remedy="Give one finite score per pixel."
        ) from error
    _check_boxes(boxes, size)
    if scores.ndim != 2 or not scores.size or not np.isfinite(scores).all():
        raise UsageError(
            f"a mask of shape {scores.shape} is not a finite picture of scores",
            remedy="Give one finite score per pixel.",
        )
    means = {option: _mean_under(scores, boxes[option], size) for option in sorted(boxes)}
    best = max(means.values())
    first, *others = [option for option, mean in means.items() if mean == best]
    return BoxPick(first, means, bool(others))


def _check_boxes(boxes: Mapping[Option, Box], size: tuple[int, int] | None) -> None:
    """Raises UsageError where these are no boxes by letter, or `size` is no width and height."""
    if not isinstance(boxes, Mapping) or not boxes:
        raise UsageError(f"Boxes are a mapping from letters to boxes, not {shown(boxes)}")
    for box in boxes.values():
        if not _numbers(box, 4):
            raise UsageError(
                f"{shown(box)} is not a box", remedy="Write x0, y0, x1, y1 in pixels of the image."
            )
    if size is not None and not (_numbers(size, 2) and min(size) > 0):
        raise UsageError(
            f"{shown(size)} is not a size", remedy="Write width and height of the image in pixels."
        )


def _numbers(values: object, length: int) -> bool:
    return (
        isinstance(values, Iterable)
        and len(numbers := list(values)) == length
        and all(isinstance(number, Real) for number in numbers)
    )


def _mean_under(scores: Mask, box: Box, size: tuple[int, int] | None) -> float:
    height, width = scores.shape
    across, down = (width / size[0], height / size[1]) if size else (1.0, 1.0)
    left, right = max(0, floor(box[0] * across)), min(width, ceil(box[2] * across))
    top, bottom = max(0, floor(box[1] * down)), min(height, ceil(box[3] * down))
    if left >= right or top >= bottom:
        raise UsageError(
            f"box {box} has no area within a mask of {width} × {height}",
            remedy="Give the size of the image the boxes were drawn on.",
        )
    return float(scores[top:bottom, left:right].mean())


def read_mask(path: str | os.PathLike[str]) -> Mask:
    """Scores from a `.npy` array of (height, width) or a greyscale picture.

    Raises `UsageError` where the file is neither, or has more pixels than can be read.

    >>> import numpy as np
    >>> np.save("mask.npy", np.eye(4))
    >>> uncanny.mcq.read_mask("mask.npy").shape
    (4, 4)
    """
    return read_scores(path_of("path", path))


def box_answers(items: ItemSource, picks: Mapping[str, BoxPick], model: str) -> list[Answer]:
    """Q3 answers from picks by item id; an item without a pick has none.

    >>> import numpy as np
    >>> item = uncanny.mcq.load("scenes")[1]
    >>> pick = uncanny.mcq.choose_box(np.ones((1024, 1024)), item.q3.boxes)
    >>> [answer.raw for answer in uncanny.mcq.box_answers([item], {item.id: pick}, "mine")]
    ['A']
    """
    _check_picks(picks)
    if not isinstance(model, str):
        raise UsageError(f"{option('model')} must be the name of a model, not {shown(model)}")
    return [
        Answer(id=item.id, question="q3", raw=picks[item.id].box, model=model)
        for item in load(items)
        if item.q3 is not None and item.id in picks
    ]


@dataclass(frozen=True, slots=True, repr=False)
class BoxScores(TableResult):
    """Q3 of a model that gives masks, as shares of images.

    `overall` is of artifact images and real references.
    `missing` counts items without a mask, which are in no share; `ties` the picks that the order of letters
    decided. `unused` are the ids of picks for what is no item with Q3.
    """

    q3: Mapping[str, Share]
    missing: int
    ties: int
    unused: tuple[str, ...] = ()

    def tables(self) -> tuple[Table, ...]:
        """One line: the share of each group in percent."""
        columns = (Column(name, unit="%", better="higher") for name in self.q3)
        notes = [f"Percent; {BOX_NOTE}."]
        if self.unused:
            named = some_of(self.unused)
            notes.append(f"Masks of no item with Q3, left out: {len(self.unused):,} ({named}).")
        return (Table(("", *columns), (("Q3", *self.q3.values()),), notes=tuple(notes)),)

    def to_json(self) -> dict[str, Any]:
        """`q3`, `n` and `ci` by group, `missing`, `ties`, `unused`, and the `note` on such models."""
        counts = {name: share.out_of for name, share in self.q3.items()}
        return {
            **{"q3": as_json(self.q3), "n": counts, "ci": intervals_json(self.q3)},
            **json_of(self, "missing ties unused"),
            "note": BOX_NOTE,
        }


@takes(BoxScoreParameters)
def score_boxes(items: ItemSource, picks: Mapping[str, BoxPick], parameters: BoxScoreParameters) -> BoxScores:
    """Q3 of a model that gives masks, from its picks by item id; items that have no Q3 are left out.

    >>> uncanny.mcq.score_boxes(uncanny.mcq.load("scenes"), {}).missing
    34
    """
    _check_picks(picks)
    boxed = [item for item in load(items) if item.q3 is not None]
    ids = {item.id for item in boxed}
    split = np.array([item.split for item in boxed], dtype=np.str_)
    answered = np.array([item.id in picks for item in boxed], dtype=np.bool_)
    hits = [item.id in picks and picks[item.id].box == item.right("q3") for item in boxed]
    right = np.array(hits, dtype=np.bool_)
    groups = [within(split, *members) for members in _GROUPS.values()]
    ratios = [ratio(rows & right, rows & answered) for rows in groups]
    shares = shares_of(ratios, resamples=parameters.resamples, seed=parameters.seed)
    return BoxScores(
        q3=dict(zip(_GROUPS, shares, strict=True)),
        missing=sum(item.id not in picks for item in boxed),
        ties=sum(picks[item.id].tied for item in boxed if item.id in picks),
        unused=tuple(name for name in picks if name not in ids),
    )


def _check_picks(picks: Mapping[str, BoxPick]) -> None:
    """Raises UsageError for anything but picks by item id."""
    if not isinstance(picks, Mapping) or not all(isinstance(pick, BoxPick) for pick in picks.values()):
        raise UsageError(f"Picks are a mapping from item ids to what choose_box returns, not {shown(picks)}")
