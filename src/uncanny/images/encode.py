"""From decoded pixels to the bytes to send.

`plain` makes of whatever was decoded 8-bit gray or RGB that is the right way up; `encode` writes that within
the provider's limits, lossless wherever it fits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from io import BytesIO
from typing import Literal

from PIL import Image, ImageCms

from uncanny.errors import ImageError, UsageError
from uncanny.images.decode import Decoded
from uncanny.images.signature import MEDIA_TYPES, Format
from uncanny.wording import option

Target = Literal["PNG", "JPEG", "WEBP"]

# EXIF orientation → what turns the stored pixels upright (EXIF 2.3, tag 0x0112).
_TURNS: dict[int, Image.Transpose] = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_PLAIN_MODES = frozenset({"L", "LA", "RGB", "RGBA"})
_ICC_SPACES = {"L": b"GRAY", "LA": b"GRAY", "RGB": b"RGB ", "RGBA": b"RGB "}

_LONGEST_SIDE: dict[Target, int] = {"PNG": 2**31 - 1, "JPEG": 65_500, "WEBP": 16_383}
# Each try at a smaller picture aims below the limit, as size does not fall exactly with the pixels.
_AIM = 0.95
_LEAST_STEP = 0.9


@dataclass(frozen=True, slots=True)
class PixelPolicy:
    """What the user asks. The default sends every file's own bytes wherever the provider takes them.

    `max_side` is the longest side in pixels, None for no limit. `format` "keep" converts only what has to be
    converted. `jpeg_quality` is 1–100 and used only where a JPEG is written. `max_pixels` is width × height
    as the file declares it, checked before anything is decoded; `max_file_bytes` is checked before the file
    is read. Raises `UsageError` for values out of range.
    """

    max_side: int | None = None
    format: Literal["keep", "png", "jpeg"] = "keep"
    jpeg_quality: int = 95
    max_pixels: int = 100_000_000
    max_file_bytes: int = 100 * 2**20

    def __post_init__(self) -> None:
        if self.format not in ("keep", "png", "jpeg"):
            raise UsageError(f"{option('image_format')} {self.format!r} is not one of keep, png, jpeg")
        if not 1 <= self.jpeg_quality <= 100:
            raise UsageError(f"{option('jpeg_quality')} must be 1 to 100, not {self.jpeg_quality!r}")
        for name, value in (
            ("max_side", self.max_side),
            ("max_pixels", self.max_pixels),
            ("max_file_bytes", self.max_file_bytes),
        ):
            if value is not None and value < 1:
                raise UsageError(f"{option(name)} must be at least 1, not {value!r}")


@dataclass(frozen=True, slots=True)
class SendLimits:
    """What the provider takes: media types such as `image/png`, bytes and longest side; None is no limit."""

    media_types: frozenset[str]
    max_bytes: int | None
    max_side: int | None


@dataclass(frozen=True, slots=True)
class Encoded:
    """Bytes with the format and size in pixels they have, and a token for each change made."""

    data: bytes
    format: Target
    width: int
    height: int
    changes: tuple[str, ...]


def plain(decoded: Decoded) -> tuple[Image.Image, bytes | None, list[str]]:
    """Plain pixels, the ICC profile that still describes them, and a token for each change made.

    Raises `ImageError` of kind "unsupported" for samples without a fixed range (32-bit and float).
    """
    image, changes = decoded.image, []
    profile = image.info.get("icc_profile") or None
    if decoded.frames:
        changes.append("first_frame")
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        image = _from_16_bit(decoded)
    elif decoded.depth == 16 and isinstance(image.info.get("transparency"), tuple):
        # Pillow cuts the samples to 8 bits, but not the colour that stands for transparent.
        image.info["transparency"] = tuple(value >> 8 for value in image.info["transparency"])
    if decoded.depth > 8:
        changes.append(f"depth:{decoded.depth}->8")
    if image.mode not in _PLAIN_MODES or "transparency" in image.info:
        gray, clear = image.mode in ("1", "L", "LA", "La"), image.has_transparency_data
        mode = ("LA" if clear else "L") if gray else ("RGBA" if clear else "RGB")
        changes.append(f"mode:{image.mode}->{mode}")
        image, profile, tokens = _convert(image, mode, profile)
        changes += tokens
    if profile is not None and profile[16:20] != _ICC_SPACES[image.mode]:
        profile = None
        changes.append("icc:dropped")
    if decoded.turned in _TURNS:
        changes.append(f"orientation:{decoded.turned}")
    if decoded.orientation in _TURNS:
        image = image.transpose(_TURNS[decoded.orientation])
    return image, profile, changes


def _convert(
    image: Image.Image, mode: str, profile: bytes | None
) -> tuple[Image.Image, bytes | None, list[str]]:
    if image.mode != "CMYK" or profile is None:
        return image.convert(mode), profile, []
    try:
        source = ImageCms.ImageCmsProfile(BytesIO(profile))
        converted = ImageCms.profileToProfile(image, source, ImageCms.createProfile("sRGB"), outputMode="RGB")
    except (ImageCms.PyCMSError, OSError, ValueError):
        converted = None
    if converted is None:
        return image.convert(mode), None, ["icc:dropped"]
    return converted, None, ["icc:CMYK->sRGB"]


def _from_16_bit(decoded: Decoded) -> Image.Image:
    image = decoded.image
    if decoded.depth > 16 or image.mode == "F":
        raise ImageError(
            f"{decoded.format} with {decoded.depth}-bit samples (mode {image.mode}) has no fixed range",
            kind="unsupported",
            remedy="Convert it to 8 or 16 bits a sample.",
        )
    top = 2**decoded.depth - 1
    # Pillow's own conversion clips or cuts; a table scales exactly, rounded to nearest.
    table = [min(255, (value * 255 + top // 2) // top) for value in range(65536)]
    if decoded.white_is_zero:
        table = [255 - value for value in table]
    wide = image.convert("I")
    gray = wide.point(table, "L")
    clear = gray.info.pop("transparency", None)
    if isinstance(clear, int):
        gray.putalpha(wide.point([0 if value == clear else 255 for value in range(65536)], "L"))
    return gray


def encode(
    image: Image.Image,
    profile: bytes | None,
    source: Format,
    source_bytes: int,
    policy: PixelPolicy,
    limits: SendLimits,
) -> Encoded:
    """Encode within all limits, reduced only as far as they ask for; the same input gives the same bytes.

    Raises `ImageError` where the provider takes none of the formats written, or its limit cannot be met.
    """
    targets = _targets(policy, limits)
    if source == "JPEG" and len(targets) > 1 and _over(source_bytes, limits):
        # A PNG of what was a JPEG is larger still.
        targets = targets[1:]
    side = min((each for each in (policy.max_side, limits.max_side) if each is not None), default=None)
    for target in targets:
        size = _within(image.size, _least(side, _LONGEST_SIDE[target]))
        done = _write(image, size, target, profile, source, policy.jpeg_quality)
        if not _over(len(done.data), limits):
            return done
    while _over(len(done.data), limits) and size != (1, 1):
        assert limits.max_bytes is not None
        factor = min(_LEAST_STEP, _AIM * math.sqrt(limits.max_bytes / len(done.data)))
        size = _within(image.size, max(1, int(max(size) * factor)))
        done = _write(image, size, target, profile, source, policy.jpeg_quality)
    if _over(len(done.data), limits):
        raise ImageError(
            f"the picture cannot be made smaller than {limits.max_bytes} bytes, the provider's limit",
            kind="too_large",
        )
    return done


def _targets(policy: PixelPolicy, limits: SendLimits) -> list[Target]:
    order: list[Target] = ["JPEG"] if policy.format == "jpeg" else ["PNG", "JPEG"]
    wanted = [name for name in order if MEDIA_TYPES[name] in limits.media_types]
    rest: list[Target] = ["PNG", "JPEG", "WEBP"]
    wanted = wanted or [name for name in rest if MEDIA_TYPES[name] in limits.media_types][:1]
    if not wanted:
        raise ImageError(
            f"the provider takes none of PNG, JPEG and WebP, only {', '.join(sorted(limits.media_types))}",
            kind="unsupported",
        )
    return wanted


def _write(
    image: Image.Image,
    size: tuple[int, int],
    target: Target,
    profile: bytes | None,
    source: Format,
    quality: int,
) -> Encoded:
    changes = []
    if size != image.size:
        changes.append(f"downscale:{image.width}x{image.height}->{size[0]}x{size[1]}")
        image = image.resize(size, Image.Resampling.LANCZOS)
    if target == "JPEG" and image.mode in ("LA", "RGBA"):
        changes.append("alpha:flattened-white")
        image = on_white(image)
    if target == "WEBP" and image.mode in ("L", "LA"):
        # WebP has no gray; Pillow would convert in silence.
        wide = "RGB" if image.mode == "L" else "RGBA"
        changes.append(f"mode:{image.mode}->{wide}")
        image, profile = image.convert(wide), None
    if target != source:
        changes.append(f"convert:{source}->{target}")
    if target == "JPEG":
        changes.append(f"jpeg-quality:{quality}")
    data = _bytes_of(image, target, profile, quality)
    return Encoded(data, target, size[0], size[1], tuple(changes))


def _bytes_of(image: Image.Image, target: Target, profile: bytes | None, quality: int) -> bytes:
    # What the file said about itself (EXIF, comments, places) is not part of the picture and stays behind.
    image.info = {}
    out = BytesIO()
    if target == "PNG":
        image.save(out, "PNG", compress_level=6, icc_profile=profile)
    elif target == "JPEG":
        image.save(out, "JPEG", quality=quality, subsampling=0, icc_profile=profile or b"")
    else:
        image.save(out, "WEBP", lossless=True, quality=80, method=4, exact=True, icc_profile=profile or b"")
    return out.getvalue()


def on_white(image: Image.Image) -> Image.Image:
    """The picture without alpha: what is transparent shows white."""
    gray = image.mode == "LA"
    white = Image.new("RGBA", image.size, "white")
    flat = Image.alpha_composite(white, image.convert("RGBA"))
    return flat.convert("L" if gray else "RGB")


def _within(size: tuple[int, int], side: int) -> tuple[int, int]:
    longest = max(size)
    if longest <= side:
        return size
    width, height = (max(1, round(each * side / longest)) for each in size)
    return width, height


def _least(side: int | None, other: int) -> int:
    return other if side is None else min(side, other)


def _over(size: int, limits: SendLimits) -> bool:
    return limits.max_bytes is not None and size > limits.max_bytes


def png_bytes(image: Image.Image, compress_level: int = 6) -> bytes:
    """The bytes of a PNG file of an image as it is; level 1 is quick and large, 9 slow and small."""
    out = BytesIO()
    image.save(out, "PNG", compress_level=compress_level)
    return out.getvalue()
