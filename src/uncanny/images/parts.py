"""Parts of an image, cut from its file at full resolution: which of them hold detail, and their pixels.

A file is decoded once for all its parts. Those for models are chosen while its pixels are there; the same
part of the same file is always the same bytes, and a comment in them says which file they are from and where
they were. Those for people show what is `around` a place, and are small.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from uncanny.images.decode import PIXELS, decode, read_header, without_warnings
from uncanny.images.encode import PixelPolicy, plain
from uncanny.images.file_bytes import read_image_file
from uncanny.images.prepared import webp
from uncanny.schema import Box

# With colours at full resolution, so that thin coloured lines stay what they are.
JPEG: Final = {"quality": 95, "subsampling": 0}
# The long side of the small copy on which detail is measured.
_SURVEYED: Final = 512
_COMMENT: Final = re.compile(
    rb"part of ([0-9a-f]{64}) at (\d{1,9}),(\d{1,9}),(\d{1,9}),(\d{1,9}) of (\d{1,9})x(\d{1,9});"
)
# Comments are ahead of the pixels.
_MOST_AHEAD: Final = 2_048
# Around a place that people look at: this share of its longer side, on each side. No part is smaller than
# this share of the image, or than this many pixels of a large one, so that one sees where it is.
_MARGIN: Final = 0.35
_LEAST_SHARE: Final = 0.2
_LEAST_SIDE: Final = 192
_SHAPE: Final = 4 / 3


@dataclass(frozen=True, slots=True)
class Cut:
    """A part to be cut out: `box` in pixels of the image, and the long side that it is scaled to."""

    box: Box
    side: int


@dataclass(frozen=True, slots=True)
class Part:
    """A part as a file; `width` and `height` are in pixels."""

    data: bytes = field(repr=False)
    sha256: str
    media_type: Literal["image/jpeg", "image/png"]
    width: int
    height: int


class Survey:
    """Where in an image there is detail."""

    def __init__(self, image: Image.Image) -> None:
        small = (
            image.copy() if max(image.size) <= _SURVEYED else image.reduce(-(-max(image.size) // _SURVEYED))
        )
        grey = np.asarray(small.convert("L"), dtype=np.float32)
        steps = np.zeros_like(grey)
        steps[:, 1:] += np.abs(np.diff(grey, axis=1))
        steps[1:, :] += np.abs(np.diff(grey, axis=0))
        self._sums: Any = np.pad(steps.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
        self._width, self._height = small.size
        self._scale = (small.width / image.width, small.height / image.height)

    def detail(self, box: Box) -> float:
        """The mean step of brightness between neighboring pixels in `box`, from 0, all of one gray."""
        across, down = self._scale
        x0, x1 = (min(max(round(each * across), 0), self._width) for each in (box[0], box[2]))
        y0, y1 = (min(max(round(each * down), 0), self._height) for each in (box[1], box[3]))
        if x0 >= x1 or y0 >= y1:
            return 0.0
        sums = self._sums
        return float(sums[y1, x1] - sums[y0, x1] - sums[y1, x0] + sums[y0, x0]) / ((x1 - x0) * (y1 - y0))


@without_warnings()
def cut_parts(
    source: Path | bytes,
    choose: Callable[[Survey], Sequence[Cut]],
    *,
    sha256: str | None = None,
    jpeg: bool = True,
    max_pixels: int = PixelPolicy().max_pixels,
) -> tuple[Part, ...]:
    """The parts of `source` that `choose` names, in its order.

    They are JPEG files of high quality, made in a ninth of the time of PNG; PNG without `jpeg`, and where
    there is transparency. None of them where the file cannot be read any more, has more than `max_pixels`, or
    with `sha256` has other bytes: they are an aid, and the image itself was sent.

    Blocking, and heavy on CPU and memory: the pixels of few images are in memory at a time.
    """
    with _pixels(source, sha256, max_pixels) as opened:
        if opened is None:
            return ()
        image, digest = opened
        return tuple(_cut(image, each, digest, jpeg) for each in choose(Survey(image)))


@without_warnings()
def parts_to_show(
    source: Path,
    boxes: Sequence[Box],
    side: int,
    *,
    size: tuple[int, int],
    sha256: str | None = None,
    quality: int = 80,
) -> tuple[bytes | None, ...]:
    """The parts of `source` in `boxes` as WebP for people, at most `side` pixels long and never enlarged.

    None where a part cannot be cut, and for all of them where the file cannot be read, is not `size` pixels
    large as seen upright, or with `sha256` has other bytes. Blocking, as `cut_parts` is.
    """
    with _pixels(source, sha256, PixelPolicy().max_pixels) as opened:
        if opened is None or opened[0].size != size:
            return (None,) * len(boxes)
        return tuple(_small(opened[0], box, side, quality) for box in boxes)


def _small(image: Image.Image, box: Box, side: int, quality: int) -> bytes | None:
    x0, y0, x1, y1 = box
    if not (0 <= x0 < x1 <= image.width and 0 <= y0 < y1 <= image.height):
        return None
    part = image.crop(box)
    part.thumbnail((side, side), Image.Resampling.LANCZOS)
    part.info = {}
    return webp(part, quality)


def around(box: tuple[float, float, float, float], size: tuple[int, int]) -> Box:
    """What to show of an image of `size` pixels for people to see what is in the `box`, and where that is.

    It lies within the image, has the box in its middle where it can, and is 4 : 3 unless the image is too
    narrow for that.
    """
    width, height = size
    x0, y0, x1, y1 = box
    margin = 2 * _MARGIN * max(x1 - x0, y1 - y0)
    least = min(_LEAST_SHARE * max(size), _LEAST_SIDE)
    wide = max(x1 - x0 + margin, (y1 - y0 + margin) * _SHAPE, least)
    left, right = _within((x0 + x1) / 2, wide, width)
    top, bottom = _within((y0 + y1) / 2, wide / _SHAPE, height)
    return left, top, right, bottom


def _within(middle: float, length: float, whole: int) -> tuple[int, int]:
    """Both ends of a stretch of whole pixels, moved into 0 to `whole`."""
    pixels = min(max(1, round(length)), whole)
    start = min(max(0, round(middle - pixels / 2)), whole - pixels)
    return start, start + pixels


@contextmanager
def _pixels(
    source: Path | bytes, sha256: str | None, max_pixels: int
) -> Iterator[tuple[Image.Image, str] | None]:
    """The pixels of a file, upright, and its digest, as long as they are worked on; None where there are none
    to be had, whatever is wrong with a file that was readable a minute ago."""
    try:
        data = source if isinstance(source, bytes) else read_image_file(source, PixelPolicy().max_file_bytes)
        digest = hashlib.sha256(data).hexdigest()
        header = read_header(data, max_pixels) if sha256 in (None, digest) else None
    except Exception:
        header = None
    if header is None:
        yield None
        return
    with PIXELS.hold(header.pixels):
        try:
            image, _, _ = plain(decode(data, header))
        except Exception:
            yield None
            return
        del data, header
        yield image, digest


class CutFrom(NamedTuple):
    """Where a part is from: the digest of the file, the `box` there, and its `size`, in pixels."""

    sha256: str
    box: Box
    size: tuple[int, int]


def part_of(data: bytes) -> CutFrom | None:
    """Where a part was cut from; None where `data`, or the beginning of a file, is not a part."""
    match = _COMMENT.search(data, 0, _MOST_AHEAD)
    if match is None:
        return None
    x0, y0, x1, y1, width, height = map(int, match.groups()[1:])
    return CutFrom(match[1].decode(), (x0, y0, x1, y1), (width, height))


def _cut(image: Image.Image, cut: Cut, digest: str, jpeg: bool) -> Part:
    width, height = cut.box[2] - cut.box[0], cut.box[3] - cut.box[1]
    scale = cut.side / max(width, height)
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    if size == (width, height):
        part = image.crop(cut.box)
    else:
        # Of most tiles a few pixels are taken off; a filter for enlarging takes half as long again.
        method = Image.Resampling.HAMMING if scale < 1 else Image.Resampling.BICUBIC
        part = image.resize(size, method, box=cut.box, reducing_gap=2.0)
    part.info = {}
    file = BytesIO()
    comment = f"part of {digest} at {','.join(map(str, cut.box))} of {image.width}x{image.height};"
    if jpeg and part.mode in ("L", "RGB"):
        part.save(file, "JPEG", comment=comment, **JPEG)
    else:
        jpeg = False
        info = PngInfo()
        info.add_text("Comment", comment)
        # The quickest compression takes a third of the time of the usual one, for a seventh more bytes.
        part.save(file, "PNG", compress_level=1, pnginfo=info)
    data = file.getvalue()
    media_type: Literal["image/jpeg", "image/png"] = "image/jpeg" if jpeg else "image/png"
    return Part(data, hashlib.sha256(data).hexdigest(), media_type, part.width, part.height)
