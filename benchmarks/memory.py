"""Memory over 20,000 different images by schedule, and how long resuming the finished run takes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.common import peak_memory_mb, write_folder

IMAGES = 20_000
STEPS = (1_000, 20_000)
SCHEDULES = ("packed", "paper")


def timed(folder: Path, run: Path, schedule: str, limit: int) -> tuple[float, float]:
    """Wall seconds and peak MB of one `uncanny annotate`, as its own process."""
    arguments = (str(folder), str(run), schedule, str(limit))
    command = [sys.executable, "-m", "benchmarks.memory", "--child", *arguments]
    began = time.perf_counter()
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return time.perf_counter() - began, float(out.split()[-1])


def child(folder: str, run: str, schedule: str, limit: str) -> None:
    from uncanny.cli import main as uncanny

    try:
        options = ("--schedule", schedule, "--limit", limit, "--quiet", "--no-report")
        uncanny(["annotate", folder, "--model", "noop", "-o", run, *options])
    except SystemExit as end:
        if end.code != 0:
            raise
    print(peak_memory_mb())


def main() -> None:
    with tempfile.TemporaryDirectory() as tmp:
        folder = Path(tmp) / "images"
        write_folder(folder, IMAGES, None)
        for schedule in SCHEDULES:
            print(f"{schedule}:")
            for limit in STEPS:
                run = Path(tmp) / f"run-{schedule}-{limit}"
                seconds, peak = timed(folder, run, schedule, limit)
                print(
                    f"  {limit:>6,} images: peak {peak:4.0f} MB, {seconds:6.1f} s   (wanted: at most 400 MB)"
                )
            seconds, peak = timed(folder, run, schedule, IMAGES)
            print(f"  resuming the finished run: {seconds:.2f} s, peak {peak:.0f} MB   (wanted: at most 3 s)")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        main()
