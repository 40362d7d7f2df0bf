"""How long the command line takes to answer, and the package to be imported, beside Python doing nothing."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

from benchmarks.common import figure, sized

RUNS = sized(9, 1)
# Name → arguments of Python, and the seconds it may take.
COMMANDS = {
    "python -c pass": (["-c", "pass"], None),
    "import uncanny": (["-c", "import uncanny"], 0.15),
    **{
        f"uncanny {' '.join(arguments)}": (["-m", "uncanny", *arguments], 0.4)
        for arguments in (
            ["--version"],
            ["--help"],
            ["annotate", "--help"],
            ["detect", "--help"],
            ["mcq", "run", "--help"],
            ["realism", "run", "--help"],
            ["semantic", "--help"],
            ["audit", "--help"],
        )
    },
}


def main() -> None:
    for name, (arguments, most) in COMMANDS.items():
        seconds = []
        for _ in range(RUNS):
            began = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
            seconds.append(time.perf_counter() - began)
        figure(name, statistics.median(seconds), "s", most)


if __name__ == "__main__":
    main()
