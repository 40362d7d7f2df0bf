"""How a picture's file is built, counted before anything decodes it.

A file of some kilobytes can keep a decoder busy for minutes without declaring many pixels: a JPEG by scans
over the same pixels, a PNG by empty chunks, a TIFF by a table of a million strips. No file that a program
writes to be looked at comes near the limits here; what is above them was made to cost time or memory, and is
refused.
"""

from __future__ import annotations

import os
import re
import struct
from io import BytesIO
from typing import BinaryIO, Final, NoReturn

from uncanny.errors import ImageError
from uncanny.images.signature import MOST_OF_A_MARK, Format, sniff

# Each goes over all pixels. Encoders make about ten, and at most a few dozen.
MOST_SCANS: Final = 100
# Markers of a JPEG before and between its scans, with a part behind them or without one. With 64 kB each, the
# parts hold more than a file may have.
_MOST_SEGMENTS: Final = 10_000
# Bytes of what decoders read piece by piece: quantization tables, EXIF that goes over several segments,
# Photoshop's resources, filling between segments.
_MOST_TABLES, _MOST_EXIF, _MOST_RESOURCES, _MOST_FILLING = 2**16, 2**20, 2**23, 2**16
_MOST_CHUNKS: Final = 100_000
# Of profiles packed in PNG chunks one is allowed; each may unpack to a megabyte.
_MOST_PROFILES: Final = 10
# Blocks of a GIF up to its second picture. They are of 255 bytes, so that these are of 120 MB.
_MOST_BLOCKS: Final = 500_000
# Entries of a TIFF's directory, and numbers in all of them: two for each strip or tile.
_MOST_ENTRIES, _MOST_VALUES = 4_096, 400_000
_MOST_RUN_BYTES: Final = 4_000_000
_SMALL_BLOCK, _BLOCK = 1 << 12, 1 << 20
_REMEDY: Final = "If it is a real picture, save it anew with another program."
# In the data of a scan a marker is no zero, no restart and no filling.
_MARKER: Final = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")
_WITHOUT_LENGTH: Final = frozenset(bytes([kind]) for kind in (0x01, *range(0xD0, 0xD9)))
_SIZES: Final = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4}
_SIZES_BIG: Final = {**_SIZES, 16: 8, 17: 8, 18: 8}
_BYTES: Final = frozenset({1, 2, 6, 7})


def check_structure(file: BinaryIO, name: Format | None = None, *, scans: bool = True) -> None:
    """Raises `ImageError` of kind "bomb" for a file that is built to be costly. Its place is the start after.

    What is broken is left to the decoder, which says so. `name` is its format, where that is known. Without
    `scans` only what a decoder reads before the pixels is looked at, which does not take reading all of it.
    """
    file.seek(0)
    if name is None:
        name = sniff(file.read(MOST_OF_A_MARK))
        file.seek(0)
    try:
        match name:
            case "JPEG":
                _check_jpeg(file, scans=scans)
            case "PNG":
                _check_png(file)
            case "GIF":
                _check_gif(file)
            case "TIFF":
                check_directory(file)
            case "BMP":
                _check_bmp(file)
            case _:
                pass  # read by libraries that bound themselves what a header may ask for
    except (struct.error, IndexError, EOFError):
        pass  # cut off
    finally:
        file.seek(0)


def check_directory(file: BinaryIO) -> None:
    """The same for a TIFF, or for EXIF, which is built as one: tags must not hold more than the file does."""
    head = file.read(16)
    order = "<" if head[:2] == b"II" else ">"
    big = head[2:4] in (b"+\0", b"\0+")
    size = file.seek(0, os.SEEK_END)
    (at,) = struct.unpack(order + "Q", head[8:16]) if big else struct.unpack(order + "L", head[4:8])
    if at >= size:
        return
    file.seek(at)
    (count,) = struct.unpack(order + "Q", file.read(8)) if big else struct.unpack(order + "H", file.read(2))
    if count > _MOST_ENTRIES:
        _refuse(_MOST_ENTRIES, "entries in its directory")
    sizes, layout, length, small = (_SIZES_BIG, "HHQQ", 20, 8) if big else (_SIZES, "HHLL", 12, 4)
    entries = file.read(length * count)
    held, values = 0, 0
    for _, kind, number, place in struct.iter_unpack(
        order + layout, entries[: len(entries) // length * length]
    ):
        taken = number * sizes.get(kind, 1)
        # What is behind the end of the file is not read, however much it is said to be.
        if taken > small and place + taken <= size:
            held += taken
            values += 0 if kind in _BYTES else number
    if held > 2 * size + _BLOCK:
        _refuse(2 * size + _BLOCK, "bytes in its directory, more than twice its own")
    if values > _MOST_VALUES:
        _refuse(_MOST_VALUES, "values in its directory")


def _check_jpeg(file: BinaryIO, *, scans: bool) -> None:
    """Segments up to the first scan, and then the markers of what follows."""
    read, at, segments, filling = file.read, 2, 0, 0
    tables, resources, exif = 0, 0, bytearray()
    while True:
        file.seek(at)
        kind, marked = read(1), False
        # Decoders look for the next marker in whatever is between.
        while kind == b"\xff" or (kind and not marked) or kind == b"\0":
            filling += not (kind == b"\xff" and not marked)
            if filling > _MOST_FILLING:
                _refuse(_MOST_FILLING, "bytes between its segments")
            marked = kind == b"\xff"
            kind = read(1)
        at = file.tell()
        if kind in (b"", b"\xd9", b"\xda"):
            break
        segments += 1
        if segments > _MOST_SEGMENTS:
            _refuse(_MOST_SEGMENTS, "segments")
        if kind in _WITHOUT_LENGTH:
            continue
        (length,) = struct.unpack(">H", read(2))
        at += max(length, 2)
        if kind == b"\xdb":
            tables += length
            if tables > _MOST_TABLES:
                _refuse(_MOST_TABLES, "bytes of quantization tables")
        elif kind == b"\xed":
            resources += length
            if resources > _MOST_RESOURCES:
                _refuse(_MOST_RESOURCES, "bytes of resources")
        elif kind == b"\xe1" and read(6) == b"Exif\0\0":
            exif += read(max(0, length - 8))
            if len(exif) > _MOST_EXIF:
                _refuse(_MOST_EXIF, "bytes of EXIF")
    if exif:
        check_directory(BytesIO(exif))
    if scans and kind == b"\xda":
        _count_scans(file, at)


def _count_scans(file: BinaryIO, at: int) -> None:
    """From behind the marker of the first one on. Raises `ImageError`."""
    markers = _Markers(file)
    scans, segments, kind = 1, 0, b"\xda"
    while True:
        if kind not in _WITHOUT_LENGTH:
            file.seek(at)
            (length,) = struct.unpack(">H", file.read(2))
            at += max(length, 2)
        kind, at = markers.next(at)
        if kind in (b"", b"\xd9"):
            return
        scans += kind == b"\xda"
        segments += 1
        if scans > MOST_SCANS:
            _refuse(MOST_SCANS, "scans")
        if segments > _MOST_SEGMENTS:
            _refuse(_MOST_SEGMENTS, "segments")


class _Markers:
    """The markers of a file. The block that was read last is kept: the next marker is often in it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._start, self._block = file, 0, b""

    def next(self, at: int) -> tuple[bytes, int]:
        """The first marker at or after a place, empty at the end of the file, and the place behind it."""
        size = _SMALL_BLOCK
        while True:
            if not 0 <= at - self._start < len(self._block) - 1:
                self._file.seek(at)
                self._start, self._block = at, self._file.read(size)
                # Between two scans of a bomb there are some bytes, in those of a picture megabytes.
                size = min(2 * size, _BLOCK)
            if len(self._block) < 2:
                return b"", at
            if (found := _MARKER.search(self._block, at - self._start)) is not None:
                return self._block[found.start() + 1 : found.end()], self._start + found.end()
            # The last byte may be the first of a marker.
            at = self._start + len(self._block) - 1


def _check_png(file: BinaryIO) -> None:
    at, chunks, profiles = 8, 0, 0
    while True:
        file.seek(at)
        size, kind = struct.unpack(">L4s", file.read(8))
        if kind == b"IEND":
            return
        chunks += 1
        profiles += kind == b"iCCP"
        if chunks > _MOST_CHUNKS:
            _refuse(_MOST_CHUNKS, "chunks")
        if profiles > _MOST_PROFILES:
            _refuse(_MOST_PROFILES, "color profiles")
        at += size + 12


def _check_gif(file: BinaryIO) -> None:
    """Up to the second picture, which is looked for to know whether it is an animation."""
    file.seek(10)
    flags = file.read(3)[0]
    file.seek(13 + (3 << (flags & 7) + 1 if flags & 0x80 else 0))
    read, pictures, blocks = file.read, 0, 0
    while pictures < 2:
        kind = read(1)
        if kind == b"!":
            read(1)
        elif kind == b",":
            pictures += 1
            flags = read(9)[8]
            read((3 << (flags & 7) + 1 if flags & 0x80 else 0) + 1)
        elif kind in (b"", b";"):
            return
        while size := read(1)[0] if kind in (b"!", b",") else 0:
            blocks += 1
            file.seek(size, os.SEEK_CUR)
        blocks += 1
        if blocks > _MOST_BLOCKS:
            _refuse(_MOST_BLOCKS, "blocks before its second picture")


def _check_bmp(file: BinaryIO) -> None:
    """Of packed rows, which Pillow unpacks run by run."""
    head = file.read(34)
    size = file.seek(0, os.SEEK_END)
    packed = struct.unpack("<L", head[14:18])[0] >= 40 and struct.unpack("<L", head[30:34])[0] in (1, 2)
    if packed and size > _MOST_RUN_BYTES:
        _refuse(_MOST_RUN_BYTES, "bytes of run lengths")


def jxl_size(file: BinaryIO) -> tuple[int, int]:
    """Width and height of a JPEG XL as it is shown, by its header: its decoder begins by decoding all of it.

    Raises EOFError or ValueError for a header that is broken. After ISO/IEC 18181-1, section D.2, and the
    boxes of 18181-2.
    """
    file.seek(0)
    head = file.read(12)
    if head.startswith(b"\xff\x0a"):
        file.seek(0)
    else:
        _to_codestream(file)
    bits = _Bits(file.read(64))
    if bits.take(16) != 0x0AFF:
        raise ValueError("no codestream")
    small = bits.take(1)
    height = _side(bits, small)
    ratio = bits.take(3)
    width = _side(bits, small) if ratio == 0 else height * _RATIOS[ratio][0] // _RATIOS[ratio][1]
    # Of the metadata that follow the first is which way is up.
    turned = not bits.take(1) and bits.take(1) and bits.take(3) >= 4
    return (height, width) if turned else (width, height)


_RATIOS: Final = {1: (1, 1), 2: (12, 10), 3: (4, 3), 4: (3, 2), 5: (16, 9), 6: (5, 4), 7: (2, 1)}


class _Bits:
    """Bits of some bytes, the lowest first."""

    def __init__(self, data: bytes) -> None:
        self._bits, self._left = int.from_bytes(data, "little"), 8 * len(data)

    def take(self, number: int) -> int:
        if number > self._left:
            raise EOFError("the header is cut off")
        value = self._bits & ((1 << number) - 1)
        self._bits >>= number
        self._left -= number
        return value


def _side(bits: _Bits, small: int) -> int:
    if small:
        return 8 * (bits.take(5) + 1)
    return bits.take((9, 13, 18, 30)[bits.take(2)]) + 1


def _to_codestream(file: BinaryIO) -> None:
    """To the first bytes of the picture in its container."""
    at = 0
    for _ in range(_MOST_ENTRIES):
        file.seek(at)
        length, kind = struct.unpack(">L4s", file.read(8).ljust(8, b"\0"))
        head = 8
        if length == 1:
            length, head = int.from_bytes(file.read(8), "big"), 16
        if kind in (b"jxlc", b"jxlp"):
            file.seek(at + head + (4 if kind == b"jxlp" else 0))
            return
        if length < head:
            break
        at += length
    raise ValueError("no codestream in its boxes")


def _refuse(most: int, what: str) -> NoReturn:
    raise ImageError(
        f"the file has more than {most:,} {what}: to decode it could take minutes",
        kind="bomb",
        remedy=_REMEDY,
    )
