"""Memory over 20,000 different images by schedule, and how long resuming the finished run takes.

Then memory over photographs of 6 megapixels, of which `packed` sends enlarged parts, by calls at once.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.common import apart, fake_server, figure, peak_memory_mb, photo_jpeg, sized, write_folder

IMAGES = sized(20_000, 40)
STEPS = (sized(1_000, 10), IMAGES)
SCHEDULES = ("packed", "paper")
PHOTOGRAPHS, PIXELS = sized(60, 2), (3_000, 2_000)
CONCURRENCIES = (8, 16, 32)


def timed(folder: Path, run: Path, schedule: str, limit: int) -> tuple[float, float]:
    """Wall seconds and peak MB of one `uncanny annotate`, as its own process."""
    began = time.perf_counter()
    options = ("--model", "noop", "--schedule", schedule, "--limit", limit)
    peak = apart("benchmarks.scale.memory", folder, run, *options)
    return time.perf_counter() - began, peak


def photographs(folder: Path) -> None:
    """Peak memory of a run over large pictures."""
    images = folder / "photographs"
    images.mkdir()
    for number in range(PHOTOGRAPHS):
        (images / f"{number}.jpg").write_bytes(photo_jpeg(number, PIXELS))
    os.environ["OPENAI_API_KEY"] = "any"
    for concurrency in CONCURRENCIES:
        with fake_server("--latency-ms", "400") as url:
            asked = ("--model", "openai/gpt-4o", "--base-url", f"{url}/v1", "--concurrency", concurrency)
            peak = apart("benchmarks.scale.memory", images, folder / f"large-{concurrency}", *asked)
        figure(f"{PHOTOGRAPHS} photographs, {concurrency} calls at once, peak memory", peak, "MB")


def child(folder: str, run: str, *options: str) -> None:
    from uncanny.cli import main as uncanny

    try:
        uncanny(["annotate", folder, "-o", run, "--quiet", "--no-report", *options])
    except SystemExit as end:
        if end.code != 0:
            raise
    print(json.dumps(peak_memory_mb()))


def main() -> None:
    with tempfile.TemporaryDirectory() as tmp:
        folder = Path(tmp) / "images"
        write_folder(folder, IMAGES, None)
        for schedule in SCHEDULES:
            for limit in STEPS:
                run = Path(tmp) / f"run-{schedule}-{limit}"
                seconds, peak = timed(folder, run, schedule, limit)
                figure(f"{schedule}, {limit:,} images, peak memory", peak, "MB", 400)
                figure(f"{schedule}, {limit:,} images, wall time", seconds, "s")
            seconds, peak = timed(folder, run, schedule, IMAGES)
            figure(f"{schedule}, resuming the finished run", seconds, "s", 3)
            figure(f"{schedule}, resuming the finished run, peak memory", peak, "MB")
        photographs(Path(tmp))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        main()
