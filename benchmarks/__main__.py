"""`python -m benchmarks [NAME…]`: run the measurements and print figures and ratios."""

from __future__ import annotations

import os
import platform
import sys

from benchmarks import memory, orchestration, overhead, startup

ALL = {"startup": startup, "orchestration": orchestration, "overhead": overhead, "memory": memory}


def main() -> None:
    names = sys.argv[1:] or list(ALL)
    print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores")
    for name in names:
        print(f"{name}: {(ALL[name].__doc__ or '').splitlines()[0]}")
        ALL[name].main()


main()
