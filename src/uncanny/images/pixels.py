"""Decoded pixels as plain ones: upright, 8 bits a sample, gray or RGB, with or without alpha."""

from __future__ import annotations

from io import BytesIO

from PIL import Image, ImageCms

from uncanny.errors import ImageError
from uncanny.images.decode import Decoded

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
        mode = _plain_mode(image)
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


def _plain_mode(image: Image.Image) -> str:
    if image.mode in ("1", "L", "LA", "La"):
        return "LA" if image.has_transparency_data else "L"
    return "RGBA" if image.has_transparency_data else "RGB"


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
