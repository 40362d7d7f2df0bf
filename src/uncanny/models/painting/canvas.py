"""A picture and its mask on a canvas of a size that a painter takes, and what was painted brought back."""

from __future__ import annotations

from binascii import a2b_base64
from dataclasses import dataclass
from io import BytesIO

import numpy as np
from PIL import Image

from uncanny.models.base import ModelRequest, SentImage

Size = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Canvas:
    """`picture` (RGB) and `mask` (L, white is painted over) of one size.

    The picture lies in the upper left corner, `used` pixels wide and high; its last pixels are repeated to
    the right and below. `size` is its own width and height.
    """

    picture: Image.Image
    mask: Image.Image
    used: Size
    size: Size

    def resamples(self, painted: Image.Image) -> bool:
        """Whether the picture was scaled to fit, or is when a painted canvas is brought back."""
        return self.used != self.size or painted.size != self.picture.size

    def back(self, painted: Image.Image) -> Image.Image:
        """What lies in the picture's place of a painted canvas of any size, at the picture's own size."""
        if painted.size != self.picture.size:
            painted = painted.resize(self.picture.size, Image.Resampling.LANCZOS)
        part = painted.convert("RGB").crop((0, 0, *self.used))
        return part if part.size == self.size else part.resize(self.size, Image.Resampling.LANCZOS)


def on_canvas(request: ModelRequest, size: Size, *, enlarge: bool = False) -> Canvas:
    """The picture of a request with a `painting`, as large as it fits on a canvas of `size`, and its mask.

    Without `enlarge` a picture that is smaller keeps its pixels.
    """
    sent, sent_mask, _ = request.to_paint()
    picture, mask = opened(sent).convert("RGB"), opened(sent_mask).convert("L")
    scale = min(size[0] / picture.width, size[1] / picture.height)
    used = picture.size
    if enlarge or scale < 1:
        used = max(1, round(picture.width * scale)), max(1, round(picture.height * scale))
    placed = picture.resize(used, Image.Resampling.LANCZOS) if used != picture.size else picture
    placed_mask = mask.resize(used, Image.Resampling.NEAREST) if used != mask.size else mask
    room = ((0, size[1] - used[1]), (0, size[0] - used[0]))
    return Canvas(
        Image.fromarray(np.pad(np.asarray(placed), (*room, (0, 0)), mode="edge")),
        Image.fromarray(np.pad(np.asarray(placed_mask), room)),
        used,
        picture.size,
    )


def opened(image: SentImage) -> Image.Image:
    """The pixels of an image of a request."""
    return Image.open(BytesIO(a2b_base64(image.base64)))
