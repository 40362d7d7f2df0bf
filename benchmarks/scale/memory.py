"""Memory over 20,000 different images by schedule, and how long resuming the finished run takes."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.common import apart, figure, peak_memory_mb, sized, write_folder

IMAGES = sized(20_000, 40)
STEPS = (sized(1_000, 10), IMAGES)
SCHEDULES = ("packed", "paper")


def timed(folder: Path, run: Path, schedule: str, limit: int) -> tuple[float, float]:
    """Wall seconds and peak MB of one `uncanny annotate`, as its own process."""
    began = time.perf_counter()
    peak = apart("benchmarks.scale.memory", folder, run, schedule, limit)
    return time.perf_counter() - began, peak


def child(folder: str, run: str, schedule: str, limit: str) -> None:
    from uncanny.cli import main as uncanny

    try:
        options = ("--schedule", schedule, "--limit", limit, "--quiet", "--no-report")
        uncanny(["annotate", folder, "--model", "noop", "-o", run, *options])
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


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        main()
