"""A folder of good, odd and broken image files, with what is to become of each.

Importable by path from any test. What is expected holds for a provider that takes JPEG, PNG, WebP and GIF
and for the default limits on size.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any, Literal, NamedTuple

from PIL import Image, features


class Expectation(NamedTuple):
    """`kind` says why a file is unreadable. `changes` are those on record, None where they do not matter."""

    outcome: Literal["ok", "unreadable", "not_discovered"]
    kind: str | None = None
    changes: tuple[str, ...] | None = None


SAME = Expectation("ok", changes=())
OK = Expectation("ok")
NOT_DISCOVERED = Expectation("not_discovered")
Odd = Iterator[tuple[str, bytes, Expectation]]


def changed(*changes: str) -> Expectation:
    return Expectation("ok", None, changes)


def make_odd_folder(folder: Path) -> dict[str, Expectation]:
    """Write everything below `folder`; the keys are paths relative to it, and may hold surrogates.

    What the file system or this build of Pillow cannot hold is left out.
    """
    expected: dict[str, Expectation] = {}
    for name, data, expectation in (*_good(), *_odd(), *_turned(), *_named(), *_broken(), *_no_images()):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            path.write_bytes(data)
        except (OSError, UnicodeError):  # a name this file system does not take
            continue
        expected[name] = expectation
    return expected | _special(folder)


def picture(width: int = 48, height: int = 32, mode: str = "RGB") -> Image.Image:
    """Noise with a red top left and a blue bottom right quarter; the same on every call."""
    noise = bytes((x * 37 + y * 101 + x * y * 13) % 256 for y in range(height) for x in range(width))
    image = Image.frombytes("L", (width, height), noise).convert("RGB")
    image.paste((220, 20, 30), (0, 0, width // 2, height // 2))
    image.paste((20, 30, 220), (width // 2, height // 2, width, height))
    return image.convert(mode)


def encoded(image: Image.Image, format: str, **options: Any) -> bytes:
    out = BytesIO()
    image.save(out, format, **options)
    return out.getvalue()


def png_of(
    width: int, height: int, depth: int, color: int, rows: bytes, interlaced: bool = False, clear: bytes = b""
) -> bytes:
    """A PNG from ready scan lines (each with its filter byte), for what Pillow cannot write."""
    header = struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, int(interlaced))
    parts = (b"IHDR" + header, *([b"tRNS" + clear] if clear else []), b"IDAT" + zlib.compress(rows), b"IEND")
    chunks = (struct.pack(">I", len(each) - 4) + each + struct.pack(">I", zlib.crc32(each)) for each in parts)
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def interlaced_png(image: Image.Image) -> bytes:
    """An Adam7 PNG of a gray image."""
    passes = (
        (0, 0, 8, 8),
        (4, 0, 8, 8),
        (0, 4, 4, 8),
        (2, 0, 4, 4),
        (0, 2, 2, 4),
        (1, 0, 2, 2),
        (0, 1, 1, 2),
    )
    rows, data = b"", image.tobytes()
    for left, top, across, down in passes:
        for y in range(top, image.height, down):
            line = data[y * image.width + left : (y + 1) * image.width : across]
            rows += b"\0" + line if line else b""
    return png_of(image.width, image.height, 8, 0, rows, interlaced=True)


def deep_gray(format: str) -> bytes:
    """16-bit gray, 256 × 1, rising from 0 to 65,280 in steps of 256."""
    values = struct.pack("<256H", *range(0, 65536, 256))
    return encoded(Image.frombytes("I;16", (256, 1), values), format)


def with_orientation(format: str, orientation: int) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return encoded(picture(), format, exif=exif.tobytes(), **({"quality": 95} if format == "JPEG" else {}))


def _good() -> Odd:
    image = picture()
    yield "photo.jpg", encoded(image, "JPEG"), SAME
    yield "drawing.png", encoded(image, "PNG"), SAME
    yield "web.webp", encoded(image, "WEBP"), SAME
    yield "still.gif", encoded(image, "GIF"), SAME
    yield "scan.bmp", encoded(image, "BMP"), changed("convert:BMP->PNG")
    yield "page.tiff", encoded(image, "TIFF"), changed("convert:TIFF->PNG")
    yield "deep/er/inside.png", encoded(picture(20, 20), "PNG"), SAME
    if features.check("avif"):
        yield "modern.avif", encoded(image, "AVIF"), changed("convert:AVIF->PNG")


def _odd() -> Odd:
    image, more = picture(), [picture(48, 32, "RGB").rotate(180)]
    yield "pixel.png", encoded(picture(1, 1), "PNG"), SAME
    yield "tall.png", encoded(picture(1, 5000), "PNG"), SAME
    frames = {"save_all": True, "append_images": more}
    moves = changed("first_frame", "mode:P->RGB", "convert:GIF->PNG")
    yield "moves.gif", encoded(image, "GIF", **frames), moves
    yield "moves.webp", encoded(image, "WEBP", **frames), changed("first_frame", "convert:WEBP->PNG")
    yield "moves.png", encoded(image, "PNG", **frames), changed("first_frame")
    yield "pages.tiff", encoded(image, "TIFF", **frames), changed("first_frame", "convert:TIFF->PNG")
    yield "interlaced.png", interlaced_png(picture(23, 17, "L")), SAME
    yield "progressive.jpg", encoded(image, "JPEG", progressive=True), SAME
    yield "cmyk.jpg", encoded(picture(mode="CMYK"), "JPEG"), changed("mode:CMYK->RGB", "convert:JPEG->PNG")
    yield "cmyk.tiff", encoded(picture(mode="CMYK"), "TIFF"), OK
    yield "lzw.tiff", encoded(image, "TIFF", compression="tiff_lzw"), OK
    yield "fax.tiff", encoded(picture(mode="1"), "TIFF", compression="group4"), OK
    yield "gray.jpg", encoded(picture(mode="L"), "JPEG"), SAME
    for mode in ("L", "LA", "1", "P", "RGBA"):
        yield f"mode_{mode}.png", encoded(picture(mode=mode), "PNG"), SAME
    yield "see_through.png", encoded(picture(mode="P"), "PNG", transparency=0), SAME
    yield "see_through.webp", encoded(picture(mode="RGBA"), "WEBP", lossless=True), SAME
    yield "deep_gray.png", deep_gray("PNG"), changed("depth:16->8")
    yield "deep_gray.tiff", deep_gray("TIFF"), changed("depth:16->8", "convert:TIFF->PNG")
    yield "deep_rgb.png", png_of(2, 1, 16, 2, bytes(13)), changed("depth:16->8")
    yield "trailing.png", encoded(image, "PNG") + b"\0garbage" * 9, SAME
    yield "broken_exif.jpg", encoded(image, "JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\x7f"), SAME
    jpeg = encoded(image, "JPEG")
    yield "garbage.jpg", jpeg[:-2] + b"\x12\x34garbage" + jpeg[-2:], SAME


def _turned() -> Odd:
    for turn in range(2, 9):
        expected = changed(f"orientation:{turn}", "convert:JPEG->PNG")
        yield f"turned_{turn}.jpg", with_orientation("JPEG", turn), expected
    yield "turned.png", with_orientation("PNG", 6), changed("orientation:6")
    yield "turned.webp", with_orientation("WEBP", 3), OK
    yield "turned.tiff", with_orientation("TIFF", 8), OK
    for value in (0, 1, 9):
        yield f"unturned_{value}.jpg", with_orientation("JPEG", value), SAME


def _named() -> Odd:
    png, jpeg = encoded(picture(), "PNG"), encoded(picture(), "JPEG")
    yield "really_png.jpg", png, SAME
    yield "really_jpeg.png", jpeg, SAME
    odd = ["UPPER.PNG", "with space.png", "line\nbreak.png", "fox🦊.png", "עברית.png", "\u202egnp.png"]
    odd += ["-rf.png", "--help.png", "50%.png", "a'b\"c.png", "x" * 251 + ".png", "tab\there.png"]
    odd += [os.fsdecode(b"latin\xff\xe9.png"), "x.png/inside.png", "two.dots.PnG", "*?.png", "cafe\u0301.png"]
    for name in odd:
        yield name, png, SAME
    yield "photo.heic", png, SAME
    for name in (".hidden.png", ".hidden/in.png", "no_suffix", "notes.txt", "png", "a.png~"):
        yield name, png, NOT_DISCOVERED


def _broken() -> Odd:
    image, cut = picture(120, 90), Expectation("unreadable", "truncated")
    kinds = ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", *(["AVIF"] if features.check("avif") else [])]
    for kind in kinds:
        data = encoded(image, kind)
        yield f"half.{kind.lower()}", data[: len(data) // 2], cut
    png = encoded(image, "PNG")
    yield "header_only.png", png[:33], cut
    yield "no_rows.png", png_of(9, 9, 8, 0, b""), cut
    yield "no_end.png", png[:-12], cut
    yield "signature_only.png", png[:8], cut
    yield "header_only.jpg", encoded(image, "JPEG")[:20], cut
    yield "signature_only.gif", b"GIF89a", cut
    damaged = Expectation("unreadable", "damaged")
    yield "crc.png", png[:60] + bytes([png[60] ^ 255]) + png[61:], damaged
    yield "no_size.png", png_of(0, 0, 8, 0, b""), damaged
    bomb = Expectation("unreadable", "bomb")
    yield "bomb.png", png_of(60_000, 60_000, 8, 2, b"\0" * 9), bomb
    yield "bomb_whole.png", png_of(12_000, 10_000, 1, 0, bytes(1501 * 10_000)), bomb
    yield (
        "bomb.bmp",
        b"BM" + struct.pack("<IIIIiiHHIIIIII", 99, 0, 54, 40, 50_000, 50_000, 1, 24, *[0] * 6),
        bomb,
    )
    yield "bomb.gif", b"GIF89a" + struct.pack("<HHBBB", 1, 1, 0, 0, 0) + b"," + b"\xff" * 8 + b"\0\2;", bomb


def _no_images() -> Odd:
    yield "empty.png", b"", Expectation("unreadable", "empty")
    no = Expectation("unreadable", "not_an_image")
    yield "random.png", bytes((n * n * 7 + n * 3 + 5) % 251 for n in range(3000)), no
    yield "page.jpg", b"<!DOCTYPE html>\n<html><body>404 Not Found</body></html>", no
    yield "archive.png", b"PK\x03\x04" + bytes(200), no
    yield "text.png", b"this is no picture", no
    yield "zeros.jpg", bytes(4096), no
    yield "bom.png", b"\xef\xbb\xbf" + encoded(picture(), "PNG"), no
    yield "pointer.png", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", no
    yield "one_byte.jpg", b"\xff", no
    other = Expectation("unreadable", "unsupported")
    yield "float.tiff", encoded(Image.new("F", (4, 4), 0.5), "TIFF"), other
    yield "vector.png", b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>', other
    # With the plugin that reads this format it turns out to be broken.
    phone = Expectation("unreadable", "damaged" if find_spec("pillow_heif") else "unsupported")
    yield "phone.jpg", struct.pack(">I", 24) + b"ftypheic\0\0\0\0mif1heic" + bytes(99), phone


def _special(folder: Path) -> dict[str, Expectation]:
    expected = {"linked.png": SAME, "nowhere.png": Expectation("unreadable", "missing")}
    (folder / "linked.png").symlink_to("drawing.png")
    (folder / "nowhere.png").symlink_to("does_not_exist.png")
    (folder / "loop.png").symlink_to("pool.png")
    (folder / "pool.png").symlink_to("loop.png")
    expected |= dict.fromkeys(("loop.png", "pool.png"), Expectation("unreadable", "symlink_loop"))
    (folder / "deep" / "again").symlink_to("..", target_is_directory=True)
    with (folder / "huge.png").open("wb") as file:
        file.truncate(100 * 2**20 + 1)  # without a byte on disk, where the file system can
    expected["huge.png"] = Expectation("unreadable", "too_large")
    locked = folder / "locked.png"
    locked.write_bytes(encoded(picture(), "PNG"))
    locked.chmod(0)
    # Who may read everything, as root may, reads this too.
    expected["locked.png"] = SAME if os.access(locked, os.R_OK) else Expectation("unreadable", "permission")
    if hasattr(os, "mkfifo"):
        os.mkfifo(folder / "pipe.png")
        expected["pipe.png"] = Expectation("unreadable", "not_a_file")
    return expected
