"""Whether a PNG has all its rows, found out without keeping them: 100 megapixels would take 400 MB."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

_CHANNELS: Final = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_BLOCK: Final = 1 << 20
_MOST_FILTERS: Final = 4


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
