from __future__ import annotations

from io import BytesIO
from pathlib import Path
from types import ModuleType

import pytest
from PIL import Image

from uncanny.images.encode import PixelPolicy
from uncanny.images.prepared import thumbnail


def opened(data: bytes | None) -> Image.Image:
    assert data is not None
    image = Image.open(BytesIO(data))
    assert image.format == "WEBP"
    return image.convert("RGB")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "TIFF"])
def test_it_fits_and_looks_the_same(kind: str, tmp_path: Path, odd_files: ModuleType) -> None:
    path = tmp_path / "a"
    path.write_bytes(odd_files.encoded(odd_files.picture(1200, 800), kind))
    image = opened(thumbnail(path, 120))
    assert image.size == (120, 80)
    red, blue = image.getpixel((20, 15)), image.getpixel((100, 65))
    assert isinstance(red, tuple)
    assert isinstance(blue, tuple)
    assert red[0] > 180 > 90 > red[2]
    assert blue[2] > 180 > 90 > blue[0]


def test_small_pictures_stay_small(tmp_path: Path, odd_files: ModuleType) -> None:
    path = tmp_path / "a.png"
    odd_files.picture(48, 32).save(path)
    assert opened(thumbnail(path)).size == (48, 32)


def test_it_is_upright(tmp_path: Path, odd_files: ModuleType) -> None:
    path = tmp_path / "a.jpg"
    path.write_bytes(odd_files.with_orientation("JPEG", 6))
    image = opened(thumbnail(path, 24))
    assert image.size == (16, 24)
    pixel = image.getpixel((13, 2))
    assert isinstance(pixel, tuple)
    assert pixel[0] > 180


def test_none_when_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    assert thumbnail(path) is None
    path.write_bytes(b"no picture")
    assert thumbnail(path) is None
    Image.new("L", (100, 100)).save(path)
    assert thumbnail(path, policy=PixelPolicy(max_pixels=9_999)) is None


def test_what_is_remembered_is_that_of_the_same_file_size_and_limits(
    tmp_path: Path, odd_files: ModuleType
) -> None:
    path, copy = tmp_path / "a.png", tmp_path / "b.png"
    odd_files.picture(100, 80).save(path)
    copy.write_bytes(path.read_bytes())
    first = thumbnail(path, 50)
    assert thumbnail(copy, 50) == first
    assert opened(thumbnail(path, 40)).size == (40, 32)
    assert thumbnail(path, 50, quality=20) != first
    assert thumbnail(path, 50, PixelPolicy(max_pixels=7_999)) is None
    assert thumbnail(path, 50, sha256="0" * 64) is None
    odd_files.picture(80, 100).save(path)
    assert opened(thumbnail(path, 50)).size == (40, 50)
    path.unlink()
    assert thumbnail(path, 50) is None
