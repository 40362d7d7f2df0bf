"""Parts of an image at full resolution, to be sent beside the whole."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Final, Literal

from PIL import Image

from uncanny.images.decode import PIXELS, decode, read_header, without_warnings
from uncanny.images.encode import PixelPolicy, plain
from uncanny.images.file_bytes import read_image_file
from uncanny.schema import Box

# Shorter than that, a part is enlarged, so that models do not see it as a few patches; longer, it is reduced.
LEAST_SIDE: Final = 512
MOST_SIDE: Final = 1_024
LEAST_SHARE: Final = 1 / 4
# A part shows something that the whole picture does not only where it is larger than it is there.
LEAST_SCALE: Final = 1.5
# With colours at full resolution, so that thin coloured lines stay what they are.
JPEG: Final = {"quality": 95, "subsampling": 0}


@dataclass(frozen=True, slots=True)
class Crop:
    """A part as a file; `width` and `height` are in pixels."""

    data: bytes = field(repr=False)
    sha256: str
    media_type: Literal["image/jpeg", "image/png"]
    width: int
    height: int


@without_warnings()
def crops(
    source: Path | bytes,
    boxes: Sequence[Box],
    margin: float,
    *,
    seen: tuple[int, int] | None = None,
    sha256: str | None = None,
    jpeg: bool = True,
    max_pixels: int = PixelPolicy().max_pixels,
) -> tuple[Crop, ...]:
    """The parts of `source` in `boxes`, with `margin` of their sides around them.

    They are JPEG files of high quality, made in a ninth of the time of PNG; PNG without `jpeg`, and where
    there is transparency. None is narrower or lower than `LEAST_SHARE` of the picture: most faults show by
    what is around them. `seen` is the size at which the whole picture is looked at, by default its own.

    None of them where the file cannot be read any more, has more than `max_pixels`, or with `sha256` has
    other bytes: they are an aid, and the picture itself was sent.
    Blocking, and heavy on CPU and memory.
    """
    most_bytes = PixelPolicy().max_file_bytes
    try:
        data = source if isinstance(source, bytes) else read_image_file(source, most_bytes)
        if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
            return ()
        header = read_header(data, max_pixels)
        with PIXELS.hold(header.pixels):
            image, _, _ = plain(decode(data, header))
            return tuple(_part(image, box, margin, seen or image.size, jpeg) for box in boxes)
    except Exception:  # whatever is wrong with a file that was readable a minute ago
        return ()


def _part(image: Image.Image, box: Box, margin: float, seen: tuple[int, int], jpeg: bool) -> Crop:
    across, down = (
        max(margin * (end - start), (LEAST_SHARE * side - (end - start)) / 2)
        for start, end, side in ((box[0], box[2], image.width), (box[1], box[3], image.height))
    )
    place = (
        max(0, round(box[0] - across)),
        max(0, round(box[1] - down)),
        min(image.width, round(box[2] + across)),
        min(image.height, round(box[3] + down)),
    )
    # Pillow cuts nothing out that is above its own limit on pixels, but reduces what is of any size.
    times = max(place[2] - place[0], place[3] - place[1]) // (4 * MOST_SIDE)
    part = image.reduce(times, place) if times > 1 else image.crop(place)
    part.info = {}
    longest = max(part.size)
    in_whole = max(place[2] - place[0], place[3] - place[1]) * max(seen) / max(image.size)
    wanted = min(max(longest, LEAST_SIDE, LEAST_SCALE * in_whole), MOST_SIDE)
    if longest != wanted:
        factor = wanted / longest
        size = (max(1, round(part.width * factor)), max(1, round(part.height * factor)))
        part = part.resize(size, Image.Resampling.LANCZOS)
    file = BytesIO()
    if jpeg and part.mode in ("L", "RGB"):
        part.save(file, "JPEG", **JPEG)
    else:
        jpeg = False
        # The quickest compression takes a third of the time of the usual one, for a seventh more bytes.
        part.save(file, "PNG", compress_level=1)
    data = file.getvalue()
    media_type: Literal["image/jpeg", "image/png"] = "image/jpeg" if jpeg else "image/png"
    return Crop(data, hashlib.sha256(data).hexdigest(), media_type, part.width, part.height)
