"""A table with a million pictures: how long a run takes to begin and to resume, and its memory.

Each is a process of its own, up to the moment at which the first call would be made. The records of the run
that resumes are those of a real one of a thousand images, written again for the other rows. The first to
resume makes their index, as a run does while it writes them.
"""

from __future__ import annotations

import gc
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as arrow  # type: ignore[import-untyped]
import pyarrow.parquet as parquet  # type: ignore[import-untyped]

from benchmarks.common import figure, peak_memory_mb, sized, tiny_png

ROWS = sized(1_000_000, 20_000)
STEPS = (1_000, ROWS)
DONE = (ROWS // 2, ROWS)
AT_ONCE = 10_000
_NUMBER = re.compile(rb"/\d{6}\"")


def write_table(path: Path) -> None:
    """A table with a thousand different pictures again and again, and a prompt for each row."""
    pictures = [tiny_png(number) for number in range(1_000)]
    prompts = [f"a prompt for picture {number}" for number in range(AT_ONCE)]
    cells = [pictures[number % 1_000] for number in range(AT_ONCE)]
    table = arrow.table({"image": cells, "prompt": prompts})
    with parquet.ParquetWriter(path, table.schema) as writer:
        for _ in range(ROWS // AT_ONCE):
            writer.write_table(table)


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
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)  # as commands do
    began = time.perf_counter()
    from uncanny.annotation.parameters import AnnotateParameters
    from uncanny.annotation.run import annotate_task
    from uncanny.runs.resume import load_run

    parameters = AnnotateParameters(model="noop", out=run, limit=int(limit), schedule="single")
    loaded = load_run(annotate_task(parameters, table))
    loaded.records.open()
    next(iter(loaded.pending), None)
    print(time.perf_counter() - began, time.process_time(), peak_memory_mb(), len(loaded.pending))
    loaded.records.close()


def measure(table: Path, run: Path, limit: int, what: str) -> None:
    run.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "benchmarks.scale.manifest", "--child", str(table), str(run), str(limit)]
    seconds, cpu, peak, left = subprocess.run(
        command, check=True, capture_output=True, text=True
    ).stdout.split()
    figure(f"{what}, {int(left):,} rows to do", float(seconds), "s", None if what.startswith("index") else 10)
    figure(f"{what}, CPU with imports", float(cpu), "s")
    figure(f"{what}, peak memory", float(peak), "MB")


def main() -> None:
    with tempfile.TemporaryDirectory() as tmp:
        folder = Path(tmp)
        table = folder / "pictures.parquet"
        write_table(table)
        time.sleep(3)  # or records would not trust the time at which it was written
        for limit in STEPS:
            measure(table, folder / f"new-{limit}", limit, f"begin with {limit:,} rows")
        options = ("--limit", "1000", "--schedule", "single", "--quiet", "--no-report")
        command = [sys.executable, "-m", "uncanny", "annotate", str(table), "--model", "noop", *options]
        subprocess.run([*command, "-o", str(folder / "run")], check=True, capture_output=True)
        for done in DONE:
            run = folder / f"run-{done}"
            write_records(folder / "run", run, done)
            size = (run / "annotations.jsonl").stat().st_size / 10**6
            measure(table, run, ROWS, f"index {done:,} records of {size:,.0f} MB")
            measure(table, run, ROWS, f"resume with {done:,} records of {size:,.0f} MB")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        main()
