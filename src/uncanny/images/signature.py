"""What a file is by its first bytes, whatever its name says, and whether its container is whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

Format = Literal["JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "AVIF", "HEIC", "JXL"]

MEDIA_TYPES: dict[Format, str] = {
    "JPEG": "image/jpeg",
    "PNG": "image/png",
    "WEBP": "image/webp",
    "GIF": "image/gif",
    "BMP": "image/bmp",
    "TIFF": "image/tiff",
    "AVIF": "image/avif",
    "HEIC": "image/heic",
    "JXL": "image/jxl",
}

# Suffixes of images that nothing here reads, for messages: some of these formats begin with no mark.
UNREAD_SUFFIXES: Mapping[str, str] = {
    **dict.fromkeys((".jp2", ".j2k", ".jpx", ".jpf"), "JPEG 2000"),
    **dict.fromkeys((".svg", ".svgz"), "SVG"),
    **dict.fromkeys((".psd", ".psb"), "Photoshop"),
    **dict.fromkeys((".ppm", ".pgm", ".pbm", ".pnm"), "Netpbm"),
    **dict.fromkeys((".ico", ".cur"), "ICO"),
    **{
        ".eps": "PostScript",
        ".exr": "OpenEXR",
        ".hdr": "Radiance",
        ".tga": "Targa",
        ".qoi": "QOI",
        ".pcx": "PCX",
    },
}
# A camera's raw file often begins as a TIFF whose first picture is a small preview.
RAW_SUFFIXES = frozenset({".dng", ".nef", ".cr2", ".cr3", ".arw", ".orf", ".rw2", ".raf", ".pef", ".srw"})

# As much of a file as its kind is known by.
MOST_OF_A_MARK: Final = 512
_STARTS: tuple[tuple[bytes, Format], ...] = (
    (b"\xff\xd8\xff", "JPEG"),
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"GIF87a", "GIF"),
    (b"GIF89a", "GIF"),
    (b"II*\0", "TIFF"),
    (b"MM\0*", "TIFF"),
    (b"II+\0", "TIFF"),
    (b"MM\0+", "TIFF"),
    (b"\xff\x0a", "JXL"),
    (b"\0\0\0\x0cJXL ", "JXL"),
)
_BMP_HEADERS = frozenset({12, 16, 40, 52, 56, 64, 108, 124})
_OTHER_IMAGES: tuple[tuple[bytes, str], ...] = (
    (b"\0\0\0\x0cjP  ", "JPEG 2000"),
    (b"\xff\x4f\xff\x51", "JPEG 2000"),
    (b"8BPS", "Photoshop"),
    (b"\0\0\1\0", "ICO"),
    (b"%!PS", "PostScript"),
    (b"v/1\x01", "OpenEXR"),
    (b"qoif", "QOI"),
)
_NO_IMAGES: tuple[tuple[bytes, str], ...] = (
    (b"PK\3\4", "a ZIP archive"),
    (b"PK\5\6", "a ZIP archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"%PDF", "a PDF document"),
    (b"PAR1", "a Parquet file, which is read where its name ends in .parquet"),
    (b"ARROW1", "an Arrow file, which is read where its name ends in .arrow"),
    (b"<!doctype html", "an HTML page"),
    (b"<html", "an HTML page"),
    (b"version https://git-lfs", "a Git LFS pointer"),
    (b"\xef\xbb\xbf\x89png", "a PNG with a byte order mark in front"),
)
_HEIF_BRANDS = frozenset({b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis", b"mif1", b"msf1"})


def sniff(data: bytes) -> Format | None:
    """The format that `data` starts as, of those that can be read, with a plugin at least; None for others.

    What comes after may still be broken.
    """
    for start, name in _STARTS:
        if data.startswith(start):
            return name
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WEBP"
    if data[:2] == b"BM" and int.from_bytes(data[14:18], "little") in _BMP_HEADERS:
        return "BMP"
    brands = _brands(data)
    if brands & {b"avif", b"avis"}:
        return "AVIF"
    return "HEIC" if brands & _HEIF_BRANDS else None


def other_image(data: bytes) -> str | None:
    """Name of an image format that is recognised but not read, None for anything else."""
    for start, name in _OTHER_IMAGES:
        if data.startswith(start):
            return name
    if b"<svg" in data[:1024].lower():
        return "SVG"
    return None


def no_image(data: bytes) -> str | None:
    """Name of something known that is no image, None for anything else."""
    head = data[:64].lstrip().lower()
    for start, name in _NO_IMAGES:
        if head.startswith(start.lower()):
            return name
    return None if data.strip(b"\0") else "a file of zeros"


def look_of(data: bytes) -> str:
    """What a file that is no image seems to be, in words."""
    known = no_image(data)
    if known is not None:
        return known
    try:
        data[:512].decode("ascii")
    except UnicodeDecodeError:
        return "something else"
    return "a text file"


def looks_cut_off(data: bytes, name: Format) -> bool:
    """Whether the container says that bytes are missing at the end; False where it says nothing."""
    if name == "PNG":
        return b"IEND" not in data
    if name == "JPEG":
        return b"\xff\xd9" not in data
    if name == "GIF":
        return not data.rstrip(b"\0").endswith(b";")
    if name == "WEBP":
        return int.from_bytes(data[4:8], "little") + 8 > len(data)
    if name == "BMP":
        return int.from_bytes(data[2:6], "little") > len(data)
    if name == "TIFF":
        order: Literal["little", "big"] = "little" if data[:2] == b"II" else "big"
        at = data[8:16] if b"+" in data[2:4] else data[4:8]
        return int.from_bytes(at, order) >= len(data)
    if name == "JXL" and data.startswith(b"\xff\x0a"):
        return False
    return _boxes_end(data) > len(data)


def _brands(data: bytes) -> set[bytes]:
    if data[4:8] != b"ftyp":
        return set()
    box = data[8 : min(int.from_bytes(data[:4], "big"), 256)]
    return {box[at : at + 4] for at in range(0, len(box), 4) if at != 4}


def _boxes_end(data: bytes) -> int:
    at = 0
    while at + 8 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        if size == 1:
            size = int.from_bytes(data[at + 8 : at + 16], "big")
        if size < 8:
            return at
        at += size
    return at
