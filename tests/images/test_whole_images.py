"""That a file is whole is found out without keeping its pixels, and no differently than by decoding it."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.images.odd_files import encoded, picture
from uncanny.images.decode import PixelLimit, check_png_rows, check_whole, decode, read_header
from uncanny.images.encode import PixelPolicy

MOST = PixelPolicy().max_pixels
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
KINDS = [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0), (8, 2), (1, 3), (4, 3), (8, 3), (8, 4), (8, 6), (16, 6)]


def png(width: int, height: int, depth: int, colour: int, packed: bytes, *, parts: int = 1) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    cut = -(-len(packed) // parts) or 1
    chunks = [b"IHDR" + header, *([b"PLTE" + bytes(range(48)) * 16] if colour == 3 else [])]
    chunks += [b"IDAT" + packed[at : at + cut] for at in range(0, len(packed), cut)] or [b"IDAT"]
    chunks += [b"tEXtkey\0after the pixels", b"IEND"]
    framed = (
        struct.pack(">I", len(each) - 4) + each + struct.pack(">I", zlib.crc32(each)) for each in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(framed)


def stands(check: Callable[[], object]) -> bool:
    try:
        check()
    except Exception:  # decoders raise all kinds of errors
        return False
    return True


@given(
    st.tuples(st.integers(1, 40), st.integers(1, 40)),
    st.sampled_from(KINDS),
    st.integers(1, 4),
    st.sampled_from(["whole", "short", "long", "cut", "no end", "filter", "not packed", "empty"]),
    st.integers(0, 2**32),
)
def test_rows_of_a_png_are_judged_as_pillow_does(
    size: tuple[int, int], kind: tuple[int, int], parts: int, fault: str, seed: int
) -> None:
    (width, height), (depth, colour), dice = size, kind, random.Random(seed)
    stride = 1 + (width * depth * CHANNELS[colour] + 7) // 8
    rows = bytearray(dice.randbytes(stride * height))
    for row in range(height):
        rows[row * stride] = dice.randrange(5)
    if fault == "filter":
        rows[dice.randrange(height) * stride] = dice.randrange(5, 256)
    if fault == "short":
        del rows[-dice.randrange(1, len(rows) + 1) :]
    if fault == "long":
        rows += dice.randbytes(50)
    packed = zlib.compress(bytes(rows))
    if fault == "cut":
        packed = packed[: dice.randrange(len(packed) - 5)]
    if fault == "no end":  # all rows are there, their checksum is not
        packed = packed[:-4]
    data = png(
        width,
        height,
        depth,
        colour,
        b"" if fault == "empty" else b"\0" + packed if fault == "not packed" else packed,
        parts=parts,
    )

    def loaded() -> None:
        header = read_header(data, MOST)
        decode(data, header)

    whole = stands(lambda: check_png_rows(data))
    if fault == "short":  # of some of these Pillow makes up what is missing
        assert not whole
    else:
        assert whole == stands(loaded), fault


@pytest.mark.parametrize("format", ["JPEG", "PNG"])
def test_a_file_that_was_cut_anywhere_is_judged_as_by_decoding_it(format: str) -> None:
    data = encoded(picture(200, 150), format)
    for end in range(200, len(data) + 1, 97):
        cut = data[:end] if end + 97 <= len(data) else data

        def checked(cut: bytes = cut) -> None:
            assert check_whole(cut, read_header(cut, MOST))

        def decoded(cut: bytes = cut) -> None:
            decode(cut, read_header(cut, MOST))

        assert stands(checked) == stands(decoded), end


@pytest.mark.parametrize(
    ("data", "tells"),
    [
        (encoded(picture(), "PNG"), True),
        (encoded(picture(mode="P"), "PNG"), True),
        (encoded(picture(), "JPEG"), True),
        (encoded(picture(), "JPEG", progressive=True), False),
        (encoded(picture(), "WEBP"), False),
        (encoded(picture(), "GIF"), False),
    ],
)
def test_formats_that_only_decoding_tells_about_are_left_to_it(data: bytes, tells: bool) -> None:
    assert check_whole(data, read_header(data, MOST)) == tells


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the peak of memory")
@pytest.mark.parametrize("format", ["PNG", "JPEG"])
def test_pixels_of_what_is_sent_as_it_is_are_not_kept(format: str, tmp_path: Path) -> None:
    path = tmp_path / f"large.{format.lower()}"
    Image.new("RGB", (8_000, 6_000), "teal").save(path)
    script = f"""
from pathlib import Path
from uncanny.images.encode import PixelPolicy, SendLimits
from uncanny.images.prepared import prepare
def peak_mb():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
before = peak_mb()
limits = SendLimits(frozenset({{"image/png", "image/jpeg"}}), None, None)
image = prepare(Path({str(path)!r}), PixelPolicy(), limits)
assert (image.width, image.height, image.changes) == (8_000, 6_000, ())
print(peak_mb() - before)
"""
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert float(out) < 48 * 4 / 2  # half of what the pixels take


class Watched:
    """Threads that hold pixels of a limit, and the most they ever held together."""

    def __init__(self, most: int) -> None:
        self.limit, self.most, self.now, self.alone = PixelLimit(most), 0, 0, True
        self.lock, self.order = threading.Lock(), list[int]()

    def work(self, pixels: int, number: int) -> None:
        with self.limit.hold(pixels):
            with self.lock:
                self.now += pixels
                self.most = max(self.most, self.now)
                self.order.append(number)
            threading.Event().wait(0.001)
            with self.lock:
                self.now -= pixels


def test_pixels_of_all_threads_together_stay_below_the_limit() -> None:
    watched, dice = Watched(100), random.Random(4)
    threads = [threading.Thread(target=watched.work, args=(dice.randint(1, 100), n)) for n in range(60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert watched.most <= 100
    assert sorted(watched.order) == list(range(60))


def test_a_picture_above_the_limit_goes_alone_and_in_its_turn() -> None:
    limit, order = PixelLimit(10), list[str]()

    def work(name: str, pixels: int) -> None:
        with limit.hold(pixels):
            order.append(name)

    with limit.hold(5):
        threads = []
        for name, pixels in (("large", 1_000), ("small", 1)):
            threads.append(threading.Thread(target=work, args=(name, pixels)))
            threads[-1].start()
            while limit._next < len(threads) + 1:
                threading.Event().wait(0.001)
        assert order == []
    for thread in threads:
        thread.join(60)
    assert order == ["large", "small"]


def test_a_limit_is_given_back_after_an_error() -> None:
    limit = PixelLimit(10)
    with pytest.raises(ZeroDivisionError), limit.hold(10):
        raise ZeroDivisionError
    with limit.hold(10):
        pass
