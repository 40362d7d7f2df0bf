"""`python -m benchmarks [NAME…]`: run the measurements and print figures and ratios."""

from __future__ import annotations

import os
import platform
import sys

from benchmarks import (
    artifacts,
    audit,
    big_pages,
    compare,
    coverage,
    edits,
    embedded,
    exports,
    large_images,
    mcq_run,
    mcq_scoring,
    memory,
    orchestration,
    overhead,
    review,
    schedules,
    semantic,
    service_api,
    service_jobs,
    startup,
    stress,
    table_rows,
    vllm_cpu,
)

ALL = {
    "startup": startup,
    "orchestration": orchestration,
    "overhead": overhead,
    "schedules": schedules,
    "memory": memory,
    "large_images": large_images,
    "mcq_scoring": mcq_scoring,
    "mcq_run": mcq_run,
    "audit": audit,
    "semantic": semantic,
    "compare": compare,
    "coverage": coverage,
    "review": review,
    "service_api": service_api,
    "service_jobs": service_jobs,
    "embedded": embedded,
    "big_pages": big_pages,
    "exports": exports,
    "edits": edits,
    "artifacts": artifacts,
    "stress": stress,
    "table_rows": table_rows,
}
# Need something that has to be installed first, so they run by name only.
MORE = {"vllm": vllm_cpu}


def main() -> None:
    names = sys.argv[1:] or list(ALL)
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores")
    for name in names:
        benchmark = (ALL | MORE)[name]
        print(f"{name}: {(benchmark.__doc__ or '').splitlines()[0]}")
        benchmark.main()


main()
