"""A service's worker as a process of its own, for tests that kill it.

`python -m tests.service.jobs.worker_process DATA DATABASE ROOT [--submit LOG] [--drain]`
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import threading
from pathlib import Path

from tests.service.jobs.working import PACE
from uncanny.service.jobs.worker import Pace, Worker
from uncanny.service.service import Service

LEASE_S = 2.0
# So many jobs wait at least, while jobs are submitted.
BACKLOG = 4
_ROOT = Path(__file__).parents[3]


def start_worker(data: Path, address: str | None, root: Path, *more: object) -> subprocess.Popen[bytes]:
    """Start one, to be ended by SIGTERM or killed by the caller; returns when it works."""
    module = "tests.service.jobs.worker_process"
    process = subprocess.Popen(
        # It ends with the tests, whatever becomes of them.
        [
            "setpriv",
            "--pdeathsig",
            "KILL",
            sys.executable,
            "-m",
            module,
            data,
            address or "",
            root,
            *map(str, more),
        ],
        stdout=subprocess.PIPE,
        cwd=_ROOT,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("database")
    parser.add_argument("root", type=Path)
    parser.add_argument("--submit", type=Path, metavar="LOG")
    parser.add_argument("--drain", action="store_true")
    chosen = parser.parse_args()
    end = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: end.set())
    with Service.open(chosen.data, database=chosen.database or None, roots=[chosen.root]) as service:
        worker = Worker(service, jobs=2, pace=Pace(LEASE_S, 0.2, 0.2, PACE.interrupt_s, PACE.kill_s, 0.1))
        worker.start()
        print("ready", flush=True)
        while not end.wait(0.1):
            counts = service.jobs.counts()
            if chosen.submit is not None and counts["queued"] < BACKLOG:
                _submit(service, chosen.root, chosen.submit)
            if chosen.drain and not counts["queued"] + counts["running"]:
                break
        worker.stop()


def _submit(service: Service, root: Path, log: Path) -> None:
    """Put a job into the queue, and its id into `log`: then it is promised to somebody."""
    asked = {"images": str(root / "in"), "model": "openai/any", "schedule": "single", "concurrency": 2}
    with log.open("ab", buffering=0) as lines:
        lines.write(f"{service.submit('annotate', asked, by='ann').id}\n".encode())


if __name__ == "__main__":
    main()
