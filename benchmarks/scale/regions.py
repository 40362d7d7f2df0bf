"""CPU and memory of looking closer: 12 parts of images of 12 megapixels, in runs of 100 and of 1,000 of them.

The model is `noop`, which names no places, so that each image is enlarged in tiles all over. The bare decoder
is measured beside it: what has to be done to see the pixels at all.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image

from benchmarks.common import apart, figure, peak_memory_mb, photo_jpeg, sized

SIZE = (4_000, 3_000)
STEPS = (sized(100, 2), sized(1_000, 4))
ROUNDS = sized(5, 1)


def child(folder: str, run: str, limit: str) -> None:
    import uncanny

    began = time.process_time()
    done = uncanny.annotate(folder, model="noop", out=run, limit=int(limit), progress=False)
    cpu = time.process_time() - began
    regions = {len((record.model_extra or {})["regions"]) for record in done.annotations}
    print(json.dumps([min(regions), max(regions), cpu, peak_memory_mb()]))


def decoding(data: bytes) -> float:
    """CPU seconds to decode an image once, at best."""
    times = []
    for _ in range(ROUNDS):
        began = time.process_time()
        with Image.open(io.BytesIO(data)) as image:
            image.load()
        times.append(time.process_time() - began)
    return min(times)


def main() -> None:
    data = photo_jpeg(0, SIZE)
    alone = decoding(data)
    figure(f"the decoder alone, once, CPU an image of {len(data) / 1e6:.1f} MB", alone, "s")
    with tempfile.TemporaryDirectory() as tmp:
        folder = Path(tmp) / "images"
        folder.mkdir()
        for number in range(max(STEPS)):
            # Different bytes, equal pixels: a comment behind the image.
            (folder / f"{number:04d}.jpg").write_bytes(data + f"number {number}".encode())
        for limit in STEPS:
            began = time.perf_counter()
            least, most, cpu, peak = apart(
                "benchmarks.scale.regions", folder, Path(tmp) / f"run-{limit}", limit
            )
            wall, what = time.perf_counter() - began, f"{limit:,} images, {least} to {most} parts each"
            figure(f"{what}, CPU an image", cpu / limit, "s", 0.4)
            figure(f"{what}, CPU an image", cpu / limit, "s", alone, "the decoder alone", wanted=None)
            figure(f"{what}, peak memory", peak, "MB")
            figure(f"{what}, wall time", wall, "s")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        main()
