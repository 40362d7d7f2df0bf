"""`python -m benchmarks [NAME…]`: run the measurements and print figures and ratios."""

from __future__ import annotations

import os
import platform
import sys
from importlib import import_module

# Each is a module of this package, imported when it runs: what one needs installed the others do without.
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
)
# Need something that has to be installed first, so they run by name only.
MORE = ("vllm_cpu",)


def main() -> None:
    names = sys.argv[1:] or ALL
    unknown = [name for name in names if name not in (*ALL, *MORE)]
    if unknown:
        sys.exit(f"There is no benchmark {unknown[0]!r}. Choose among {', '.join((*ALL, *MORE))}.")
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores")
    for name in names:
        benchmark = import_module(f"benchmarks.{name}")
        print(f"{name}: {(benchmark.__doc__ or '').splitlines()[0]}")
        benchmark.main()


main()
