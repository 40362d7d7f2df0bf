"""Parts of an image for people: sharp, small, and only of the file that was annotated."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from uncanny.images.parts import around, parts_to_show
from uncanny.schema import Box

SIZE = (1200, 900)
SIDE = 320


def picture(tmp_path: Path, exif: Image.Exif | None = None) -> Path:
    """Stripes one pixel wide, in a file of 1,200 x 900 pixels: whatever is reduced is gray."""
    image = Image.new("L", SIZE)
    image.putdata([255 * (x % 2) for _ in range(SIZE[1]) for x in range(SIZE[0])])
    path = tmp_path / "a.png"
    image.save(path, exif=exif or Image.Exif())
    return path


def opened(part: bytes | None) -> Image.Image:
    assert part is not None
    image = Image.open(io.BytesIO(part))
    assert image.format == "WEBP"
    return image.convert("L")


def test_a_part_has_the_pixels_of_the_file_and_is_never_enlarged(tmp_path: Path) -> None:
    file = picture(tmp_path)
    small, large = parts_to_show(file, [(100, 100, 300, 250), (0, 0, 1000, 750)], SIDE, size=SIZE)
    image = opened(small)
    assert image.size == (200, 150)
    assert [round(value / 255) for value in image.crop((20, 50, 28, 51)).tobytes()] == [0, 1] * 4
    assert opened(large).size == (SIDE, 240)


def test_parts_are_cut_from_the_picture_as_seen_upright(tmp_path: Path) -> None:
    turned = Image.Exif()
    turned[0x0112] = 6
    file = picture(tmp_path, exif=turned)
    box: Box = (0, 1000, 200, 1150)
    assert parts_to_show(file, [box], SIDE, size=SIZE) == (None,)
    (part,) = parts_to_show(file, [box], SIDE, size=SIZE[::-1])
    assert opened(part).size == (200, 150)


def test_no_part_of_a_file_with_other_bytes_or_of_none(tmp_path: Path) -> None:
    file, boxes = picture(tmp_path), [(0, 0, 200, 150), (0, 0, 40, 30)]
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert all(parts_to_show(file, boxes, SIDE, size=SIZE, sha256=digest))
    for wrong in ("0" * 64, ""):
        assert parts_to_show(file, boxes, SIDE, size=SIZE, sha256=wrong) == (None, None)
    assert parts_to_show(tmp_path / "gone.png", boxes, SIDE, size=SIZE) == (None, None)
    file.write_bytes(file.read_bytes()[:2000])
    assert parts_to_show(file, boxes, SIDE, size=SIZE) == (None, None)


@pytest.mark.parametrize("box", [(0, 0, 1201, 10), (5, 5, 5, 9), (-1, 0, 9, 9)])
def test_a_box_that_is_not_in_the_picture_has_no_part(box: Box, tmp_path: Path) -> None:
    (wrong, right) = parts_to_show(picture(tmp_path), [box, (0, 0, 20, 20)], SIDE, size=SIZE)
    assert wrong is None
    assert right is not None


@given(st.data(), st.tuples(st.integers(1, 20_000), st.integers(1, 20_000)))
def test_what_is_around_a_box_shows_it_within_the_picture(data: st.DataObject, size: tuple[int, int]) -> None:
    x0, y0 = (data.draw(st.integers(0, side - 1)) for side in size)
    x1, y1 = data.draw(st.integers(x0 + 1, size[0])), data.draw(st.integers(y0 + 1, size[1]))
    left, top, right, bottom = around((x0, y0, x1, y1), size)
    assert 0 <= left <= x0 < x1 <= right <= size[0]
    assert 0 <= top <= y0 < y1 <= bottom <= size[1]
    wide, high = right - left, bottom - top
    if wide < size[0] and high < size[1]:
        assert wide / high == pytest.approx(4 / 3, rel=1 / high)


def test_a_small_fault_of_a_large_picture_fills_some_of_its_part() -> None:
    """A fifth of a large picture would show it as small as the thumbnail does."""
    box = (2000, 1500, 2012, 1524)
    left, _, right, _ = around(box, (3600, 2400))
    assert right - left < 240
    left, _, right, _ = around((100, 100, 112, 112), (640, 480))
    assert right - left == 128


def test_a_box_outside_of_the_picture_still_has_a_place_in_it() -> None:
    assert around((5_000, 5_000, 5_010, 5_010), (640, 480)) == (512, 384, 640, 480)
