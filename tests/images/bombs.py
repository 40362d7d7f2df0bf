"""Files of pictures that are built to keep a decoder busy, and that declare few pixels."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any

from PIL import Image


def encoded(format: str, size: tuple[int, int] = (64, 48), mode: str = "RGB", **options: Any) -> bytes:
    file = BytesIO()
    Image.new(mode, size, 128 if mode == "L" else (128, 128, 128)).save(file, format, **options)
    return file.getvalue()


def jpeg_segments(data: bytes) -> list[tuple[int, bytes]]:
    """The marked parts of a JPEG, each scan with its data, without the end."""
    parts, at = [], 2
    while data[at + 1] != 0xD9:
        end = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        if data[at + 1] == 0xDA:
            while not (data[end] == 0xFF and data[end + 1] not in (0, *range(0xD0, 0xD8))):
                end += 1
        parts.append((data[at + 1], data[at:end]))
        at = end
    return parts


def jpeg_of_scans(scans: int, size: tuple[int, int] = (64, 48), between: bytes = b"") -> bytes:
    """A progressive JPEG with so many scans, most of which say that nothing changes, in some bytes each."""
    parts = jpeg_segments(encoded("JPEG", size, progressive=True))
    places = [place for place, (kind, _) in enumerate(parts) if kind == 0xDA]
    # The last of them refines what is no average of a block; its table of codes is ahead of it.
    last = max(place for place in places if parts[place][1][6 + 2 * (parts[place][1][4] - 1) + 1] != 0)
    again = parts[last - 1][1] + parts[last][1]
    more = max(0, scans - len(places))
    return b"\xff\xd8" + b"".join(part for _, part in parts) + (between + again) * more + b"\xff\xd9"


def chunk(kind: bytes, data: bytes = b"") -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(before: bytes = b"", pixels: bytes | None = None, after: bytes = b"") -> bytes:
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 64, 64, 8, 0, 0, 0, 0))
    body = chunk(b"IDAT", zlib.compress(b"\0" * 65 * 64)) if pixels is None else pixels
    return b"\x89PNG\r\n\x1a\n" + head + before + body + after + chunk(b"IEND")


def gif(before: bytes = b"", blocks: bytes | None = None) -> bytes:
    """A GIF of 8 × 8 with `before` ahead of its picture, whose data are `blocks`."""
    head = b"GIF89a" + struct.pack("<HHBBB", 8, 8, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
    data = encoded("GIF", (8, 8))
    start = data.index(b",", 13)
    body = (
        data[start:-1] if blocks is None else b"," + struct.pack("<HHHHB", 0, 0, 8, 8, 0) + b"\x02" + blocks
    )
    return head + before + body + b";"


def tiff(tags: Mapping[int, tuple[int, int]], held: int, strips: int = 1, big: bool = False) -> bytes:
    """A gray TIFF one pixel wide with `held` bytes at its end; `tags` lead there: type and count by tag."""
    known = {256: 1, 257: strips, 258: 8, 259: 1, 262: 1, 277: 1, 278: 1}
    entries: dict[int, tuple[int, int, int]] = {tag: (4, 1, value) for tag, value in known.items()}
    many = dict.fromkeys((273, 279), (4, strips)) if strips > 1 else {}
    for tag in () if many else (273, 279):
        entries[tag] = (4, 1, 8 if tag == 273 else 1)
    everything = {**many, **tags}
    size = 20 if big else 12
    start = 16 if big else 8
    count = len(entries.keys() | everything.keys())
    end = start + (8 if big else 2) + size * count + (8 if big else 4)
    entries |= {tag: (kind, number, end) for tag, (kind, number) in everything.items()}
    layout = "<HHQQ" if big else "<HHLL"
    table = b"".join(struct.pack(layout, tag, *entries[tag]) for tag in sorted(entries))
    head = b"II+\0\x08\0\0\0" + struct.pack("<Q", start) if big else b"II*\0" + struct.pack("<L", start)
    directory = struct.pack("<Q" if big else "<H", count) + table + b"\0" * (8 if big else 4)
    return head + directory + struct.pack("<L", 8) * (held // 4)


def bmp_of_runs(data: bytes, size: tuple[int, int] = (1000, 1000)) -> bytes:
    head = struct.pack("<IiiHHIIiiII", 40, *size, 1, 8, 1, len(data), 0, 0, 256, 0)
    start = 14 + 40 + 1024
    return b"BM" + struct.pack("<IHHI", start + len(data), 0, 0, start) + head + b"\0" * 1024 + data


def _jpeg_with(parts: bytes) -> bytes:
    data = encoded("JPEG")
    return data[:2] + parts + data[2:]


def _of_kind(kind: int) -> bytes:
    return next(part for each, part in jpeg_segments(encoded("JPEG")) if each == kind)


def _segment(kind: int, data: bytes) -> bytes:
    return bytes([0xFF, kind]) + struct.pack(">H", len(data) + 2) + data


MEGABYTE = zlib.compress(b"x" * 1_000_000, 9)
# By what is wrong with it, as the message says: how it is made.
BOMBS: Mapping[str, tuple[str, Callable[[], bytes]]] = {
    "3,000 scans": ("100 scans", lambda: jpeg_of_scans(3000)),
    "scans behind a false end": (
        "100 scans",
        lambda: jpeg_of_scans(3000, between=_segment(0xFE, b"\xff\xd9")),
    ),
    "scans with restarts between": ("100 scans", lambda: jpeg_of_scans(3000, between=b"\xff\xd0\xff\xff")),
    "empty comments": ("10,000 segments", lambda: _jpeg_with(_segment(0xFE, b"") * 1_000_000)),
    "segments between scans": (
        "10,000 segments",
        lambda: jpeg_of_scans(20, between=_segment(0xFE, b"") * 100_000),
    ),
    "markers without length": ("10,000 segments", lambda: _jpeg_with(b"\xff\x01" * 1_000_000)),
    "starts within a start": ("10,000 segments", lambda: _jpeg_with(b"\xff\xd8" * 1_000_000)),
    "markers without length between scans": (
        "10,000 segments",
        lambda: b"\xff\xd8\xff\xda\0\x02" + b"\xff\x01" * 4_000_000,
    ),
    "tables of codes": ("10,000 segments", lambda: _jpeg_with(_of_kind(0xC4) * 100_000)),
    "tables of numbers": ("bytes of quantization", lambda: _jpeg_with(_of_kind(0xDB) * 10_000)),
    "EXIF without end": (
        "bytes of EXIF",
        lambda: _jpeg_with(_segment(0xE1, b"Exif\0\0" + b"\0" * 65_000) * 300),
    ),
    "tags of EXIF that overlap": (
        "bytes in its directory",
        lambda: _jpeg_with(
            _segment(0xE1, b"Exif\0\0" + tiff({9000 + n: (7, 60_000) for n in range(300)}, 60_000))
        ),
    ),
    "resources": (
        "bytes of resources",
        lambda: _jpeg_with(_segment(0xED, b"Photoshop 3.0\0" + b"8BIM\0\1\0\0\0\0\0\0" * 5459) * 300),
    ),
    "filling": ("bytes between its segments", lambda: _jpeg_with(b"\xff" * 10_000_000)),
    "junk": ("bytes between its segments", lambda: _jpeg_with(_segment(0xFE, b"") + b"\0" * 10_000_000)),
    "escaped junk": (
        "bytes between its segments",
        lambda: _jpeg_with(_segment(0xFE, b"") + b"\xff\0" * 5_000_000),
    ),
    "chunks ahead": ("100,000 chunks", lambda: png(before=chunk(b"tEXt", b"a\0") * 300_000)),
    "empty pieces of pixels": ("100,000 chunks", lambda: png(pixels=chunk(b"IDAT") * 300_000)),
    "frames": ("100,000 chunks", lambda: png(after=chunk(b"fdAT", b"\0\0\0\0") * 300_000)),
    "color profiles": ("10 color profiles", lambda: png(before=chunk(b"iCCP", b"a\0\0" + MEGABYTE) * 1000)),
    "comments of a GIF": ("500,000 blocks", lambda: gif(before=b"\x21\xfe\x01c\0" * 600_000)),
    "controls of a GIF": ("500,000 blocks", lambda: gif(before=b"\x21\xf9\x04\0\0\0\0\0" * 600_000)),
    "pixels in blocks of a byte": ("500,000 blocks", lambda: gif(blocks=b"\x01\x00" * 600_000 + b"\0")),
    "strips": ("400,000 values", lambda: tiff({}, 8_000_000, strips=1_000_000)),
    "bits of a sample": ("400,000 values", lambda: tiff({258: (3, 2_000_000)}, 4_000_000)),
    "tags that overlap": (
        "bytes in its directory",
        lambda: tiff({9000 + n: (7, 1_000_000) for n in range(500)}, 1_000_000),
    ),
    "tags of a large TIFF that overlap": (
        "bytes in its directory",
        lambda: tiff({9000 + n: (7, 1_000_000) for n in range(500)}, 1_000_000, big=True),
    ),
    "entries of a directory": ("4,096 entries", lambda: tiff({9000 + n: (4, 1) for n in range(9000)}, 8)),
    "runs of a BMP": ("4,000,000 bytes of run lengths", lambda: bmp_of_runs(b"\x01\x00" * 3_000_000)),
}
