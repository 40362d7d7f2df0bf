"""From a painted picture to a candidate: what lies outside the mask is put back, bit for bit."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from uncanny.errors import StorageError
from uncanny.eval.common.pixels.crops import Mask
from uncanny.eval.pairs.parameters import MakeConfig
from uncanny.images.encode import png_bytes
from uncanny.images.prepared import read_rgb
from uncanny.models.base import SentImage, encode_image
from uncanny.models.painting.canvas import opened
from uncanny.records.jsonl import write_in_run

RgbPixels = NDArray[np.uint8]
_NOT_IN_NAMES: Final = re.compile(r"[^\w.-]+", re.ASCII)
_LONGEST_NAME: Final = 60
# Of pictures that are kept: hardly larger than at Pillow's 6, and twice as quick.
COMPRESSION: Final = 4


class Attempt(NamedTuple):
    """What one candidate of a region is asked with."""

    number: int
    parameters: dict[str, float]


def attempts(config: MakeConfig) -> Iterator[Attempt]:
    """The attempts at a region, their guidance and strength spread evenly from the first to the last."""
    last = max(1, config.attempts - 1)
    for number in range(config.attempts):
        part = number / last
        yield Attempt(
            number,
            {
                "seed": config.seed + number,
                "guidance": _between(config.guidance_from, config.guidance_to, part),
                "strength": _between(config.strength_from, config.strength_to, part),
                "steps": config.steps,
            },
        )


def _between(first: float, last: float, part: float) -> float:
    return round(first + (last - first) * part, 6)


def short_name(image: str, sha256: str) -> str:
    """What files made from an image begin with: its name, and what tells its bytes from others'."""
    stem = _NOT_IN_NAMES.sub("_", Path(image).stem).strip("._")[:_LONGEST_NAME]
    return f"{stem or 'image'}-{sha256[:8]}"


@dataclass(frozen=True, slots=True, eq=False)
class Working:
    """An image and a mask as the inpainter gets them, at most so many pixels on the longest side."""

    picture: SentImage
    mask: SentImage


def working(pixels: RgbPixels, mask: Mask, side: int) -> Working:
    """Both as PNG files. Larger images are scaled down; of the mask whatever is partly covered is covered."""
    height, width = mask.shape
    picture, cover = Image.fromarray(pixels), Image.fromarray(mask.astype(np.uint8) * 255)
    scale = side / max(width, height)
    if scale < 1:
        size = (max(1, round(width * scale)), max(1, round(height * scale)))
        picture = picture.resize(size, Image.Resampling.LANCZOS)
        cover = cover.resize(size, Image.Resampling.BOX).point(lambda value: 255 * (value > 0))
    return Working(_sent(picture), _sent(cover))


def _sent(image: Image.Image) -> SentImage:
    data = png_bytes(image, 1)
    digest = hashlib.sha256(data).hexdigest()
    return encode_image(
        sha256=digest, media_type="image/png", width=image.width, height=image.height, data=data
    )


def compose(pixels: RgbPixels, mask: Mask, painted: Image.Image, file: Path) -> str:
    """Write the original's `pixels` with what was `painted` within `mask` to `file`, and read it back.

    `painted` may be of another size, to which the original was scaled. Returns the digest of the file. Raises
    StorageError where it cannot be written, or does not have the original's pixels outside the mask.
    """
    height, width = mask.shape
    if painted.size != (width, height):
        painted = painted.resize((width, height), Image.Resampling.LANCZOS)
    drawn = np.asarray(painted.convert("RGB"))
    data = png_bytes(Image.fromarray(np.where(mask[..., None], drawn, pixels)), COMPRESSION)
    write_in_run(file, [data])
    written = np.asarray(read_rgb(file)[0])
    if not is_kept(pixels, written, mask):
        raise StorageError(
            f"{file} differs from its original outside the mask", remedy="Check the disk, and try again."
        )
    return hashlib.sha256(data).hexdigest()


def outside_painted(inputs: Working, painted: Image.Image) -> float | None:
    """The share of pixels outside the mask that an inpainter drew anew, 0-1, at the size it was sent.

    None where the mask covers everything.
    """
    outside = np.asarray(opened(inputs.mask).convert("L")) == 0
    if not outside.any():
        return None
    before, after = np.asarray(opened(inputs.picture).convert("RGB")), np.asarray(painted.convert("RGB"))
    return float((before != after).any(axis=2)[outside].mean())


def is_kept(original: RgbPixels, edited: RgbPixels, mask: Mask) -> bool:
    """Whether two pictures of one size have the same pixels outside the mask."""
    return original.shape == edited.shape and bool(((original == edited).all(axis=2) | mask).all())
