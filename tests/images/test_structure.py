"""Files that are built to keep a decoder busy are refused before it begins, and real ones are not."""

from __future__ import annotations

import time
from contextlib import suppress
from functools import cache
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.images.bombs import BOMBS, encoded, gif, jpeg_of_scans, png, tiff
from uncanny.demo.scenes import DATA
from uncanny.errors import ImageError
from uncanny.images.decode import decode, read_header
from uncanny.images.encode import PixelPolicy, SendLimits
from uncanny.images.prepared import prepare, read_rgb, shrunk, stored_size, thumbnail
from uncanny.images.structure import MOST_SCANS, check_structure, jxl_size

ALL = SendLimits(frozenset({"image/png", "image/jpeg"}), None, None)


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_what_takes_long_is_refused_with_what_there_is_too_much_of(name: str, tmp_path: Path) -> None:
    words, make = BOMBS[name]
    path = tmp_path / "bomb"
    path.write_bytes(make())
    with pytest.raises(ImageError, match=words) as error:
        prepare(path, PixelPolicy(), ALL)
    assert (error.value.kind, error.value.remedy) == (
        "bomb",
        "If it is a real picture, save it anew with another program.",
    )
    assert "more than" in error.value.message
    with pytest.raises(ImageError, match=words):
        read_rgb(path)
    assert thumbnail(path) is None
    assert shrunk(path, 100) is None


@pytest.mark.parametrize("name", [name for name in BOMBS if "scans" not in name])
def test_nor_is_more_than_a_piece_of_it_read_for_its_size(name: str, tmp_path: Path) -> None:
    path = tmp_path / "bomb"
    path.write_bytes(BOMBS[name][1]())
    assert stored_size(path) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_to_find_out_takes_no_time(name: str) -> None:
    file = BytesIO(BOMBS[name][1]())
    start = time.process_time()
    with pytest.raises(ImageError):
        check_structure(file)
    assert time.process_time() - start < 2


@pytest.mark.parametrize("scans", [1, 10, MOST_SCANS])
def test_pictures_of_fewer_scans_are_decoded(scans: int) -> None:
    header = read_header(jpeg_of_scans(scans), 10**6)
    assert decode(jpeg_of_scans(scans), header).image.size == (64, 48)
    with pytest.raises(ImageError, match="more than 100 scans"):
        read_header(jpeg_of_scans(MOST_SCANS + 1), 10**6)


def test_a_thumbnail_within_a_file_does_not_count(tmp_path: Path) -> None:
    """EXIF and comments may hold whole JPEGs; only scans of the picture itself count."""
    data = encoded("JPEG")
    within = b"\xff\xfe" + (60_002).to_bytes(2, "big") + b"\xff\xda" * 30_000
    path = tmp_path / "a.jpg"
    path.write_bytes(data[:2] + within + data[2:])
    assert prepare(path, PixelPolicy(), ALL).changes == ()


@cache
def real_files() -> dict[str, bytes]:
    noise = Image.effect_noise((300, 200), 90).convert("RGB")

    def of(format: str, **options: object) -> bytes:
        file = BytesIO()
        noise.save(file, format, **options)
        return file.getvalue()

    frames = [noise.rotate(turn) for turn in range(0, 50, 10)]
    return {
        "progressive": of("JPEG", progressive=True, quality=97),
        "baseline with restarts": of("JPEG", restart_marker_rows=1),
        "jpeg with a profile": of("JPEG", icc_profile=b"\0" * 300_000, comment=b"x" * 60_000),
        "png": of("PNG"),
        "animated png": of("PNG", save_all=True, append_images=frames),
        "gif": of("GIF"),
        "animated gif": of("GIF", save_all=True, append_images=frames),
        "tiff": of("TIFF"),
        "tiff of strips": of("TIFF", strip_size=300, compression="tiff_lzw"),
        "large tiff": of("TIFF", big_tiff=True),
        "bmp": of("BMP"),
        "webp": of("WEBP"),
        "avif": of("AVIF"),
        "made png": png(),
        "made gif": gif(),
        "made tiff": tiff({}, 4),
        "made large tiff": tiff({}, 4, big=True),
        "tiff with a broken tag": tiff({9000: (7, 10**9), 9001: (4, 10**8)}, 8),
    }


@pytest.mark.parametrize("name", real_files())
def test_real_files_are_read_as_before(name: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(real_files()[name])
    prepared = prepare(path, PixelPolicy(), ALL)
    assert stored_size(path) == (prepared.width, prepared.height)


def test_the_bundled_pictures_are_read() -> None:
    for path in sorted((DATA / "images").iterdir()):
        with path.open("rb") as file:
            check_structure(file)


@given(st.binary(max_size=300), st.sampled_from(["JPEG", "PNG", "GIF", "TIFF", "BMP", "WEBP", None]))
def test_of_any_bytes_nothing_else_is_raised(data: bytes, name: str | None) -> None:
    heads = {"JPEG": b"\xff\xd8\xff", "PNG": b"\x89PNG\r\n\x1a\n", "GIF": b"GIF89a", "TIFF": b"II*\0"}
    file = BytesIO(heads.get(str(name), b"") + data)
    with suppress(ImageError):
        check_structure(file, name)  # type: ignore[arg-type]
    assert file.tell() == 0


@given(st.integers(1, 70_000), st.integers(1, 70_000), st.booleans())
def test_jpeg_xl_says_its_size_ahead_of_its_pixels(width: int, height: int, boxed: bool) -> None:
    """By a header written here after the standard, in the plain form and in that of a container."""
    bits = f"{0b11:02b}"[::-1] + f"{height - 1:030b}"[::-1] + "000" + "11" + f"{width - 1:030b}"[::-1] + "1"
    value = int(("0" + bits)[::-1], 2)
    stream = b"\xff\x0a" + value.to_bytes(12, "little")
    if boxed:
        box = (len(stream) + 8).to_bytes(4, "big") + b"jxlc" + stream
        stream = b"\0\0\0\x0cJXL \r\n\x87\n" + b"\0\0\0\x14ftypjxl \0\0\0\0jxl " + box
    assert jxl_size(BytesIO(stream)) == (width, height)


def test_jpeg_xl_of_its_own_encoder() -> None:
    pytest.importorskip("pillow_jxl")
    for size in ((64, 64), (33, 17), (100, 70), (900, 3), (192, 108), (8, 8)):
        for turned in (1, 6):
            exif = Image.Exif()
            exif[0x0112] = turned
            data = encoded("JXL", size, exif=exif.tobytes(), effort=1, num_threads=1)
            with Image.open(BytesIO(data)) as image:
                assert jxl_size(BytesIO(data)) == image.size


def test_jpeg_xl_that_declares_too_much_is_not_decoded() -> None:
    """A gigapixel of one color is some bytes, of which the decoder would make gigabytes at once."""
    pytest.importorskip("pillow_jxl")
    data = bytearray(encoded("JXL", (300, 300)))
    at = data.index(b"\xff\x0a") + 2
    assert jxl_size(BytesIO(bytes(data))) == (300, 300)
    value = int("".join(reversed("0" + "11" + f"{2**29:030b}"[::-1] + "100")), 2)
    data[at : at + 5] = value.to_bytes(5, "little")
    with pytest.raises(ImageError, match="536,870,913 × 536,870,913"):
        read_header(bytes(data), 10**8)
