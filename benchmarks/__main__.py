"""`python -m benchmarks [NAME…]`: run the measurements, and end with one table of their figures.

`--ratios` measures small ratios to peers instead, and fails where one is worse than recorded.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from importlib import import_module
from pathlib import Path

from benchmarks.common import FIGURES, SMALL
from benchmarks.table import Stated, machine, markdown, text

# Each is a module in a folder here, imported when it runs: what one needs installed the others do without.
ALL = (
    "startup",
    "orchestration",
    "telemetry",
    "overhead",
    "schedules",
    "memory",
    "large_images",
    "regions",
    "mcq_scoring",
    "mcq_run",
    "slots",
    "adaptive",
    "batches",
    "audit",
    "semantic",
    "compare",
    "coverage",
    "trust_coverage",
    "review",
    "service_api",
    "service_jobs",
    "embedded",
    "big_pages",
    "exports",
    "edits",
    "artifacts",
    "stress",
    "table_rows",
    "manifest",
    "ray_engine",
    "learn_size",
)
# Need something that has to be installed first, so they run by name only.
MORE = ("vllm_cpu", "learn", "learn_detector", "learn_gpu")


def _folder(name: str) -> str:
    return next(Path(__file__).parent.glob(f"*/{name}.py")).parent.name


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="Benchmarks to run (default: all).")
    parser.add_argument(
        "--table", type=Path, metavar="FILE", help="Write the table to this file, as Markdown."
    )
    parser.add_argument("--small", action="store_true", help="Only try that the benchmarks run.")
    parser.add_argument("--ratios", action="store_true", help="Measure the ratios that CI compares.")
    parser.add_argument("--record", action="store_true", help="With --ratios: record them.")
    chosen = parser.parse_args()
    if chosen.record and not chosen.ratios:
        parser.error("--record needs --ratios")
    known = tuple(import_module("benchmarks.ratios").RATIOS) if chosen.ratios else (*ALL, *MORE)
    unknown = [name for name in chosen.names if name not in known]
    if unknown:
        sys.exit(f"There is no benchmark {unknown[0]!r}. Choose among {', '.join(known)}.")
    if chosen.small:
        os.environ[SMALL] = "1"
    print(machine())
    names = chosen.names or (known if chosen.ratios else ALL)
    stated, failed = list[Stated](), list[str]()
    for name in names:
        began = len(FIGURES)
        try:
            if chosen.ratios:
                import_module("benchmarks.ratios").main(name, record=chosen.record)
            else:
                benchmark = import_module(f"benchmarks.{_folder(name)}.{name}")
                print(f"{name}: {(benchmark.__doc__ or '').splitlines()[0]}", flush=True)
                benchmark.main()
        except Exception:  # the others are measured all the same
            traceback.print_exc()
            failed.append(name)
        stated += [(name, each) for each in FIGURES[began:]]
        if chosen.table is not None:  # after each, because all of them take hours
            chosen.table.write_text(markdown(stated, failed))
    print(f"\n{text(stated)}")
    worse = [name for name, each in stated if each.met is False] if chosen.ratios else []
    if failed:
        sys.exit(f"Failed: {', '.join(failed)}.")
    if worse:
        sys.exit(f"Worse than recorded by more than a third, twice: {', '.join(worse)}.")


main()
