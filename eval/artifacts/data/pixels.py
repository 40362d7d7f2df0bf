"""The regions of a record as pixels of its image, with what was mended on the way and what cannot be read.

Regions are drawn when an image is scored, one image at a time: a set of masks need not fit into memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from uncanny.errors import Problem, UncannyError, UsageError
from uncanny.eval.artifacts.data.records import ArtifactImage, Region, RunLengths
from uncanny.eval.common.pixels.crops import Crop, Mask, Size, crop
from uncanny.eval.common.pixels.masks import (
    component_crops,
    decode_rle,
    has_shades,
    read_heat_map,
    read_mask,
)
from uncanny.eval.common.pixels.shapes import (
    Point,
    box_crop,
    circle_crop,
    coco_box_crop,
    coco_polygon_crop,
    crosses_itself,
    line_crop,
    point_crop,
    polygon_crop,
)
from uncanny.images.prepared import stored_size

CROSSING = "polygon crosses itself: what it encloses an even number of times is outside"
CLIPPED = "region reaches outside the image: cut off"
INTRICATE = "polygon has too many long edges to say whether it crosses itself"
OUTSIDE = "region lies outside the image"
TOO_SMALL = "region is too small to have a pixel"
NO_PIXELS = "mask is empty: no artifact"
SHADES = "mask with shades of grey, taken for artifact where it is not black (heat maps need an option)"


class DrawnRegion(NamedTuple):
    """A region and its pixels. A mask of several artifacts has been taken apart into several of these."""

    region: Region
    pixels: Crop


@dataclass(slots=True)
class Drawing:
    """Draws the regions of one set. `notes` counts what was mended, by what it was; `problems` are errors."""

    notes: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)

    def regions(self, image: ArtifactImage, size: Size) -> list[DrawnRegion]:
        """All regions of an image of this width and height; those that cannot be read become problems.

        A region outside the image has no pixels and stays. An empty mask is no region.
        """
        drawn: list[DrawnRegion] = []
        for number, region in enumerate(image.regions):
            try:
                crops = self._crops(region, image, size)
            except UncannyError as error:
                self.problems.append(
                    Problem(image.image, f"regions.{number}.{region.kind}", error.message, line=image.line)
                )
                continue
            drawn += [DrawnRegion(region, each) for each in crops]
        return drawn

    def _crops(self, region: Region, image: ArtifactImage, size: Size) -> Sequence[Crop]:
        if region.mask is not None:
            mask = crop(_mask(region.mask, image, size))
            if isinstance(region.mask, str) and image.heat is None:
                self.notes[SHADES] += has_shades(image.folder / region.mask)
            if not mask.pixels.size:
                self.notes[NO_PIXELS] += 1
                return ()
            return component_crops(mask) if image.parts else (mask,)
        return (self._drawn(region, size),)

    def _drawn(self, region: Region, size: Size) -> Crop:
        if region.polygon is not None:
            crossing = crosses_itself(region.polygon)
            self.notes[CROSSING] += bool(crossing)
            self.notes[INTRICATE] += crossing is None
        pixels, extent = _drawn(region, size)
        low, high = np.min(extent, axis=0), np.max(extent, axis=0)
        if not pixels.pixels.size:
            self.notes[OUTSIDE if (high < 0).any() or (low >= size).any() else TOO_SMALL] += 1
        # An outline on the far edge, as annotation tools draw it, is not outside.
        elif (low < 0).any() or (high > size).any():
            self.notes[CLIPPED] += 1
        return pixels


def _drawn(region: Region, size: Size) -> tuple[Crop, Sequence[Point]]:
    """The pixels of a region that is no mask, and the points that it reaches to."""
    if region.polygon is not None:
        fill = polygon_crop if region.rule is None else coco_polygon_crop
        return fill(region.polygon, size), region.polygon
    if region.box is not None:
        fill_box = box_crop if region.rule is None else coco_box_crop
        return fill_box(region.box, size), (region.box[:2], region.box[2:])
    if region.circle is not None:
        x, y, radius = region.circle
        return circle_crop((x, y), radius, size), ((x - radius, y - radius), (x + radius, y + radius))
    if region.line is not None:
        return line_crop(region.line, size), region.line
    assert region.point is not None
    return point_crop(region.point, size), (region.point,)


def image_size(image: ArtifactImage, predicted: ArtifactImage, pictures: Sequence[Path]) -> Size:
    """Width and height of an image: as its true or predicted record says, else its file in one of the folders
    `pictures`, else its first mask.

    Raises UsageError where the two records differ, and where nobody says it.
    """
    ours, theirs = image.record.size, predicted.record.size
    if ours is not None and theirs is not None and ours != theirs:
        raise UsageError(
            f"is {theirs[0]} × {theirs[1]} pixels in the predictions, but {ours[0]} × {ours[1]} in the truth"
        )
    files = (folder / each.image for folder in pictures for each in (image, predicted))
    sizes = (stored_size(file) for file in files if file.is_file())
    size = ours or theirs or next(filter(None, sizes), None) or _mask_size(image) or _mask_size(predicted)
    if size is None:
        raise UsageError("has no width and height, and its image file is missing")
    return size


def _mask_size(image: ArtifactImage) -> Size | None:
    """That of its first mask, where nothing else says it."""
    for region in image.regions:
        if isinstance(region.mask, RunLengths):
            return region.mask.size[1], region.mask.size[0]
        if isinstance(region.mask, str):
            try:
                height, width = _file(region.mask, image, None).shape
            except UncannyError:  # said when it is drawn
                return None
            return width, height
    return None


def _mask(mask: str | RunLengths, image: ArtifactImage, size: Size) -> Mask:
    if isinstance(mask, RunLengths):
        return decode_rle({"size": list(mask.size), "counts": mask.counts}, size)
    return _file(mask, image, size)


def _file(name: str, image: ArtifactImage, size: Size | None) -> Mask:
    path = image.folder / name
    if image.heat is not None:
        return np.asarray(read_heat_map(path, size) >= image.heat)
    return read_mask(path, size)
