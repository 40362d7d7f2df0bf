"""CPU and memory of looking closer: 12 parts of images of 12 megapixels, in runs of 100 and of 1,000 of them.

The model is `noop`, which names no places, so that each image is enlarged in tiles all over. The bare decoder
is measured beside it: what has to be done to see the pixels at all.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image

from benchmarks.common import peak_memory_mb, photo_jpeg

SIZE = (4_000, 3_000)
STEPS = (100, 1_000)
ROUNDS = 5


def child(folder: str, run: str, limit: str) -> None:
    import uncanny

    began = time.process_time()
    done = uncanny.annotate(folder, model="noop", out=run, limit=int(limit), progress=False)
    cpu = time.process_time() - began
    regions = {len((record.model_extra or {})["regions"]) for record in done.annotations}
    print(min(regions), max(regions), cpu, peak_memory_mb())


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
    print(f"  the decoder alone: {decoding(data):.2f} s CPU an image, once ({len(data) / 1e6:.1f} MB)")
    with tempfile.TemporaryDirectory() as tmp:
        folder = Path(tmp) / "images"
        folder.mkdir()
        for number in range(max(STEPS)):
            # Different bytes, equal pixels: a comment behind the image.
            (folder / f"{number:04d}.jpg").write_bytes(data + f"number {number}".encode())
        for limit in STEPS:
            arguments = (str(folder), str(Path(tmp) / f"run-{limit}"), str(limit))
            command = [sys.executable, "-m", "benchmarks.regions", "--child", *arguments]
            began = time.perf_counter()
            out = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
            least, most, cpu, peak = int(out[0]), int(out[1]), float(out[2]), float(out[3])
            print(
                f"  {limit:>5,} images, {least} to {most} parts each: {cpu / limit:.2f} s CPU an image "
                f"(wanted: at most 0.4), peak {peak:.0f} MB, {time.perf_counter() - began:.0f} s"
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        main()
