"""The demo inpainter: the region is filled from its surroundings, and a distorted copy of it is laid over.

Filling is OpenCV's method by Telea (*An image inpainting technique based on the fast marching method*, 2004),
with a radius of 3 pixels. The distortion is one of four, by the seed:

- `warp`: rows and columns are shifted along two waves, by up to a quarter of the region at strength 1;
- `swap`: the halves of the region change places, along its longer side;
- `mirror`: the region is flipped, along its longer side;
- `duplicate`: the region is there twice, side by side, each half as large along its longer side.

The faults are those that people are asked to find, and not those of an image model. Text and guidance have no
effect, and strength has one for `warp` alone.
"""

from __future__ import annotations

from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from uncanny.errors import ModelUnusableError, UsageError
from uncanny.extras import optional
from uncanny.images.encode import png_bytes
from uncanny.models.base import ModelRequest, ModelResponse, Tokens
from uncanny.models.painting.canvas import opened

Pixels = NDArray[np.uint8]
Distortion = Literal["warp", "swap", "mirror", "duplicate"]
DISTORTIONS: Final[tuple[Distortion, ...]] = get_args(Distortion)
RADIUS: Final = 3
_FREE: Final = Tokens(input=0, output=0, cached=0, cache_written=0)
# Around the region, for the filling; and the width of the soft edge of what is laid over, in pixels.
_MARGIN: Final = 24
_EDGE: Final = 5


def painted(request: ModelRequest) -> ModelResponse:
    """The response to a request with a `painting`. Raises ModelUnusableError without OpenCV."""
    from PIL import Image

    painting = request.painting
    assert painting is not None
    picture, mask, _ = request.to_paint()
    pixels = np.asarray(opened(picture).convert("RGB"))
    region = np.asarray(opened(mask).convert("L")) > 127
    try:
        result = distorted(pixels, region, seed=painting.seed, strength=painting.strength)
    except UsageError as error:
        raise ModelUnusableError(error.message, remedy=error.remedy) from error
    sent = {"seed": painting.seed, "strength": painting.strength}
    text = painting.keep(png_bytes(Image.fromarray(result), 1), sent)
    return ModelResponse(text, tokens=_FREE, model=f"demo/{distortion_of(painting.seed)}")


def distortion_of(seed: int) -> Distortion:
    """Which of the four it is."""
    return DISTORTIONS[seed % len(DISTORTIONS)]


def distorted(pixels: Pixels, mask: NDArray[np.bool_], *, seed: int, strength: float) -> Pixels:
    """`pixels` (height, width, 3) with the distorted region where `mask` (height, width) is true.

    All pixels outside stay as they are; without a pixel in the mask all do. `seed` is 0 or more, `strength`
    from 0 to 1. Raises UsageError where OpenCV is not installed.
    """
    cv2 = optional("cv2", "pairs", "The demo inpainter")
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    result = pixels.copy()
    if not len(rows):
        return result
    box = (slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1))
    around = tuple(slice(max(0, each.start - _MARGIN), each.stop + _MARGIN) for each in box)
    filled = pixels.copy()
    filled[around] = cv2.inpaint(
        np.ascontiguousarray(pixels[around]), mask[around].astype(np.uint8), RADIUS, cv2.INPAINT_TELEA
    )
    laid = _distorted_part(cv2, np.ascontiguousarray(pixels[box]), seed, strength)
    # From the outline of the mask inwards, so that the copy has no hard edge.
    inside = np.pad(mask[box].astype(np.uint8), 1)
    depth = cv2.distanceTransform(inside, cv2.DIST_L2, 3)[1:-1, 1:-1]
    weight = np.clip(depth / _EDGE, 0, 1)[..., None]
    mixed = np.rint(laid * weight + filled[box] * (1 - weight)).astype(np.uint8)
    result[box][mask[box]] = mixed[mask[box]]
    return result


def _distorted_part(cv2: Any, part: Pixels, seed: int, strength: float) -> Pixels:
    height, width = part.shape[:2]
    axis = int(width >= height)  # the longer side: 1 across, 0 down
    match distortion_of(seed):
        case "swap":
            return np.roll(part, part.shape[axis] // 2, axis=axis)
        case "mirror":
            return np.flip(part, axis=axis)
        case "duplicate":
            half = (max(1, -(-width // 2)), height) if axis else (width, max(1, -(-height // 2)))
            small = cv2.resize(part, half, interpolation=cv2.INTER_AREA)
            twice: Pixels = np.concatenate([small, small], axis=axis)[:height, :width]
            return twice
        case "warp":
            phase = (seed // len(DISTORTIONS)) * 1.7
            y, x = np.mgrid[0:height, 0:width].astype(np.float32)
            across = strength * width / 4 * np.sin(2 * np.pi * y / height + phase)
            down = strength * height / 4 * np.sin(2 * np.pi * x / width + phase)
            moved: Pixels = cv2.remap(
                part,
                (x + across).astype(np.float32),
                (y + down).astype(np.float32),
                cv2.INTER_LINEAR,
                borderMode=cv2.BORDER_REFLECT,
            )
            return moved
