"""CPU an image when models cost nothing: graph, prompts, reading, records; with and without answer cache."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.pictures import write_folder

IMAGES = 200
ROUNDS = 5


def run(folder: Path, run: Path, *, cache: bool) -> tuple[float, int]:
    """CPU milliseconds an image, and calls an image."""
    from uncanny.agents import AnnotateConfig
    from uncanny.cli.session import run_here
    from uncanny.eval.annotate.run import AnnotateTask
    from uncanny.models.registry import parse_model
    from uncanny.records.run_folder import RunFolder
    from uncanny.runs.config import ModelOptions, RunOptions

    options = RunOptions(concurrency=64, cache=cache)
    models = ModelOptions(parse_model("noop"))
    # The schedule with the most calls an image.
    task = AnnotateTask(
        folder=RunFolder(run),
        paths=[folder],
        models=models,
        options=options,
        config=AnnotateConfig(schedule="paper"),
    )
    began = time.process_time()
    end = run_here(task, quiet=True)
    spent = time.process_time() - began
    assert end.progress.statuses["ok"] == IMAGES
    return 1000 * spent / IMAGES, end.progress.spending.calls // IMAGES


def main() -> None:
    figures: dict[str, list[float]] = {"without answer cache": [], "with answer cache": []}
    with tempfile.TemporaryDirectory() as tmp:
        write_folder(Path(tmp) / "images", IMAGES, None)
        run(Path(tmp) / "images", Path(tmp) / "warm", cache=True)
        for turn in range(ROUNDS):
            for name, found in figures.items():
                spent, calls = run(
                    Path(tmp) / "images", Path(tmp) / f"{name}-{turn}", cache=name == "with answer cache"
                )
                assert calls == 52
                found.append(spent)
    print(f"{IMAGES} images, 8 objects, 52 calls each, from file to record, median of {ROUNDS} rounds")
    for (name, found), wanted in zip(figures.items(), (6, 12), strict=True):
        print(f"  {name:<22} {statistics.median(found):6.2f} ms CPU an image   (wanted: at most {wanted})")


if __name__ == "__main__":
    main()
