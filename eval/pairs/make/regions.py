"""Where to edit an image: regions from masks, from objects that a model names, from people, or by detail.

Source: SalArt-VQA, appendix B.3, stage 1, which has hands, feet and faces by MediaPipe. Limbs, objects, given
masks and detail are ours: pairs are wanted of images without people, too, and detail needs neither model nor
key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from PIL import Image

from uncanny.answers.boxes import overlap
from uncanny.errors import UsageError
from uncanny.eval.common.pixels.crops import Mask
from uncanny.eval.pairs.data import Hint
from uncanny.eval.pairs.parameters import MakeParameters, Regions
from uncanny.eval.pairs.places import place_of
from uncanny.images.parts import Survey
from uncanny.schema import Box, SceneObject
from uncanny.wording import option

Part = Literal["hand", "foot", "face", "limb"]
PEOPLE: Final[Mapping[str, Part]] = {
    "hands": "hand",
    "feet": "foot",
    "faces": "face",
    "limbs": "limb",
}
# Sides of a region of detail, as a share of the image's shorter side; steps between regions, of their side;
# what is left free at the edges of the image, of its sides.
_SIDE: Final = 0.3
_STEP: Final = 0.2
_FREE: Final = 0.05
# Smaller objects leave nothing to paint: this share of the image.
_LEAST_OBJECT: Final = 0.002


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """A place to edit, with its mask where that is given."""

    hint: Hint
    mask: Mask | None = None


def chosen_regions(parameters: MakeParameters) -> Regions:
    """How regions are found. Raises UsageError for what does not go together."""
    asks = parameters.model is not None
    regions = parameters.regions
    if regions is None:
        regions = "masks" if parameters.masks is not None else "objects" if asks else "detail"
    needs: dict[str, tuple[str, bool]] = {
        "masks": ("masks", parameters.masks is not None),
        "objects": ("model", asks),
        **dict.fromkeys(PEOPLE, ("landmarks", parameters.landmarks is not None)),
    }
    if regions in needs and not needs[regions][1]:
        name = needs[regions][0]
        raise UsageError(f"{option('regions', regions)} needs {option(name)}", remedy=f"Add {option(name)}.")
    if parameters.masks is not None and regions != "masks":
        raise UsageError(
            f"{option('masks')} has no effect with {option('regions', regions)}", remedy="Remove one of them."
        )
    if parameters.prompt_from != "caption" and not asks:
        raise UsageError(
            f"{option('prompt_from', parameters.prompt_from)} needs {option('model')}",
            remedy="Name the model that is to write prompts.",
        )
    return regions


def detail_regions(picture: Image.Image, number: int) -> list[Region]:
    """At most `number` squares that hold more detail than what is around them, the most first.

    Detail is the mean step of brightness between neighboring pixels. Squares do not overlap, and keep away
    from the edges of the image. Empty for an image of one color, or one too small to hold a square.
    """
    width, height = picture.size
    side = round(_SIDE * min(width, height))
    step = max(1, round(_STEP * side))
    survey = Survey(picture)
    scored: list[tuple[float, Box]] = []
    for y in range(round(_FREE * height), height - side - round(_FREE * height) + 1, step):
        for x in range(round(_FREE * width), width - side - round(_FREE * width) + 1, step):
            box = (x, y, x + side, y + side)
            around = (x - side // 2, y - side // 2, x + side + side // 2, y + side + side // 2)
            if side and (inside := survey.detail(box)) > 0:
                scored.append((inside - survey.detail(around) / 2, box))
    chosen: list[Box] = []
    for _, box in sorted(scored, key=lambda each: (-each[0], each[1])):
        if len(chosen) < number and not any(overlap(box, other) for other in chosen):
            chosen.append(box)
    return [
        Region(Hint(source="detail", name=f"the area {place_of(box, picture.size)}", box=box))
        for box in chosen
    ]


def object_regions(objects: Iterable[SceneObject], size: tuple[int, int], largest: float) -> list[Region]:
    """The objects that have a box, in their order.

    Boxes of more than the share `largest` of the image, and tiny ones, are left out.
    """
    area = size[0] * size[1]
    found = []
    for each in objects:
        if each.box is None:
            continue
        share = (each.box[2] - each.box[0]) * (each.box[3] - each.box[1]) / area
        if _LEAST_OBJECT <= share <= largest:
            found.append(Region(Hint(source="object", name=each.name, box=each.box)))
    return found


def ellipse(box: Box, size: tuple[int, int]) -> Mask:
    """The ellipse that fills `box`, within an image of this width and height."""
    x0, y0, x1, y1 = box
    y, x = np.mgrid[0 : size[1], 0 : size[0]]
    across, down = (x1 - x0) / 2, (y1 - y0) / 2
    inside = ((x + 0.5 - x0 - across) / across) ** 2 + ((y + 0.5 - y0 - down) / down) ** 2
    return np.asarray(inside <= 1)
