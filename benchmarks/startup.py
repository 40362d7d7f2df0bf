"""How long the command line takes to answer, beside Python doing nothing."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

RUNS = 9
COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "uncanny --version": ["-m", "uncanny", "--version"],
    "uncanny --help": ["-m", "uncanny", "--help"],
    "uncanny annotate --help": ["-m", "uncanny", "annotate", "--help"],
}


def main() -> None:
    for name, arguments in COMMANDS.items():
        found = []
        for _ in range(RUNS):
            began = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
            found.append(time.perf_counter() - began)
        print(f"  {name:<24} {statistics.median(found):.3f} s   (wanted: at most 0.3)")


if __name__ == "__main__":
    main()
