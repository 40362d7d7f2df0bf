"""PNG files whose bytes depend on the pixels alone, not on the machine or the version of a library.

Every deflate library packs the same pixels into other bytes: zlib, zlib-ng and their versions differ, and
Pillow ships now one, now the other. This writer packs by itself: one Huffman code, no search for repeats.
Photographs come out little larger than usual, flat drawings several times larger.
"""

from __future__ import annotations

import heapq
import sys
import zlib
from array import array
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from PIL import Image, ImageChops

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_END: Final = 256  # deflate's symbol for the end of a block
_LONGEST: Final = 15  # bits of a deflate code
_CHUNK: Final = 1 << 18

# RFC 1951, 3.2.7. Lengths 0–15 as four bits each, none of the codes for repeated lengths (the first three).
_LENGTH_CODES: Final = (0, 0, 0, *[4] * 16)


def write_png(image: Image.Image) -> bytes:
    """An RGB picture as PNG without any ancillary chunk; the same pixels give the same bytes everywhere.

    Raises `ValueError` for any other mode and for a picture without pixels.
    """
    if image.mode != "RGB" or not image.width or not image.height:
        raise ValueError(f"write_png takes RGB pictures, not {image.mode} of {image.width} × {image.height}")
    kind, rows = _filtered(image)
    stride = image.width * 3
    raw = b"".join(bytes([kind]) + rows[at : at + stride] for at in range(0, len(rows), stride))
    head = image.width.to_bytes(4, "big") + image.height.to_bytes(4, "big") + bytes((8, 2, 0, 0, 0))
    packed = b"\x78\x01" + b"".join(_deflate(raw)) + zlib.adler32(raw).to_bytes(4, "big")
    return _SIGNATURE + _chunk(b"IHDR", head) + _chunk(b"IDAT", packed) + _chunk(b"IEND", b"")


def _chunk(name: bytes, data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + name + data + zlib.crc32(name + data).to_bytes(4, "big")


def _filtered(image: Image.Image) -> tuple[int, bytes]:
    """PNG filter type and filtered pixels: one type for all rows, whichever packs into the fewest bits."""
    best, kept, least = 0, image, _cost(image.histogram())
    for kind in (1, 2, 3):
        tried = ImageChops.subtract_modulo(image, _guess(image, kind))
        if (cost := _cost(tried.histogram())) < least:
            best, kept, least = kind, tried, cost
    return best, kept.tobytes()


def _guess(image: Image.Image, kind: int) -> Image.Image:
    """What the filter expects of each pixel: the left one, the upper one, or their mean rounded down."""
    if kind == 3:
        return ImageChops.add(_guess(image, 1), _guess(image, 2), scale=2)
    moved = Image.new("RGB", image.size)
    moved.paste(image, (1, 0) if kind == 1 else (0, 1))
    return moved


def _cost(histogram: Sequence[int]) -> int:
    """Bits that the values take in a Huffman code of their own, which is the sum of all its inner nodes."""
    heap = [count for value in range(256) if (count := sum(histogram[value::256]))]
    heapq.heapify(heap)
    bits = 0
    while len(heap) > 1:
        merged = heapq.heappop(heap) + heapq.heappop(heap)
        heapq.heappush(heap, merged)
        bits += merged
    return bits


def _deflate(raw: bytes) -> Iterator[bytes]:
    """The whole data as one block of literals with a code of its own."""
    lengths = _code_lengths([*_counts(raw), 1])
    codes = _codes(lengths)
    bits = "".join(
        (
            _number(1, 1),  # the last block
            _number(2, 2),  # with its own code
            *(_number(0, 5), _number(1, 5), _number(19 - 4, 4)),
            *(_number(length, 3) for length in _LENGTH_CODES),
            # Two codes for distances that never occur: some readers do not take fewer.
            *(format(length, "04b") for length in (*lengths, 1, 1)),
        )
    )
    pairs = [one + other for other in codes[:256] for one in codes[:256]]
    units = array("H", raw[: len(raw) & ~1])
    if sys.byteorder == "big":
        units.byteswap()
    coded = map(pairs.__getitem__, units)
    while piece := "".join(islice(coded, _CHUNK)):
        bits += piece
        whole = len(bits) & ~7
        yield _packed(bits[:whole])
        bits = bits[whole:]
    if len(raw) % 2:
        bits += codes[raw[-1]]
    bits += codes[_END]
    yield _packed(bits + "0" * (-len(bits) % 8))


def _counts(raw: bytes) -> list[int]:
    # Pillow counts in C; a row of bytes is a gray picture.
    return Image.frombytes("L", (len(raw), 1), raw).histogram()


def _packed(bits: str) -> bytes:
    """Bits in the order of the stream as bytes; deflate fills each byte from its lowest bit."""
    return int(bits[::-1] or "0", 2).to_bytes(len(bits) // 8, "little")


def _number(value: int, width: int) -> str:
    return format(value, f"0{width}b")[::-1]


def _code_lengths(counts: Sequence[int]) -> list[int]:
    """Huffman code lengths in bits of two symbols or more, at most 15; 0 for what does not occur."""
    while True:
        heap: list[tuple[int, int, tuple[int, ...]]] = [
            (count, symbol, (symbol,)) for symbol, count in enumerate(counts) if count
        ]
        lengths = [0] * len(counts)
        heapq.heapify(heap)
        while len(heap) > 1:
            one, other = heapq.heappop(heap), heapq.heappop(heap)
            merged = one[2] + other[2]
            for symbol in merged:
                lengths[symbol] += 1
            heapq.heappush(heap, (one[0] + other[0], one[1], merged))
        if max(lengths) <= _LONGEST:
            return lengths
        # Flatter counts give shorter codes, at the price of a few bits.
        counts = [(count + 1) // 2 for count in counts]


def _codes(lengths: Sequence[int]) -> list[str]:
    """The canonical codes of these lengths (RFC 1951, 3.2.2); empty for what does not occur."""
    codes, code = [""] * len(lengths), 0
    for length in range(1, _LONGEST + 1):
        for symbol, own in enumerate(lengths):
            if own == length:
                codes[symbol] = format(code, f"0{length}b")
                code += 1
        code <<= 1
    return codes
