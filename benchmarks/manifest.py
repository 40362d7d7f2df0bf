"""A table with a million pictures: how long a run takes to begin and to resume, and its memory.

Each is a process of its own, up to the moment at which the first call would be made. The records of the run that
resumes are those of a real one of a thousand images, written again for the other rows.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as arrow  # type: ignore[import-untyped]
import pyarrow.parquet as parquet  # type: ignore[import-untyped]

from benchmarks.common import peak_memory_mb, tiny_png

ROWS = 1_000_000
STEPS = (1_000, ROWS)
DONE = (500_000, ROWS)
AT_ONCE = 10_000
_NUMBER = re.compile(rb"/\d{6}\"")


def write_tables(folder: Path) -> tuple[Path, Path]:
    """A table with the pictures in it, and one with their paths."""
    pictures = [tiny_png(number) for number in range(1_000)]
    (folder / "in").mkdir()
    for number, picture in enumerate(pictures):
        (folder / f"in/{number:03d}.png").write_bytes(picture)
    inside, paths = folder / "pictures.parquet", folder / "paths.parquet"
    prompts = [f"a prompt for picture {number}" for number in range(AT_ONCE)]
    cells = [pictures[number % 1_000] for number in range(AT_ONCE)]
    names = [f"in/{number % 1_000:03d}.png" for number in range(AT_ONCE)]
    for path, column in ((inside, arrow.array(cells)), (paths, arrow.array(names))):
        table = arrow.table({"image": column, "prompt": prompts})
        with parquet.ParquetWriter(path, table.schema) as writer:
            for _ in range(ROWS // AT_ONCE):
                writer.write_table(table)
    return inside, paths


def write_records(run: Path, other: Path, number: int) -> None:
    """Copy a run of a thousand images, with records for so many."""
    other.mkdir()
    (other / "run.json").write_bytes((run / "run.json").read_bytes())
    lines = (run / "annotations.jsonl").read_bytes().splitlines(keepends=True)
    with (other / "annotations.jsonl").open("wb") as file:
        for row in range(number):
            file.write(_NUMBER.sub(b'/%06d"' % row, lines[row % len(lines)], count=1))


def child(table: str, run: str, limit: str) -> None:
    """Print seconds and MB up to the first call; with the number of images still to do."""
    began = time.perf_counter()
    from uncanny.annotation.run import annotate_task
    from uncanny.annotation.parameters import AnnotateParameters
    from uncanny.runs.resume import load_run

    parameters = AnnotateParameters(model="noop", out=run, limit=int(limit), image_column="image")
    loaded = load_run(annotate_task(parameters, table))
    first = next(iter(loaded.pending), None)
    seconds = time.perf_counter() - began
    print(seconds, peak_memory_mb(), len(loaded.pending), first and first.image)


def measure(table: Path, run: Path, limit: int) -> Sequence[str]:
    command = [sys.executable, "-m", "benchmarks.manifest", "--child", str(table), str(run), str(limit)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def main() -> None:
    with tempfile.TemporaryDirectory() as tmp:
        folder = Path(tmp)
        inside, paths = write_tables(folder)
        for table in (inside,):
            for limit in STEPS:
                seconds, peak, left, _ = measure(table, folder / "new", limit)
                print(
                    f"  {table.name}, {int(left):>9,} rows: {float(seconds):5.2f} s, peak {float(peak):4.0f} MB"
                )
        options = ("--limit", "1000", "--image-column", "image", "--quiet", "--no-report")
        command = [sys.executable, "-m", "uncanny", "annotate", str(inside), "--model", "noop", *options]
        subprocess.run([*command, "-o", str(folder / "run")], check=True, capture_output=True)
        for done in DONE:
            run = folder / f"run-{done}"
            write_records(folder / "run", run, done)
            size = (run / "annotations.jsonl").stat().st_size / 10**6
            seconds, peak, left, _ = measure(inside, run, ROWS)
            print(
                f"  resuming with {done:>9,} records of {size:,.0f} MB, {int(left):,} rows left: "
                f"{float(seconds):5.2f} s, peak {float(peak):4.0f} MB   (wanted: at most 10 s)"
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        main()
