"""What measurements share: images to measure with, and the fake server.

The server is a process of its own, so that its work is not counted as ours.
"""

from __future__ import annotations

import io
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image


def peak_memory_mb() -> float:
    """Of this process alone, in MiB: `ru_maxrss` of `getrusage` begins with what its parent had."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def noise_png(number: int, side: int) -> bytes:
    """A PNG of random pixels: it does not compress, so it has about 3 · side² bytes."""
    pixels = random.Random(number).randbytes(3 * side * side)
    file = io.BytesIO()
    Image.frombytes("RGB", (side, side), pixels).save(file, "PNG", compress_level=1)
    return file.getvalue()


def photo_jpeg(number: int, size: tuple[int, int]) -> bytes:
    """A JPEG with as much to see everywhere, and as many bytes, as a photograph of this size."""
    width, height = size[0] // 8, size[1] // 8
    coarse = Image.frombytes("RGB", (width, height), random.Random(number).randbytes(3 * width * height))
    file = io.BytesIO()
    coarse.resize(size, Image.Resampling.BICUBIC).save(file, "JPEG", quality=92)
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


@contextmanager
def fake_server(*options: str) -> Iterator[str]:
    """Yields its base URL without `/v1`; it is ended by its own pid."""
    command = [sys.executable, "-m", "uncanny", "fake-server", "--max-seconds", "900", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        try:
            yield line.rpartition(" ")[2].strip()
        finally:
            server.terminate()
            server.wait(10)
