"""Names of uploaded files made safe: what they say is kept where no file system, shell or page minds it."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

from uncanny.errors import writable
from uncanny.images.discover import IMAGE_SUFFIXES
from uncanny.images.signature import RAW_SUFFIXES, UNREAD_SUFFIXES, Format

# Of a name with its folders, in characters, and of each part in bytes: file systems take 255.
MOST_CHARACTERS: Final = 180
MOST_PART_BYTES: Final = 150
MOST_FOLDERS: Final = 8
_UNSAFE: Final = frozenset("<>:\"|?*'`$&;%#\\/")
# Windows takes these for devices, whatever suffix they have.
_DEVICES: Final = frozenset(
    {"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"}
    | {f"{device}{digit}" for device in ("COM", "LPT") for digit in "0123456789¹²³"}
)
_SUFFIX_OF: Final[dict[Format, str]] = {
    "JPEG": ".jpg",
    "PNG": ".png",
    "WEBP": ".webp",
    "GIF": ".gif",
    "BMP": ".bmp",
    "TIFF": ".tif",
    "AVIF": ".avif",
    "HEIC": ".heic",
    "JXL": ".jxl",
}
# Under these an image is found in its folder, and decoded.
READ_SUFFIXES: Final = IMAGE_SUFFIXES - UNREAD_SUFFIXES.keys() - RAW_SUFFIXES


def safe_name(name: str, fallback: str = "file") -> str:
    """`name` as a path that stays inside its folder, on any system; `fallback` where nothing is left of it.

    Folders are kept. Of `..`, drives, control characters, hidden names and Windows' devices nothing is.
    """
    text = unicodedata.normalize("NFC", writable(name))
    parts = [part for part in map(_safe_part, text.replace("\\", "/").split("/")) if part]
    parts = parts[-MOST_FOLDERS:] or [fallback]
    while len("/".join(parts)) > MOST_CHARACTERS:
        parts = parts[1:] if len(parts) > 1 else [_cut(parts[0], MOST_CHARACTERS // 4)]
    return "/".join(parts)


def image_name(name: str, format: Format) -> str:
    """The same for an image, with a suffix under which it is found in its folder and read."""
    safe = safe_name(name, "image")
    if PurePosixPath(safe).suffix.lower() in READ_SUFFIXES:
        return safe
    return safe + _SUFFIX_OF[format]


def numbered(name: str) -> Iterator[str]:
    """`name` and, where that is taken, `name-2` and so on before the suffix."""
    yield name
    path = PurePosixPath(name)
    number = 2
    while True:
        yield str(path.with_name(f"{path.stem}-{number}{path.suffix}"))
        number += 1


def _safe_part(part: str) -> str:
    kept = "".join(
        "_" if char in _UNSAFE or unicodedata.category(char)[0] == "C" else " " if char.isspace() else char
        for char in part
    )
    kept = _cut(kept.strip(" ").rstrip(". "), MOST_PART_BYTES).rstrip(". ")
    if not kept:
        return ""
    if kept[0] in ".-~" or kept.partition(".")[0].rstrip(" ").upper() in _DEVICES:
        kept = f"_{kept}"
    return kept


def _cut(part: str, most_bytes: int) -> str:
    """The part with its suffix in so many bytes of UTF-8, its end left out before the suffix."""
    if len(part.encode()) <= most_bytes:
        return part
    stem, dot, suffix = part.rpartition(".")
    if not stem or len(suffix.encode()) > 10:
        stem, dot, suffix = part, "", ""
    room = most_bytes - len((dot + suffix).encode())
    return stem.encode()[:room].decode(errors="ignore") + dot + suffix
