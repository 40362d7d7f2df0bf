"""Parts of an image at full resolution."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageChops

from uncanny.images.prepared import LEAST_SIDE, MOST_SIDE, Crop, crops


def picture(tmp_path: Path, size: tuple[int, int] = (800, 400)) -> Path:
    """Every pixel says where it is: red is x / 4, green is y / 2."""
    rows, columns = np.indices(size[::-1])
    image = Image.fromarray(np.dstack([columns // 4, rows // 2, 0 * rows]).astype(np.uint8))
    path = tmp_path / "a.png"
    image.save(path)
    return path


def pixels(crop: Crop) -> Image.Image:
    image = Image.open(io.BytesIO(crop.data))
    assert (image.get_format_mimetype(), image.size) == (crop.media_type, (crop.width, crop.height))
    return image.convert("RGB")


def test_a_part_has_its_margin_and_is_enlarged(tmp_path: Path) -> None:
    (crop,) = crops(picture(tmp_path), [(400, 200, 500, 300)], 1.0)
    image = pixels(crop)
    # 300 to 600 across and 100 to 400 down, a square.
    assert image.size == (LEAST_SIDE, LEAST_SIDE)
    assert image.getpixel((1, 1)) == pytest.approx((300 / 4, 100 / 2, 0), abs=2)
    assert image.getpixel((510, 510)) == pytest.approx((599 / 4, 399 / 2, 0), abs=2)


def test_a_tiny_part_comes_with_a_quarter_of_the_picture(tmp_path: Path) -> None:
    (crop,) = crops(picture(tmp_path), [(400, 200, 404, 204)], 1.0)
    image = pixels(crop)
    assert image.size == (512, 256)  # 200 × 100 pixels
    assert image.getpixel((1, 1)) == pytest.approx((302 / 4, 152 / 2, 0), abs=2)


@pytest.mark.slow
def test_a_part_ends_where_the_picture_ends(tmp_path: Path) -> None:
    (crop,) = crops(picture(tmp_path), [(0, 0, 200, 200)], 1.0)
    assert pixels(crop).size == (600, 600)  # 0 to 400 each way, and one and a half times that
    (whole,) = crops(picture(tmp_path, (3000, 1500)), [(0, 0, 3000, 1500)], 1.0)
    assert pixels(whole).size == (MOST_SIDE, MOST_SIDE // 2)


def test_a_part_is_larger_than_it_is_in_the_whole(tmp_path: Path) -> None:
    path = picture(tmp_path, (2400, 1200))
    (part,) = crops(path, [(1000, 500, 1100, 550)], 0.0)
    assert (part.width, part.height) == (
        900,
        450,
    )  # a quarter of the picture, 600 × 300, one and a half times
    # Looked at in half its size, the whole has 300 × 150 pixels there: those of the file are more.
    (part,) = crops(path, [(1000, 500, 1100, 550)], 0.0, seen=(1200, 600))
    assert (part.width, part.height) == (600, 300)
    (part,) = crops(picture(tmp_path, (800, 400)), [(300, 100, 310, 110)], 0.0, seen=(4800, 2400))
    assert (part.width, part.height) == (MOST_SIDE, MOST_SIDE // 2)


def test_a_picture_is_turned_upright_before_it_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "turned.jpg"
    exif = Image.Exif()
    exif[0x0112] = 6
    left = Image.new("RGB", (400, 200), "white")
    left.paste("black", (0, 0, 40, 200))
    left.save(path, quality=95, exif=exif)
    (crop,) = crops(path, [(0, 0, 200, 40)], 0.0)
    image = pixels(crop)
    # Upright the black strip is at the top.
    assert image.getpixel((image.width // 2, 4)) == pytest.approx((0, 0, 0), abs=20)
    assert image.getpixel((image.width // 2, image.height - 4)) == pytest.approx((255, 255, 255), abs=20)


def test_a_part_is_a_jpeg_file_where_that_loses_nothing_one_could_see(tmp_path: Path) -> None:
    path = picture(tmp_path)
    (jpeg,), (png,) = (crops(path, [(100, 100, 300, 300)], 0.0, jpeg=jpeg) for jpeg in (True, False))
    assert (jpeg.media_type, png.media_type) == ("image/jpeg", "image/png")
    difference = ImageChops.difference(pixels(jpeg), pixels(png))
    assert max(difference.tobytes()) <= 6
    see_through = tmp_path / "b.png"
    Image.new("RGBA", (400, 400), (200, 0, 0, 0)).save(see_through)
    (crop,) = crops(see_through, [(100, 100, 300, 300)], 0.0)
    assert (crop.media_type, Image.open(io.BytesIO(crop.data)).mode) == ("image/png", "RGBA")


def test_the_same_part_is_the_same_bytes(tmp_path: Path) -> None:
    path = picture(tmp_path)
    first, again = (crops(source, [(10, 10, 90, 90)], 1.0) for source in (path, path.read_bytes()))
    assert first == again


def test_of_a_file_that_was_changed_meanwhile_there_are_none(tmp_path: Path) -> None:
    path = picture(tmp_path)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    assert crops(path, [(0, 0, 10, 10)], 1.0, sha256=sha256)
    Image.new("RGB", (800, 400)).save(path)
    assert crops(path, [(0, 0, 10, 10)], 1.0, sha256=sha256) == ()


@pytest.mark.parametrize("content", [None, b"", b"no picture"])
def test_without_the_file_there_are_none(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "gone.png"
    if content is not None:
        path.write_bytes(content)
    assert crops(path, [(0, 0, 10, 10)], 1.0) == ()


def test_a_picture_is_cut_up_to_the_limit_on_pixels(tmp_path: Path) -> None:
    path = picture(tmp_path)
    assert crops(path, [(0, 0, 10, 10)], 1.0, max_pixels=800 * 400)
    assert crops(path, [(0, 0, 10, 10)], 1.0, max_pixels=800 * 400 - 1) == ()


@pytest.mark.slow
def test_a_part_above_pillows_own_limit_is_shown_too(tmp_path: Path) -> None:
    path = tmp_path / "large.png"
    side = 13_500
    assert side * side > 2 * (Image.MAX_IMAGE_PIXELS or 0)
    image = Image.new("L", (side, side), 0)
    image.paste(255, (side // 2, 0, side, side))
    image.save(path)
    assert crops(path, [(0, 0, side, side)], 1.0) == ()
    whole, part = crops(path, [(0, 0, side, side), (0, 0, 10, 10)], 1.0, max_pixels=side * side)
    assert (whole.width, whole.height, part.width, part.height) == (MOST_SIDE,) * 4
    assert [pixels(whole).getpixel((x, 500)) for x in (500, 520)] == [(0, 0, 0), (255, 255, 255)]
