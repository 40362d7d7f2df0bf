"""Memory and time for images of 100 megapixels, read on six threads at once as a run reads them."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from PIL import Image

from benchmarks.common import apart, figure, peak_memory_mb, sized

SIDE = sized(10_000, 800)
THREADS = 6
FILES = 6
# What is done with them: sent as they are, or decoded and encoded anew.
CASES = {
    "PNG, sent as it is": ("png", None),
    "JPEG, sent as it is": ("jpg", None),
    "TIFF, converted": ("tiff", None),
    "PNG, scaled down": ("png", 2_048),
}


def write_images(folder: Path) -> None:
    """One picture in each format; noise, reduced so that a PNG stays below the limit on bytes."""
    picture = Image.effect_noise((SIDE // 8, SIDE // 8), 40).resize((SIDE, SIDE), Image.Resampling.NEAREST)
    coloured = Image.merge("RGB", [picture] * 3)
    coloured.save(folder / "a.png", compress_level=1)
    coloured.save(folder / "a.jpg", quality=60)
    coloured.save(folder / "a.tiff", compression="tiff_deflate")


def child(file: str, side: str) -> None:
    from uncanny.images.encode import PixelPolicy, SendLimits
    from uncanny.images.prepared import PreparedImage, prepare

    policy = PixelPolicy(max_side=int(side) or None)
    limits = SendLimits(frozenset({"image/png", "image/jpeg"}), 50 * 2**20, None)

    def one(_: int) -> PreparedImage:
        return prepare(Path(file), policy, limits)

    before = peak_memory_mb()
    began = time.perf_counter()
    with ThreadPoolExecutor(THREADS) as threads:
        for done in threads.map(one, range(FILES)):
            assert done.width == SIDE
    print(json.dumps([time.perf_counter() - began, peak_memory_mb() - before]))


def main() -> None:
    print(f"{FILES} images of {SIDE:,} × {SIDE:,} pixels on {THREADS} threads")
    with tempfile.TemporaryDirectory() as tmp:
        write_images(Path(tmp))
        for name, (suffix, side) in CASES.items():
            seconds, peak = apart("benchmarks.scale.large_images", Path(tmp) / f"a.{suffix}", side or 0)
            figure(f"{name}, peak memory", peak, "MB", 1_500)
            figure(f"{name}, wall time", seconds, "s")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        main()
