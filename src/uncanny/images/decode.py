"""From a file's bytes to pixels, or to the certainty that the pixels are all there."""

from __future__ import annotations

import importlib
import logging
import re
import struct
import threading
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Any, BinaryIO, Final, cast

from PIL import (
    AvifImagePlugin,
    BmpImagePlugin,
    GifImagePlugin,
    Image,
    ImageFile,
    JpegImagePlugin,
    PngImagePlugin,
    TiffImagePlugin,
    UnidentifiedImageError,
    WebPImagePlugin,
)

from uncanny.errors import ImageError
from uncanny.extras import install_hint
from uncanny.images.signature import (
    MOST_OF_A_MARK,
    UNREAD_SUFFIXES,
    Format,
    look_of,
    looks_cut_off,
    no_image,
    other_image,
    sniff,
)
from uncanny.images.structure import check_directory, check_structure, jxl_size

# Imported by name: Pillow loads most plugins on first need, which is not safe from several threads at once.
_PLUGINS = (
    AvifImagePlugin,
    BmpImagePlugin,
    GifImagePlugin,
    JpegImagePlugin,
    PngImagePlugin,
    TiffImagePlugin,
    WebPImagePlugin,
)

logging.getLogger("PIL").addHandler(logging.NullHandler())

_ORIENTATION = 0x0112
_BITS_PER_SAMPLE = 258
_RAISE_PIXELS = "Raise the limit on pixels if the picture is really that large."
_PILLOWS_LIMIT = "If it is really that large, convert it to PNG or JPEG, and raise the limit on pixels."
_READABLE = "JPEG, PNG, WebP, GIF, BMP, TIFF or AVIF"
_PILLOW_NAMES: dict[Format, str] = {"HEIC": "HEIF"}
# Formats that Pillow reads with a module of another package, which the extra `formats` brings.
_EXTRA: dict[Format, str] = {"HEIC": "pillow_heif", "JXL": "pillow_jxl"}
_LOADING = threading.Lock()
# Where a PNG may say which way is up. Pillow looks for them behind the pixels, too, and decodes them for it.
_ORIENTATION_MARKS = (b"eXIf", b"Raw profile type exif", b"XML:com.adobe.xmp")

_CHANNELS: Final = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_BLOCK: Final = 1 << 20
_MOST_FILTERS: Final = 4

# Of all threads together, a larger picture going alone. One pixel takes about 9 bytes while it is worked on.
MOST_PIXELS_AT_ONCE = 100_000_000


@dataclass(slots=True)
class Header:
    """What a file says of its first frame before anything is decoded.

    `turned` is EXIF's orientation, 1–8, None where only decoding tells. `depth` is bits a sample in the file.
    """

    image: ImageFile.ImageFile
    format: Format
    size: tuple[int, int]
    mode: str
    frames: bool
    turned: int | None
    depth: int
    white_is_zero: bool

    @property
    def pixels(self) -> int:
        return self.size[0] * self.size[1]


@dataclass(slots=True)
class Decoded:
    """The first frame's pixels as stored: not turned upright, not converted.

    `orientation` is 1–8 as in EXIF, 1 once the pixels are upright. `turned` is what the file said, also where
    Pillow has already turned the pixels. `depth` is bits a sample in the file.
    """

    image: Image.Image
    format: Format
    frames: bool
    orientation: int
    turned: int
    depth: int
    white_is_zero: bool


class PixelLimit:
    """At most so many pixels are worked on by all threads at a time; first come, first served."""

    def __init__(self, most: int) -> None:
        self._most, self._taken = most, 0
        self._changed = threading.Condition()
        self._next = self._served = 0

    @contextmanager
    def hold(self, pixels: int) -> Iterator[None]:
        """Wait until there is room. What is above the limit goes alone."""
        pixels = min(pixels, self._most)
        with self._changed:
            number = self._next
            self._next += 1
            # In turn: a large picture would else wait for as long as small ones come.
            self._changed.wait_for(lambda: self._served == number and self._taken + pixels <= self._most)
            self._served += 1
            self._taken += pixels
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._taken -= pixels
                self._changed.notify_all()


PIXELS = PixelLimit(MOST_PIXELS_AT_ONCE)


class _IgnoredWarnings:
    """Pillow's warnings, ignored while any thread works on a picture here, whatever the host's filters say.

    They tell of files, not of anything a program could mend, and where a host turns warnings into errors
    they would make readable pictures unreadable. `warnings.catch_warnings` puts a whole list of filters back
    on leaving, which loses what other threads have changed by then: one filter is put in and taken out.
    """

    _FILTER = ("ignore", None, Warning, re.compile(r"PIL(\..*)?"), 0)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            self._inside += 1
            self._set(ignored=True)
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                self._set(ignored=self._inside > 0)

    def _set(self, *, ignored: bool) -> None:
        # Not `filterwarnings`, which makes every warning of the host that was shown once be shown again.
        filters = cast(list[Any], warnings.filters)
        while (
            place := next((n for n, each in enumerate(filters) if each is self._FILTER), None)
        ) is not None:
            del filters[place]
        if ignored:
            filters.insert(0, self._FILTER)


# To be used around all work with Pillow, as a context or a decorator.
without_warnings = _IgnoredWarnings()


def read_header(data: bytes, max_pixels: int) -> Header:
    """Raises `ImageError`, or whatever Pillow raises: see `explain`.

    What is read here can be decoded in seconds: other files are refused (`structure`).
    """
    name = sniff(data)
    if name is None:
        raise UnidentifiedImageError("no format that is read")
    check_structure(BytesIO(data), name)
    if name == "JXL":
        _check_pixels(jxl_size(BytesIO(data)), max_pixels)
    image = _open(BytesIO(data), name)
    _check_pixels(image.size, max_pixels)
    hidden = name == "PNG" and any(mark in data for mark in _ORIENTATION_MARKS)
    turned = None if hidden else 1 if name == "PNG" else orientation_of(image)
    tags = image.tag_v2 if isinstance(image, TiffImagePlugin.TiffImageFile) else None
    # Counting the pages of a TIFF walks a chain that a hostile file can make millions long.
    frames = getattr(image, "is_animated", False) if tags is None else tags.next
    return Header(
        image=image,
        format=name,
        size=image.size,
        mode=image.mode,
        frames=bool(frames),
        turned=turned,
        depth=_depth(image, data),
        white_is_zero=tags is not None and tags.get(262) == 0,
    )


def header_size(file: BinaryIO) -> tuple[int, int]:
    """Width and height as stored, from the header alone. Raises `ImageError` or whatever Pillow raises."""
    name = sniff(file.read(MOST_OF_A_MARK))
    if name is None:
        raise UnidentifiedImageError("no format that is read")
    check_structure(file, name, scans=False)
    return jxl_size(file) if name == "JXL" else _open(file, name).size


def _check_pixels(size: tuple[int, int], max_pixels: int) -> None:
    if size[0] * size[1] > max_pixels:
        raise ImageError(
            f"the file declares {size[0]:,} × {size[1]:,} pixels, the limit is {max_pixels:,}",
            kind="bomb",
            remedy=_RAISE_PIXELS,
        )


def decode(data: bytes, header: Header, *, draft: int | None = None) -> Decoded:
    """Decode the first frame whole. Raises `ImageError`, or whatever Pillow raises: see `explain`.

    To be called, and the pixels to be used, with `PIXELS` held. `draft` is a side in pixels: a JPEG may come
    out reduced, though no smaller than that, and much sooner. A header can be used once.
    """
    image = header.image
    if header.format == "PNG":
        # Decoding skips the checksums of the pixel data; this does not.
        _open(BytesIO(data), "PNG").verify()
    turned = orientation_of(image) if header.turned is None else header.turned
    if draft is not None:
        image.draft(None, (draft, draft))
    image.load()
    orientation = 1 if isinstance(image, TiffImagePlugin.TiffImageFile) else turned
    return Decoded(
        image, header.format, header.frames, orientation, turned, header.depth, header.white_is_zero
    )


def check_whole(data: bytes, header: Header) -> bool:
    """Whether all pixels can be decoded, found out without keeping them; False where only `decode` tells.

    Raises what `decode` raises where they cannot.
    """
    if header.format == "PNG":
        _open(BytesIO(data), "PNG").verify()
        return check_png_rows(data)
    # Progressive files are put together in memory whole, whatever size is asked for.
    if header.format == "JPEG" and not header.image.info.get("progressive"):
        image = _open(BytesIO(data), "JPEG")
        # All of the file is read for it, and an eighth of each side is kept.
        image.draft(None, (1, 1))
        image.load()
        return True
    return False


def check_png_rows(data: bytes) -> bool:
    """True if all rows are there and can be decoded, False for an interlaced file, which is not looked at.

    `data` starts with an `IHDR` that Pillow has read. Checksums of chunks are left to Pillow's `verify`.
    Raises OSError for rows that are missing or damaged, `zlib.error` for a broken stream.
    """
    width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
    depth, colour, interlaced = data[24], data[25], data[28]
    if interlaced or colour not in _CHANNELS:
        return False
    stride = 1 + (width * depth * _CHANNELS[colour] + 7) // 8
    missing = stride * height
    to_next_filter = 0
    for block in _unpacked(data):
        rows = block[:missing]
        # The first byte of each row says how it is filtered.
        filters = rows[to_next_filter::stride]
        if filters and max(filters) > _MOST_FILTERS:
            raise OSError("unrecognized data stream contents when reading image file")
        to_next_filter = (to_next_filter - len(rows)) % stride
        missing -= len(rows)
        if not missing:
            return True
    raise OSError(f"image file is truncated ({missing} bytes of pixels are missing)")


def _unpacked(data: bytes) -> Iterator[bytes]:
    unpacker = zlib.decompressobj()
    for packed in _pixel_chunks(data):
        left = packed
        while not unpacker.eof:
            block = unpacker.decompress(left, _BLOCK)
            left = unpacker.unconsumed_tail
            yield block
            if not left and len(block) < _BLOCK:
                break


def _pixel_chunks(data: bytes) -> Iterator[bytes]:
    """Contents of the IDAT chunks, which follow each other."""
    at, begun = 8, False
    while at + 8 <= len(data):
        size, kind = int.from_bytes(data[at : at + 4], "big"), data[at + 4 : at + 8]
        if kind == b"IDAT":
            begun = True
            yield data[at + 8 : at + 8 + size]
        elif begun:
            return
        at += size + 12


def _open(file: BinaryIO, name: Format) -> ImageFile.ImageFile:
    """What `Image.open` does but for its limit on pixels, which is one for the whole process.

    `read_header` checks the user's own. Of a file with several JPEGs the first is read. Pillow checks its
    limit for WebP and GIF itself. Raises as `Image.open` does.
    """
    if name in _EXTRA:
        _load_extra(name)
    opener: Callable[..., ImageFile.ImageFile] = JpegImagePlugin.JpegImageFile
    accept: Callable[[bytes], bool | str] | None = None
    if name != "JPEG":
        opener, accept = Image.OPEN[_PILLOW_NAMES.get(name, name)]
    prefix = file.read(16)
    file.seek(0)
    try:
        accepted = accept is None or accept(prefix)
        if accepted and not isinstance(accepted, str):  # a text says what Pillow was built without
            return opener(file, "")
    except (SyntaxError, IndexError, TypeError, struct.error) as error:
        raise UnidentifiedImageError(f"the header of the {name} file is broken") from error
    raise UnidentifiedImageError(f"no {name} file that Pillow reads")


def explain(error: Exception, data: bytes, suffix: str = "") -> ImageError:
    """Turn whatever went wrong while decoding into the one error of this package.

    `suffix` is the file's, for formats that begin with no mark of their own.
    """
    if isinstance(error, ImageError):
        return error
    if isinstance(error, Image.DecompressionBombError | Image.DecompressionBombWarning):
        return ImageError(
            "the file declares more pixels than Pillow reads", kind="bomb", remedy=_PILLOWS_LIMIT
        )
    if isinstance(error, MemoryError):
        remedy = "Run the same again with more of it, or make the picture smaller."
        return ImageError("the picture needs more memory than there is", kind="memory", remedy=remedy)
    name = sniff(data)
    if name is None:
        return _no_image(data, suffix)
    if "truncated" in str(error).lower() or looks_cut_off(data, name):
        return ImageError(f"the {name} file is cut off", kind="truncated", remedy="Fetch it again.")
    return ImageError(
        f"the {name} file cannot be decoded ({_reason(error)})",
        kind="damaged",
        remedy="Fetch it again, or convert it with another program.",
    )


def orientation_of(image: Image.Image) -> int:
    """EXIF orientation 1–8; 1 where there is none, or none that can be read."""
    try:
        exif = image.info.get("exif")
        if isinstance(exif, bytes):
            check_directory(BytesIO(exif.removeprefix(b"Exif\0\0")))
        value = image.getexif().get(_ORIENTATION)
    except Exception:  # a broken EXIF block says nothing about the pixels
        return 1
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def _reason(error: Exception) -> str:
    if isinstance(error, UnidentifiedImageError):
        return "its header is broken"
    return f"{type(error).__name__}: {error}"[:200]


def _load_extra(name: Format) -> None:
    """Raises `ImageError` where the package is not installed."""
    try:
        with _LOADING:  # each registers itself with Pillow, which is not safe from several threads
            loaded = importlib.import_module(_EXTRA[name])
            if name == "HEIC":
                loaded.register_heif_opener()
    except ImportError as error:
        raise ImageError(
            f"{name} needs a plugin that is not installed",
            kind="unsupported",
            remedy=install_hint("formats", instead=f"convert the image to {_READABLE}"),
        ) from error


def _no_image(data: bytes, suffix: str) -> ImageError:
    other = other_image(data)
    if other is None and not no_image(data):
        other = UNREAD_SUFFIXES.get(suffix)
    if other is not None:
        return ImageError(f"{other} is not read", kind="unsupported", remedy=f"Convert it to {_READABLE}.")
    return ImageError(
        f"not an image: {look_of(data)}", kind="not_an_image", remedy=f"Give files in {_READABLE}."
    )


def _depth(image: ImageFile.ImageFile, data: bytes) -> int:
    if image.format == "HEIF":
        # Gray with more than 8 bits comes spread over 16.
        return 16 if image.mode.startswith("I;16") else int(image.info.get("bit_depth") or 8)
    if isinstance(image, PngImagePlugin.PngImageFile):
        return data[24]
    if isinstance(image, TiffImagePlugin.TiffImageFile):
        bits = image.tag_v2.get(_BITS_PER_SAMPLE, 1)
        return int(max(bits)) if isinstance(bits, tuple) else int(bits)
    return 8
