from __future__ import annotations

import random
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from PIL import Image

from uncanny.errors import ImageError, UsageError
from uncanny.images.encode import PixelPolicy, SendLimits
from uncanny.images.prepared import prepare

ALL = frozenset({"image/jpeg", "image/png", "image/webp", "image/gif"})
KEEP = PixelPolicy()


@pytest.fixture
def noise(tmp_path: Path) -> Path:
    path = tmp_path / "noise.png"
    Image.frombytes("RGB", (300, 200), random.Random(7).randbytes(300 * 200 * 3)).save(path)
    return path


@pytest.mark.parametrize(
    ("max_side", "taken", "size"),
    [
        (150, None, (150, 100)),
        (None, 150, (150, 100)),
        (150, 30, (30, 20)),
        (30, 150, (30, 20)),
        (1, None, (1, 1)),
    ],
)
def test_the_smaller_side_limit_counts(
    max_side: int | None, taken: int | None, size: tuple[int, int], noise: Path
) -> None:
    image = prepare(noise, PixelPolicy(max_side=max_side), SendLimits(ALL, None, taken))
    assert (image.width, image.height) == (300, 200)
    assert (image.sent_width, image.sent_height) == size
    assert image.changes == (f"downscale:300x200->{size[0]}x{size[1]}",)
    assert Image.open(BytesIO(image.sent)).size == size


def test_nothing_is_enlarged(noise: Path) -> None:
    assert prepare(noise, PixelPolicy(max_side=300), SendLimits(ALL, None, 9_000)).changes == ()


def test_a_thin_picture_keeps_a_pixel(tmp_path: Path) -> None:
    path = tmp_path / "thin.png"
    Image.new("RGB", (1, 5000)).save(path)
    image = prepare(path, PixelPolicy(max_side=100), SendLimits(ALL, None, None))
    assert (image.sent_width, image.sent_height) == (1, 100)


def test_jpeg_only_when_png_is_too_large(noise: Path) -> None:
    limits = SendLimits(ALL, noise.stat().st_size - 1, None)
    image = prepare(noise, KEEP, limits)
    assert image.changes == ("convert:PNG->JPEG", "jpeg-quality:95")
    assert (image.sent_width, image.sent_height) == (300, 200)
    assert len(image.sent) <= noise.stat().st_size - 1


def test_packing_tighter_is_a_change_too(noise: Path) -> None:
    noise.write_bytes(noise.read_bytes() + bytes(5_000))
    image = prepare(noise, KEEP, SendLimits(ALL, noise.stat().st_size - 1, None))
    assert image.changes == ("reencode",)
    assert image.sent_sha256 != image.source_sha256


def test_smaller_steps_until_it_fits(noise: Path) -> None:
    image = prepare(noise, KEEP, SendLimits(ALL, 20_000, None))
    assert 10_000 < len(image.sent) <= 20_000
    assert image.changes == (
        f"downscale:300x200->{image.sent_width}x{image.sent_height}",
        "convert:PNG->JPEG",
        "jpeg-quality:95",
    )
    assert image.sent_width / image.sent_height == pytest.approx(1.5, rel=0.03)


def test_a_large_jpeg_stays_a_jpeg(tmp_path: Path, odd_files: ModuleType) -> None:
    path = tmp_path / "a.jpg"
    odd_files.picture(400, 400).save(path, quality=100)
    image = prepare(path, KEEP, SendLimits(ALL, path.stat().st_size - 1, None))
    assert image.media_type == "image/jpeg"
    assert image.changes[-1] == "jpeg-quality:95"


def test_a_png_only_provider_gets_smaller_pngs(noise: Path) -> None:
    image = prepare(noise, KEEP, SendLimits(frozenset({"image/png"}), 20_000, None))
    assert image.media_type == "image/png"
    assert len(image.sent) <= 20_000


def test_a_limit_nothing_can_meet(noise: Path) -> None:
    with pytest.raises(ImageError, match="cannot be made smaller") as caught:
        prepare(noise, KEEP, SendLimits(ALL, 10, None))
    assert caught.value.kind == "too_large"


def test_a_provider_that_takes_nothing_we_write(noise: Path) -> None:
    with pytest.raises(ImageError, match=r"noise\.png.*image/bmp") as caught:
        prepare(noise, KEEP, SendLimits(frozenset({"image/bmp"}), None, None))
    assert caught.value.kind == "unsupported"


def test_the_format_asked_for(noise: Path, tmp_path: Path) -> None:
    limits = SendLimits(ALL, None, None)
    assert prepare(noise, PixelPolicy(format="png"), limits).changes == ()
    image = prepare(noise, PixelPolicy(format="jpeg", jpeg_quality=60), limits)
    assert image.changes == ("convert:PNG->JPEG", "jpeg-quality:60")
    path = tmp_path / "again.jpg"
    path.write_bytes(image.sent)
    assert prepare(path, PixelPolicy(format="jpeg"), limits).sent == image.sent
    assert prepare(path, PixelPolicy(format="png"), limits).changes == ("convert:JPEG->PNG",)


def test_the_limit_on_pixels_is_the_users(noise: Path) -> None:
    limits = SendLimits(ALL, None, None)
    assert prepare(noise, PixelPolicy(max_pixels=60_000), limits).changes == ()
    with pytest.raises(ImageError, match="300 × 200") as caught:
        prepare(noise, PixelPolicy(max_pixels=59_999), limits)
    assert caught.value.kind == "bomb"


def test_a_limit_above_pillows_own_counts(noise: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10_000)
    limits = SendLimits(ALL, None, None)
    assert prepare(noise, PixelPolicy(max_pixels=60_000), limits).width == 300
    assert prepare(noise, PixelPolicy(max_pixels=60_000, max_side=100), limits).sent_width == 100
    assert Image.MAX_IMAGE_PIXELS == 10_000


def test_what_pillow_refuses_itself_is_said(
    noise: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "noise.webp"
    Image.open(noise).save(path)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10_000)
    with pytest.raises(ImageError, match="more pixels than Pillow reads") as caught:
        prepare(path, KEEP, SendLimits(ALL, None, None))
    assert caught.value.kind == "bomb"


def test_the_limit_on_bytes_is_the_users(noise: Path) -> None:
    size = noise.stat().st_size
    assert prepare(noise, PixelPolicy(max_file_bytes=size), SendLimits(ALL, None, None)).source_bytes == size
    with pytest.raises(ImageError, match=f"{size:,} bytes") as caught:
        prepare(noise, PixelPolicy(max_file_bytes=size - 1), SendLimits(ALL, None, None))
    assert caught.value.kind == "too_large"


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_side": 0},
        {"format": "gif"},
        {"jpeg_quality": 0},
        {"jpeg_quality": 101},
        {"max_pixels": 0},
        {"max_file_bytes": -1},
    ],
)
def test_a_policy_out_of_range_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=str(next(iter(wrong.values())))):
        PixelPolicy(**wrong)
