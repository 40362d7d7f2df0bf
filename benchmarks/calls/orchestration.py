"""CPU an image when models cost nothing: graph, prompts, reading, records; with and without answer cache.

Both schedules in turns, since other work on the machine changes what a figure is.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Final

from benchmarks.common import figure, sized, write_folder
from uncanny.agents.steps import ScheduleName

IMAGES = sized(200, 4)
ROUNDS = sized(5, 1)
# Calls of an image with eight objects.
CALLS: Final[dict[ScheduleName, int]] = {"packed": 5, "paper": 52}
# With answer cache or without, and the most that is wanted for the paper's schedule.
WANTED: Final = {False: 8, True: 12}


def run(folder: Path, run: Path, schedule: ScheduleName, *, cache: bool, images: int = IMAGES) -> float:
    """CPU milliseconds an image."""
    from uncanny.agents.config import AnnotateConfig
    from uncanny.annotation.run import AnnotateTask
    from uncanny.cli.common.session import run_here
    from uncanny.models.registry import ModelOptions, parse_model
    from uncanny.records.run_folder import RunFolder
    from uncanny.runs.parameters import RunOptions

    task = AnnotateTask(
        folder=RunFolder(run),
        paths=[folder],
        models=ModelOptions(parse_model("noop")),
        options=RunOptions(concurrency=64, cache=cache),
        config=AnnotateConfig(schedule=schedule),
    )
    began = time.process_time()
    end = run_here(task, quiet=True)
    spent = time.process_time() - began
    assert end.progress.statuses["ok"] == images
    assert end.progress.spending.calls == images * CALLS[schedule], end.progress.spending.calls
    return 1000 * spent / images


def main() -> None:
    figures: dict[tuple[ScheduleName, bool], list[float]] = {
        (schedule, cache): [] for schedule in CALLS for cache in (False, True)
    }
    with tempfile.TemporaryDirectory() as tmp:
        images = Path(tmp) / "images"
        write_folder(images, IMAGES, None)
        for schedule in CALLS:
            run(images, Path(tmp) / f"warm-{schedule}", schedule, cache=True)
        for turn in range(ROUNDS):
            for (schedule, cache), spent in figures.items():
                spent.append(run(images, Path(tmp) / f"{schedule}-{cache}-{turn}", schedule, cache=cache))
    print(f"{IMAGES} images, 8 objects, from file to record, CPU an image, median of {ROUNDS} rounds")
    for schedule, calls in CALLS.items():
        for cache, wanted in WANTED.items():
            milliseconds = statistics.median(figures[schedule, cache])
            name = f"{schedule}, {calls} calls, {'with' if cache else 'without'} answer cache"
            figure(name, milliseconds, "ms", wanted)


if __name__ == "__main__":
    main()
