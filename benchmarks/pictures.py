"""Images to measure with."""

from __future__ import annotations

import io
import random
from pathlib import Path

from PIL import Image


def noise_png(number: int, side: int) -> bytes:
    """A PNG of random pixels: it does not compress, so it has about 3 · side² bytes."""
    pixels = random.Random(number).randbytes(3 * side * side)
    file = io.BytesIO()
    Image.frombytes("RGB", (side, side), pixels).save(file, "PNG", compress_level=1)
    return file.getvalue()


def tiny_png(number: int) -> bytes:
    """An 8×8 PNG, different for every number."""
    file = io.BytesIO()
    Image.frombytes("RGB", (8, 8), random.Random(number).randbytes(192)).save(file, "PNG")
    return file.getvalue()


def write_folder(folder: Path, count: int, side: int | None) -> None:
    """`count` different images, noise of `side` pixels or tiny ones, a thousand to a folder."""
    for number in range(count):
        place = folder / f"{number // 1000:03d}"
        place.mkdir(parents=True, exist_ok=True)
        data = tiny_png(number) if side is None else noise_png(number, side)
        (place / f"{number:06d}.png").write_bytes(data)
