"""Masks from PNG, NumPy and COCO run lengths, and their connected parts.

A mask is a bool array of shape (height, width); sizes are (width, height), as records and Pillow have them.

Everything here is done with NumPy, SciPy and Pillow. COCO's run lengths are decoded by code of our own, as
pycocotools takes run lengths that do not fit their image without a word and returns pixels from nowhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal

import numpy as np
from numpy.typing import NDArray

from uncanny.errors import ImageError, UsageError
from uncanny.eval.common.pixels.crops import Crop, Mask, Size
from uncanny.images.file_bytes import open_image_file
from uncanny.wording import shown, side

if TYPE_CHECKING:
    from PIL import Image

Floats = NDArray[np.float64]

# A file of a few bytes can declare any number of pixels.
MOST_PIXELS: Final = 200_000_000
_MOST_BYTES: Final = 2**31
# Of what else Pillow reads some starts other programs, as PostScript does.
_FORMATS: Final = ("AVIF", "BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
_FULL_BY_MODE: Final = {"1": 1.0, "L": 255.0, "I;16": 65535.0}
_LOSSY: Final = frozenset({"JPEG", "MPO"})
_MOST_SOFT = 0.1


def read_mask(path: Path, size: Size | None = None) -> Mask:
    """A mask from an image file or `.npy`: what is not 0 in some colour channel is set.

    Alpha does not count. Of JPEG, which leaves traces around every edge, it is half of white and more; of
    floats in NumPy files more than 0. Raises UsageError where the file cannot be read, is of another kind or
    shape, or is not of `size`.
    """
    if path.suffix.lower() == ".npy":
        array = _read_array(path, size)
        return np.ascontiguousarray(array > 0 if array.dtype.kind == "f" else array != 0)
    with _opened(path) as file:
        return _set(*_image_values(file, str(path), size))


def decode_mask(data: bytes, size: Size | None = None) -> Mask:
    """`read_mask` of what an image file holds, as a document may have it in it."""
    return _set(*_image_values(BytesIO(data), "the mask", size))


def _set(values: NDArray[Any], lossy: bool) -> Mask:
    return np.asarray(values >= 128 if lossy else values != 0)


def read_scores(path: Path) -> Floats:
    """A model's scores as they stand in a grey image or a `.npy` file; shape (height, width).

    Colours are taken for grey, alpha does not count. Raises UsageError where the file cannot be read, or is
    of another kind or shape.
    """
    if path.suffix.lower() == ".npy":
        return _read_array(path, None).astype(np.float64)
    with _opened(path) as file:
        image, _ = _read_image(file, str(path), None)
    grey = image if image.mode in ("1", "L", "F", "I", "I;16") else image.convert("L")
    return np.asarray(grey, dtype=np.float64)


def mask_identity(path: Path) -> str:
    """What tells a mask file from others: the SHA-256 of its bytes, its name where it cannot be read."""
    try:
        with _opened(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
    except (UsageError, OSError):
        return path.name


def has_shades(path: Path) -> bool:
    """Whether a mask file looks like a heat map or a photograph: much of what is set is not the brightest.

    Soft edges do not count: up to a tenth of what is set may be darker. False of JPEG, whose shades are
    traces of the format, and of a mask without anything set. Raises UsageError where it cannot be read.
    """
    if path.suffix.lower() == ".npy":
        values, lossy = _read_array(path, None), False
    else:
        with _opened(path) as file:
            values, lossy = _image_values(file, str(path), None)
    some = values[values > 0]
    return bool(not lossy and some.size and (some != some.max()).mean() > _MOST_SOFT)


def _image_values(source: BinaryIO, name: str, size: Size | None) -> tuple[NDArray[Any], bool]:
    """The highest of the colour channels, and whether the format leaves traces around edges."""
    image, lossy = _read_image(source, name, size)
    pixels = np.asarray(image)
    return pixels.max(axis=2) if pixels.ndim == 3 else pixels, lossy


def read_heat_map(path: Path, size: Size | None = None) -> Floats:
    """A detector's heat map, 0–1, from a grey image of 8 or 16 bits or `.npy`; shape (height, width).

    White is 1. NumPy files hold floats in 0–1, or whole numbers whose type's largest is 1. Raises UsageError
    as `read_mask` does, and for floats that are not in 0–1 or no numbers.
    """
    if path.suffix.lower() == ".npy":
        array = _read_array(path, size)
        values = np.asarray(array, dtype=np.float64)
        if array.dtype.kind in "iu":
            values = values / np.iinfo(array.dtype).max
        if values.size and not (values.min() >= 0 and values.max() <= 1):
            raise UsageError(
                f"{path}: a heat map must be in 0–1, but this one goes from {values.min():g} "
                f"to {values.max():g}",
                remedy="Scale it to 0–1.",
            )
        return values
    with _opened(path) as file:
        image, _ = _read_image(file, str(path), size)
    if image.mode not in _FULL_BY_MODE:
        raise UsageError(
            f"{path}: a heat map must be a grayscale image, but this one has the mode {image.mode}",
            remedy="Save it in grayscale, from black (0) to white (1), or as a .npy file.",
        )
    return np.asarray(image, dtype=np.float64) / _FULL_BY_MODE[image.mode]


def components(mask: Mask, connectivity: Literal[4, 8] = 8) -> tuple[NDArray[np.int32], int]:
    """The connected parts of a mask: 0 outside and 1 to n inside, in the order of reading, and n."""
    from scipy import ndimage  # type: ignore[import-untyped]  # slow to import

    structure = np.ones((3, 3)) if connectivity == 8 else None
    labels, number = ndimage.label(mask, structure=structure)
    return labels, int(number)


def component_crops(mask: Crop, connectivity: Literal[4, 8] = 8) -> list[Crop]:
    """Every connected part as a crop of its own, in the order of reading."""
    from scipy import ndimage  # slow to import

    if not mask.pixels.size:
        return []
    labels, _ = components(mask.pixels, connectivity)
    return [
        Crop(mask.x + place[1].start, mask.y + place[0].start, labels[place] == number)
        for number, place in enumerate(ndimage.find_objects(labels), start=1)
    ]


def decode_rle(rle: Mapping[str, Any], size: Size | None = None) -> Mask:
    """The mask of COCO run lengths: `size` is [height, width], `counts` a list or the compressed text.

    Raises UsageError where they cannot be decoded, do not add up to the pixels of the image, or are not of
    `size`.
    """
    shape = rle.get("size")
    if not (isinstance(shape, list | tuple) and len(shape) == 2 and all(_is_count(each) for each in shape)):
        raise UsageError(f"the size of a run-length mask is [height, width], not {shown(shape)}")
    height, width = shape
    if not height or not width or height * width > MOST_PIXELS:
        raise UsageError(f"a run-length mask of {width:,} × {height:,} pixels cannot be read")
    check_size((width, height), size, "the run-length mask")
    runs = _runs(rle.get("counts"))
    # Of a run beyond the image the sum could come round to its pixels again.
    within = not len(runs) or (runs.min() >= 0 and runs.max() <= height * width)
    total = int(runs.sum()) if within else int(runs.max())
    if total != height * width or not within:
        raise UsageError(
            f"run lengths do not decode: they cover {total:,} pixels, but the image has {height * width:,}"
        )
    values = np.arange(len(runs)) % 2 == 1
    return np.ascontiguousarray(np.repeat(values, runs).reshape(width, height).T)


def encode_rle(mask: Mask) -> dict[str, Any]:
    """COCO run lengths of a mask, with `counts` as compressed text."""
    height, width = mask.shape
    flat = np.concatenate([[False], mask.T.ravel(), [False]])
    edges = np.flatnonzero(flat[1:] != flat[:-1])
    stops = edges if len(edges) and edges[-1] == mask.size else np.append(edges, mask.size)
    runs = np.diff(stops, prepend=0).tolist()
    text = bytearray()
    for place, run in enumerate(runs):
        value = run - runs[place - 2] if place > 2 else run
        while True:
            bits, value = value & 0x1F, value >> 5
            more = value != (-1 if bits & 0x10 else 0)
            text.append((bits | 0x20 * more) + 48)
            if not more:
                break
    return {"size": [height, width], "counts": text.decode("ascii")}


def _runs(counts: object) -> NDArray[np.int64]:
    if isinstance(counts, list):
        if not all(_is_count(each) for each in counts):
            raise UsageError("run lengths are whole numbers from 0")
        return np.array(counts, dtype=np.int64)
    if not isinstance(counts, str):
        raise UsageError(f"`counts` is a list of run lengths or compressed text, not {shown(counts)}")
    codes = np.frombuffer(counts.encode("utf-8", "replace"), dtype=np.uint8).astype(np.int64) - 48
    if ((codes < 0) | (codes > 63)).any() or (len(codes) and codes[-1] & 0x20):
        raise UsageError(f"run lengths do not decode: {shown(counts)} is not a compressed COCO string")
    steps = _numbers(codes)
    # From the fourth on a number is the difference from the one two before it.
    runs = steps.copy()
    runs[1::2] = np.cumsum(steps[1::2])
    runs[2::2] = np.cumsum(steps[2::2])
    return runs


def _numbers(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers of five bits a character, low ones first. 0x20: more follow; 0x10 in the last one: negative."""
    last = np.flatnonzero((codes & 0x20) == 0)
    first = np.concatenate([[0], last[:-1] + 1]) if len(last) else last
    lengths = last - first + 1
    if len(lengths) and lengths.max() > 10:
        raise UsageError("run lengths do not decode: a number of more than 50 bits")
    place = np.arange(len(codes)) - np.repeat(first, lengths)
    bits = (codes & 0x1F) << (5 * place)
    values = np.add.reduceat(bits, first) if len(first) else bits
    return np.where(codes[last] & 0x10, values - (np.int64(1) << (5 * lengths)), values)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_PIXELS


def check_size(found: Size, wanted: Size | None, what: str) -> None:
    if wanted is not None and found != wanted:
        raise UsageError(
            f"{what} is {_sides(found)} pixels, but its image is {_sides(wanted)}",
            remedy="Give a mask of the size of its image; uncanny does not resize masks.",
        )
    if found[0] * found[1] > MOST_PIXELS:
        raise UsageError(f"{what} is {_sides(found)} pixels, more than uncanny can read")


def _sides(size: Size) -> str:
    return f"{side(size[0])} × {side(size[1])}"


def _read_image(source: BinaryIO, name: str, size: Size | None) -> tuple[Image.Image, bool]:
    """The pixels of the first frame, and whether their format changes them."""
    from PIL import Image, UnidentifiedImageError

    from uncanny.images.decode import without_warnings
    from uncanny.images.structure import check_structure

    try:
        check_structure(source)
        with without_warnings(), Image.open(source, formats=_FORMATS) as image:
            check_size(image.size, size, name)
            if image.mode in ("LA", "PA", "RGBA", "La", "RGBa"):
                return image.convert("L" if image.mode in ("LA", "La") else "RGB"), False
            image.load()
            return image.copy(), image.format in _LOSSY
    except ImageError as error:
        raise UsageError(f"{name} cannot be read: {error.message}", remedy=error.remedy) from error
    except UnidentifiedImageError as error:
        raise UsageError(f"{name} is not an image", remedy="Give masks as PNG or .npy files.") from error
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{name} cannot be read: {reason}") from error


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """A regular file, where files may be read from. Raises UsageError."""
    try:
        with open_image_file(path, _MOST_BYTES) as file:
            yield file
    except ImageError as error:
        raise UsageError(f"{path} cannot be read: {error.message}", remedy=error.remedy) from error


def _read_array(path: Path, size: Size | None) -> NDArray[Any]:
    try:
        with _opened(path) as file:
            shape, kind = _declared(file)
            if len(shape) != 2 or kind not in "biuf":
                raise UsageError(f"{path}: a mask must be an array of (height, width), not {shape}")
            # Before any of it is in memory.
            check_size((shape[1], shape[0]), size, str(path))
            file.seek(0)
            array: NDArray[Any] = np.load(file, allow_pickle=False)
            return array
    except (OSError, ValueError, EOFError, SyntaxError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{path} cannot be read: {reason}") from error


def _declared(file: BinaryIO) -> tuple[tuple[int, ...], str]:
    """Shape and kind of numbers by the head of a NumPy file. Raises ValueError for what is none."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, _, numbers = np.lib.format.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, _, numbers = np.lib.format.read_array_header_2_0(file)
    else:
        raise ValueError(f"version {version} of NumPy's format is for arrays with names, not for masks")
    return shape, numbers.kind
