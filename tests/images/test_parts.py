"""Parts of an image at full resolution: cut from the file once, the same every time, and known again."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageChops

from uncanny.images.parts import Cut, CutFrom, Part, Survey, cut_parts, part_of
from uncanny.schema import Box

SIZE = (800, 400)


def picture(tmp_path: Path, size: tuple[int, int] = SIZE) -> Path:
    """Every pixel says where it is: red is x / 4, green is y / 2."""
    rows, columns = np.indices(size[::-1])
    image = Image.fromarray(np.dstack([columns // 4, rows // 2, 0 * rows]).astype(np.uint8))
    path = tmp_path / "a.png"
    image.save(path)
    return path


def cut(source: Path | bytes, *cuts: Cut, **options: object) -> tuple[Part, ...]:
    return cut_parts(source, lambda _: cuts, **options)  # type: ignore[arg-type]


def pixels(part: Part) -> Image.Image:
    image = Image.open(io.BytesIO(part.data))
    assert (image.get_format_mimetype(), image.size) == (part.media_type, (part.width, part.height))
    return image.convert("RGB")


def test_a_part_is_scaled_to_the_side_that_is_asked_for(tmp_path: Path) -> None:
    path = picture(tmp_path)
    large, same, small = cut(
        path, Cut((300, 100, 500, 200), 600), Cut((300, 100, 500, 200), 200), Cut((0, 0, *SIZE), 100)
    )
    assert [pixels(each).size for each in (large, same, small)] == [(600, 300), (200, 100), (100, 50)]
    for part, step in ((large, 3), (same, 1)):
        image = pixels(part)
        assert image.getpixel((0, 0)) == pytest.approx((300 / 4, 100 / 2, 0), abs=2)
        corner = (200 * step - 1, 100 * step - 1)
        assert image.getpixel(corner) == pytest.approx((499 / 4, 199 / 2, 0), abs=2)
    assert pixels(small).getpixel((99, 49)) == pytest.approx((796 / 4, 396 / 2, 0), abs=3)


def test_a_thin_part_has_a_pixel_at_least(tmp_path: Path) -> None:
    (part,) = cut(picture(tmp_path), Cut((0, 0, 800, 1), 100))
    assert pixels(part).size == (100, 1)


def test_a_picture_is_turned_upright_before_it_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "turned.jpg"
    exif = Image.Exif()
    exif[0x0112] = 6
    left = Image.new("RGB", (400, 200), "white")
    left.paste("black", (0, 0, 40, 200))
    left.save(path, quality=95, exif=exif)
    (part,) = cut(path, Cut((0, 0, 200, 80), 200))
    image = pixels(part)
    # Upright the black strip is at the top.
    assert image.getpixel((image.width // 2, 4)) == pytest.approx((0, 0, 0), abs=20)
    assert image.getpixel((image.width // 2, image.height - 4)) == pytest.approx((255, 255, 255), abs=20)


def test_a_part_is_a_jpeg_file_where_that_loses_nothing_one_could_see(tmp_path: Path) -> None:
    path = picture(tmp_path)
    (jpeg,), (png,) = (cut(path, Cut((100, 100, 300, 300), 400), jpeg=jpeg) for jpeg in (True, False))
    assert (jpeg.media_type, png.media_type) == ("image/jpeg", "image/png")
    difference = ImageChops.difference(pixels(jpeg), pixels(png))
    assert max(difference.tobytes()) <= 6
    see_through = tmp_path / "b.png"
    Image.new("RGBA", (400, 400), (200, 0, 0, 0)).save(see_through)
    (part,) = cut(see_through, Cut((100, 100, 300, 300), 200))
    assert (part.media_type, Image.open(io.BytesIO(part.data)).mode) == ("image/png", "RGBA")
    gray = tmp_path / "c.png"
    Image.new("L", (400, 400), 90).save(gray)
    (part,) = cut(gray, Cut((100, 100, 300, 300), 400))
    assert (part.media_type, Image.open(io.BytesIO(part.data)).mode) == ("image/jpeg", "L")


@pytest.mark.parametrize("jpeg", [True, False])
def test_the_same_part_of_the_same_file_is_the_same_bytes(tmp_path: Path, jpeg: bool) -> None:
    path = picture(tmp_path)
    cuts = [Cut((10, 10, 90, 90), 160), Cut((0, 0, *SIZE), 640)]
    first = cut(path, *cuts, jpeg=jpeg)
    # From its path or its bytes, alone or beside another.
    again = (*cut(path.read_bytes(), *cuts[:1], jpeg=jpeg), *cut(path, *cuts[1:], jpeg=jpeg))
    assert first == again
    assert [hashlib.sha256(each.data).hexdigest() for each in first] == [each.sha256 for each in first]


boxes = st.tuples(st.integers(0, 799), st.integers(0, 399), st.integers(1, 800), st.integers(1, 400)).map(
    lambda each: (each[0], each[1], min(800, each[0] + each[2]), min(400, each[1] + each[3]))
)


@given(boxes, st.integers(1, 300), st.sampled_from([("RGB", True), ("RGB", False), ("LA", True)]))
def test_a_part_says_where_it_is_from(box: Box, side: int, kind: tuple[str, bool]) -> None:
    mode, jpeg = kind
    file = io.BytesIO()
    Image.new(mode, SIZE).save(file, "PNG")
    data = file.getvalue()
    (part,) = cut(data, Cut(box, side), jpeg=jpeg)
    assert part_of(part.data) == CutFrom(hashlib.sha256(data).hexdigest(), box, SIZE)
    assert part_of(part.data[:2048]) == part_of(part.data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"part of " + b"0" * 63 + b" at 0,0,1,1 of 2x2;",
        b"part of " + b"0" * 64 + b" at 0,0,1 of 2x2;",
        b"part of " + b"0" * 64 + b" at 0,0,1,1 of 2x2",
        b"x" * 4096 + b"part of " + b"0" * 64 + b" at 0,0,1,1 of 2x2;",
    ],
)
def test_what_is_no_part_says_nothing(data: bytes) -> None:
    assert part_of(data) is None


def test_an_image_is_no_part_of_another(tmp_path: Path) -> None:
    assert part_of(picture(tmp_path).read_bytes()) is None


def test_of_a_file_that_was_changed_meanwhile_there_are_none(tmp_path: Path) -> None:
    path = picture(tmp_path)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    assert cut(path, Cut((0, 0, 10, 10), 40), sha256=sha256)
    Image.new("RGB", SIZE).save(path)
    assert cut(path, Cut((0, 0, 10, 10), 40), sha256=sha256) == ()


@pytest.mark.parametrize("content", [None, b"", b"no picture", b"\x89PNG\r\n\x1a\n"])
def test_without_the_file_there_are_none_and_nothing_is_chosen(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "gone.png"
    if content is not None:
        path.write_bytes(content)
        assert cut(content, Cut((0, 0, 10, 10), 40)) == ()
    assert cut_parts(path, lambda _: pytest.fail("there is nothing to choose from")) == ()


def test_a_file_that_was_cut_off_has_none(tmp_path: Path) -> None:
    path = picture(tmp_path)
    path.write_bytes(path.read_bytes()[:-300])
    assert cut(path, Cut((0, 0, 10, 10), 40)) == ()


def test_a_picture_is_cut_up_to_the_limit_on_pixels(tmp_path: Path) -> None:
    path = picture(tmp_path)
    assert cut(path, Cut((0, 0, 10, 10), 40), max_pixels=800 * 400)
    assert cut(path, Cut((0, 0, 10, 10), 40), max_pixels=800 * 400 - 1) == ()


def test_what_goes_wrong_with_the_choice_is_raised(tmp_path: Path) -> None:
    def choose(_survey: Survey) -> list[Cut]:
        raise ValueError("a defect")

    with pytest.raises(ValueError, match="a defect"):
        cut_parts(picture(tmp_path), choose)
    assert cut_parts(picture(tmp_path), lambda _: []) == ()


@pytest.mark.slow
def test_a_part_above_pillows_own_limit_is_shown_too(tmp_path: Path) -> None:
    path = tmp_path / "large.png"
    side = 13_500
    assert side * side > 2 * (Image.MAX_IMAGE_PIXELS or 0)
    image = Image.new("L", (side, side), 0)
    image.paste(255, (side // 2, 0, side, side))
    image.save(path)
    assert cut(path, Cut((0, 0, side, side), 1024)) == ()
    whole, part = cut(path, Cut((0, 0, side, side), 1024), Cut((0, 0, 10, 10), 1024), max_pixels=side * side)
    assert (whole.width, whole.height, part.width, part.height) == (1024,) * 4
    assert [pixels(whole).getpixel((x, 500)) for x in (500, 520)] == [(0, 0, 0), (255, 255, 255)]


def test_detail_is_where_brightness_changes() -> None:
    values = np.full((600, 1200), 128, dtype=np.uint8)
    values[:, 600:] = np.random.default_rng(1).integers(0, 256, (600, 600))
    survey = Survey(Image.fromarray(values))
    assert survey.detail((0, 0, 500, 600)) == 0
    assert survey.detail((700, 0, 1200, 600)) > 20
    half = survey.detail((300, 0, 900, 600))
    assert half == pytest.approx(survey.detail((600, 0, 1200, 600)) / 2, rel=0.1)
    assert survey.detail((5, 5, 5, 5)) == survey.detail((0, 0, 0, 600)) == 0
    # What is beyond the image has none, and does no harm.
    assert survey.detail((1100, 500, 5000, 5000)) > 0


@given(st.integers(1, 40), st.integers(1, 1500), boxes)
def test_detail_is_known_of_an_image_of_any_size(width: int, height: int, box: Box) -> None:
    values = np.random.default_rng(width).integers(0, 256, (height, width), dtype=np.uint8)
    assert 0 <= Survey(Image.fromarray(values)).detail(box) <= 510
