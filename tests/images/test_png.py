"""Our own PNG files against other readers, and against bytes worked out once."""

from __future__ import annotations

import hashlib
import zlib
from io import BytesIO
from operator import itemgetter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from uncanny.images.png import _code_lengths, write_png


def chunks(data: bytes) -> dict[bytes, bytes]:
    found, at = {}, 8
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        name, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert int.from_bytes(data[at + 8 + size : at + 12 + size], "big") == zlib.crc32(name + body)
        found[name] = body
        at += 12 + size
    return found


def decoded(data: bytes) -> Image.Image:
    Image.open(BytesIO(data)).verify()
    image = Image.open(BytesIO(data))
    image.load()
    return image


def noise(size: tuple[int, int], seed: int = 1) -> Image.Image:
    """The same on every machine, other than Pillow's own noise."""
    block = b"".join(
        hashlib.sha256(b"%d %d" % (seed, at)).digest() for at in range(size[0] * size[1] * 3 // 32 + 1)
    )
    return Image.frombytes("RGB", size, block[: size[0] * size[1] * 3])


def ramp(size: tuple[int, int]) -> Image.Image:
    values = bytes(
        (x * 3 + y * 5 + c * 7) % 256 for y in range(size[1]) for x in range(size[0]) for c in range(3)
    )
    return Image.frombytes("RGB", size, values)


@settings(max_examples=25, deadline=None)
@given(width=st.integers(1, 40), height=st.integers(1, 12), data=st.data())
def test_other_readers_get_the_same_pixels(width: int, height: int, data: st.DataObject) -> None:
    alphabet = data.draw(st.sampled_from([b"\0", b"\0\xff", bytes(range(256))]))
    values = data.draw(
        st.lists(st.sampled_from(alphabet), min_size=width * height * 3, max_size=width * height * 3)
    )
    image = Image.frombytes("RGB", (width, height), bytes(values))
    written = write_png(image)
    assert decoded(written).tobytes() == image.tobytes()
    raw = zlib.decompress(chunks(written)[b"IDAT"])
    assert len(raw) == height * (width * 3 + 1)


@pytest.mark.parametrize("size", [(1, 1), (1, 300), (300, 1), (333, 517)])
def test_every_size_comes_back(size: tuple[int, int]) -> None:
    for image in (noise(size), ramp(size), Image.new("RGB", size, (7, 8, 9))):
        back = decoded(write_png(image))
        assert (back.mode, back.size) == ("RGB", size)
        assert back.tobytes() == image.tobytes()


def test_codes_stay_within_fifteen_bits_and_use_all_of_them() -> None:
    # Counts that grow like Fibonacci's numbers make the deepest Huffman trees.
    counts = [1, 1]
    while len(counts) < 30:
        counts.append(counts[-1] + counts[-2])
    lengths = _code_lengths([*counts, 0])
    assert lengths[-1] == 0
    assert max(lengths) <= 15
    assert sum(2 ** (15 - length) for length in lengths[:-1]) == 2**15
    # In a random order no filter can tell a value from the one before.
    values = b"".join(bytes([value * 8]) * count for value, count in enumerate(counts[:24]))
    keys = noise((600, 600)).tobytes()
    values = bytes(value for _, value in sorted(zip(keys, values, strict=False), key=itemgetter(0)))
    image = Image.frombytes("RGB", (len(values) // 3, 1), values[: len(values) // 3 * 3])
    assert decoded(write_png(image)).tobytes() == image.tobytes()


def test_there_is_nothing_but_the_picture() -> None:
    image = noise((5, 4))
    image.info = {"icc_profile": b"x", "dpi": (72, 72), "gamma": 0.4}
    assert list(chunks(write_png(image))) == [b"IHDR", b"IDAT", b"IEND"]


def test_the_bytes_are_these_on_every_machine() -> None:
    digests = [
        hashlib.sha256(write_png(image)).hexdigest()[:16] for image in (noise((64, 48)), ramp((64, 48)))
    ]
    assert digests == ["994451de61862454", "905fefaa1f5577e8"]


def test_smooth_pictures_shrink() -> None:
    assert len(write_png(ramp((200, 200)))) < 200 * 200 * 3 / 4


@pytest.mark.parametrize(
    "image", [Image.new("L", (2, 2)), Image.new("RGBA", (2, 2)), Image.new("RGB", (0, 2))]
)
def test_other_pictures_are_turned_down(image: Image.Image) -> None:
    with pytest.raises(ValueError, match="takes RGB pictures"):
        write_png(image)
