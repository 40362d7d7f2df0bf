from __future__ import annotations

import hashlib
from io import BytesIO
from pathlib import Path
from types import ModuleType

import pytest
from PIL import Image, ImageCms, ImageOps

from uncanny.errors import ImageError
from uncanny.images.encode import PixelPolicy, SendLimits
from uncanny.images.prepared import PreparedImage, prepare

ALL = frozenset({"image/jpeg", "image/png", "image/webp", "image/gif"})
TAKEN = SendLimits(ALL, None, None)
KEEP = PixelPolicy()


def read(image: PreparedImage) -> Image.Image:
    read = Image.open(BytesIO(image.sent))
    assert read.size == (image.sent_width, image.sent_height)
    assert Image.MIME[read.format or ""] == image.media_type
    assert image.sent_sha256 == hashlib.sha256(image.sent).hexdigest()
    return read


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF"])
def test_own_bytes_by_default(kind: str, tmp_path: Path, odd_files: ModuleType) -> None:
    path = tmp_path / "misleading.txt"
    data = odd_files.encoded(odd_files.picture(), kind)
    path.write_bytes(data)
    image = prepare(path, KEEP, TAKEN)
    assert image.sent == data
    assert image.changes == ()
    assert image.source_sha256 == image.sent_sha256 == hashlib.sha256(data).hexdigest()
    assert image.source_bytes == len(data)
    assert image.source_format == kind
    assert (image.width, image.height) == read(image).size == (48, 32)


def test_the_same_file_gives_the_same_bytes(tmp_path: Path, odd_files: ModuleType) -> None:
    path = tmp_path / "a.tiff"
    odd_files.picture(200, 100, "RGBA").save(path)
    for policy in (KEEP, PixelPolicy(max_side=77), PixelPolicy(format="jpeg")):
        assert prepare(path, policy, TAKEN) == prepare(path, policy, TAKEN)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("turn", range(2, 9))
def test_orientation_is_applied(turn: int, kind: str, tmp_path: Path, odd_files: ModuleType) -> None:
    path = tmp_path / "a"
    path.write_bytes(odd_files.with_orientation(kind, turn))
    image = prepare(path, KEEP, TAKEN)
    assert f"orientation:{turn}" in image.changes
    plain = tmp_path / "plain"
    plain.write_bytes(
        odd_files.encoded(odd_files.picture(), kind, **({"quality": 95} if kind == "JPEG" else {}))
    )
    exif = Image.Exif()
    exif[0x0112] = turn
    stored = Image.open(plain).convert("RGB")
    stored.info["exif"] = exif.tobytes()
    upright = ImageOps.exif_transpose(stored)
    assert upright is not None
    assert (image.width, image.height) == upright.size == ((32, 48) if turn >= 5 else (48, 32))
    assert read(image).tobytes() == upright.tobytes()
    assert read(image).getexif().get(0x0112) is None


def test_orientation_6_by_eye(tmp_path: Path, odd_files: ModuleType) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(odd_files.with_orientation("PNG", 6))
    image = read(prepare(path, KEEP, TAKEN))
    # A quarter turn clockwise: red goes from top left to top right, blue from bottom right to bottom left.
    assert image.getpixel((31, 0)) == (220, 20, 30)
    assert image.getpixel((0, 47)) == (20, 30, 220)


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_16_bit_gray_is_scaled(kind: str, tmp_path: Path, odd_files: ModuleType) -> None:
    path = tmp_path / "a"
    path.write_bytes(odd_files.deep_gray(kind))
    image = prepare(path, KEEP, TAKEN)
    assert image.changes[0] == "depth:16->8"
    assert list(read(image).tobytes()) == [round(value * 255 / 65535) for value in range(0, 65536, 256)]


def test_16_bit_color_is_scaled(tmp_path: Path, odd_files: ModuleType) -> None:
    path = tmp_path / "a.png"
    values = (0, 32896, 65535, 65535, 257, 0)
    rows = b"\0" + b"".join(value.to_bytes(2, "big") for value in values)
    path.write_bytes(odd_files.png_of(2, 1, 16, 2, rows))
    assert list(read(prepare(path, KEEP, TAKEN)).tobytes()) == [0, 128, 255, 255, 1, 0]


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "TIFF"])
def test_the_first_frame_is_sent(kind: str, tmp_path: Path, odd_files: ModuleType) -> None:
    path = tmp_path / "a"
    first, second = Image.new("RGB", (9, 9), (250, 0, 0)), Image.new("RGB", (9, 9), (0, 0, 250))
    path.write_bytes(odd_files.encoded(first, kind, save_all=True, append_images=[second]))
    image = prepare(path, KEEP, TAKEN)
    assert image.changes[0] == "first_frame"
    pixel = read(image).convert("RGB").getpixel((4, 4))
    assert isinstance(pixel, tuple)
    assert pixel[0] > 200
    assert pixel[2] < 50
    assert getattr(read(image), "is_animated", False) is False


def test_cmyk_becomes_rgb(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    Image.new("CMYK", (16, 16), (0, 255, 255, 0)).save(path)
    image = prepare(path, KEEP, TAKEN)
    assert image.changes == ("mode:CMYK->RGB", "convert:JPEG->PNG")
    pixel = read(image).getpixel((8, 8))
    assert isinstance(pixel, tuple)
    assert pixel[0] > 250
    assert max(pixel[1:]) < 5


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "1", "L"])
def test_pixels_survive_a_lossless_conversion(mode: str, tmp_path: Path, odd_files: ModuleType) -> None:
    source = odd_files.picture(mode=mode)
    if mode in ("RGBA", "LA"):
        source.putalpha(odd_files.picture(mode="L"))
    path = tmp_path / "a.png"
    source.save(path)
    for media_type in ("image/png", "image/webp"):
        limits = SendLimits(frozenset({media_type}), None, None)
        image = read(prepare(path, PixelPolicy(), limits))
        assert image.convert("RGBA").tobytes() == source.convert("RGBA").tobytes(), media_type


@pytest.mark.parametrize("mode", ["P", "RGB", "L"])
def test_a_transparent_color_survives(mode: str, tmp_path: Path, odd_files: ModuleType) -> None:
    path = tmp_path / "a.png"
    source = odd_files.picture(mode=mode)
    source.save(path, transparency=source.getpixel((0, 0)))
    assert prepare(path, KEEP, TAKEN).changes == ()
    image = read(prepare(path, KEEP, SendLimits(frozenset({"image/webp"}), None, None)))
    assert image.getpixel((0, 0)) == (*source.convert("RGB").getpixel((0, 0)), 0)
    assert image.getpixel((47, 31)) == (*source.convert("RGB").getpixel((47, 31)), 255)


def test_a_transparent_16_bit_color_survives(tmp_path: Path, odd_files: ModuleType) -> None:
    path = tmp_path / "a.png"
    gray = b"\0" + bytes.fromhex("80008001")
    path.write_bytes(odd_files.png_of(2, 1, 16, 0, gray, clear=bytes.fromhex("8000")))
    assert read(prepare(path, KEEP, TAKEN)).tobytes() == bytes([128, 0, 128, 255])
    color = b"\0" + bytes.fromhex("ff0001000200") + bytes.fromhex("000001000200")
    path.write_bytes(odd_files.png_of(2, 1, 16, 2, color, clear=bytes.fromhex("ff0001000200")))
    assert read(prepare(path, KEEP, TAKEN)).tobytes() == bytes([255, 1, 2, 0, 0, 1, 2, 255])


def test_alpha_is_flattened_on_white_only_where_it_must(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    Image.new("RGBA", (8, 8), (0, 0, 0, 0)).save(path)
    assert prepare(path, KEEP, TAKEN).changes == ()
    image = prepare(path, PixelPolicy(format="jpeg"), TAKEN)
    assert image.changes == ("alpha:flattened-white", "convert:PNG->JPEG", "jpeg-quality:95")
    assert read(image).getpixel((4, 4)) == (255, 255, 255)


def test_icc_profile_is_carried(tmp_path: Path, odd_files: ModuleType) -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    path = tmp_path / "a.tiff"
    odd_files.picture().save(path, icc_profile=profile)
    for policy in (KEEP, PixelPolicy(format="jpeg")):
        assert read(prepare(path, policy, TAKEN)).info["icc_profile"] == profile
    odd_files.picture(mode="L").save(path, icc_profile=profile)
    image = prepare(path, KEEP, TAKEN)
    assert "icc:dropped" in image.changes
    assert "icc_profile" not in read(image).info


def test_a_broken_cmyk_profile_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "a.jpg"
    profile = bytes(16) + b"CMYK" + bytes(200)
    Image.new("CMYK", (16, 16), (0, 255, 255, 0)).save(path, icc_profile=profile)
    image = prepare(path, KEEP, TAKEN)
    assert image.changes == ("mode:CMYK->RGB", "icc:dropped", "convert:JPEG->PNG")
    assert "icc_profile" not in read(image).info


def test_metadata_stays_behind_when_encoded_anew(tmp_path: Path, odd_files: ModuleType) -> None:
    path = tmp_path / "a.jpg"
    exif = Image.Exif()
    exif[0x010F] = "SECRET CAMERA"
    odd_files.picture().save(path, exif=exif, comment=b"SECRET COMMENT")
    assert b"SECRET" in prepare(path, KEEP, TAKEN).sent
    for policy in (PixelPolicy(format="png"), PixelPolicy(max_side=20)):
        assert b"SECRET" not in prepare(path, policy, TAKEN).sent


def test_samples_without_a_range_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tiff"
    for mode in ("F", "I"):
        Image.new(mode, (4, 4)).save(path)
        with pytest.raises(ImageError, match="no fixed range") as caught:
            prepare(path, KEEP, TAKEN)
        assert caught.value.kind == "unsupported"
