"""The service's queue: jobs a second, how soon a job starts, how soon one is taken over, 20 jobs at once.

On SQLite and on a PostgreSQL that is started for it. Jobs are real: each a process that annotates images at
the fake server.
"""

from __future__ import annotations

import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from PIL import Image

from benchmarks.common import fake_server, figure, sized
from uncanny.service import ENDED
from uncanny.service.answers import Job
from uncanny.service.jobs.worker import Pace, Worker
from uncanny.service.service import Service
from uncanny.service.store.jobs import Listener

QUEUED, THREADS = sized(2_000, 40), 4
STARTS = sized(100, 4)
TAKEOVERS = sized(8, 1)
AT_ONCE, IMAGES = sized(20, 2), 10  # fewer images end before a worker is killed


def main() -> None:
    from tests.service.postgres import postgres

    with postgres() as server, fake_server("--latency-ms", "300", "--jitter-ms", "100") as url:
        os.environ |= {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "any-key"}
        for name, address in (("SQLite", lambda: None), ("PostgreSQL", server.database)):
            for measure in (_queue, _start, _takeover, _at_once):
                folder = Path(tempfile.mkdtemp(prefix="uncanny-jobs-"))
                try:
                    _pictures(folder / "root" / "in")
                    measure(folder, address(), name)
                finally:
                    shutil.rmtree(folder)


def _queue(folder: Path, address: str | None, on: str) -> None:
    """Submitted, taken, renewed and ended, with nothing to do in between."""
    with Service.open(folder / "data", database=address) as service:

        def submit(_: int) -> None:
            service.jobs.submit("annotate", {"images": ["/data"], "model": "demo"}, by="b")

        def work(number: int) -> None:
            while (job := service.jobs.claim(f"w{number}", 60)) is not None:
                service.jobs.beat(job, 60)
                service.jobs.end(job, "finished", exit_code=0)

        with ThreadPoolExecutor(THREADS) as pool:
            cpu = time.process_time()
            submitting = _seconds(lambda: list(pool.map(submit, range(QUEUED))))
            submit_ms = (time.process_time() - cpu) / QUEUED * 1e3
            cpu = time.process_time()
            working = _seconds(lambda: list(pool.map(work, range(THREADS))))
            work_ms = (time.process_time() - cpu) / QUEUED * 1e3
    for what, seconds, cpu_ms in (
        ("submitted", submitting, submit_ms),
        ("taken, renewed and ended", working, work_ms),
    ):
        figure(f"{on}, {what}, jobs a second", QUEUED / seconds)
        figure(f"{on}, {what}, CPU a job", cpu_ms, "ms")


def _start(folder: Path, address: str | None, on: str) -> None:
    """From a job's being submitted to a waiting worker's having it, on PostgreSQL one of another process."""
    with Service.open(folder / "data", database=address) as service:
        if address is None:
            _print_starts(_starts(service, service), on)
            return
        with Service.open(folder / "data", database=address) as other:
            listener = Listener(other.database, other.jobs.queued)
            listener.start()
            time.sleep(1)
            _print_starts(_starts(service, other), on)
            listener.stop()


def _starts(submitting: Service, working: Service) -> list[float]:
    delays: list[float] = []
    ended = threading.Event()
    submitted: list[float] = []

    def work() -> None:
        while not ended.is_set():
            seen = working.jobs.queued.seen()
            if (job := working.jobs.claim("w", 60)) is None:
                working.jobs.queued.wait(seen, 5)
                continue
            delays.append(time.perf_counter() - submitted[-1])
            working.jobs.end(job, "finished", exit_code=0)

    thread = threading.Thread(target=work)
    thread.start()
    for number in range(STARTS):
        time.sleep(0.02)
        submitted.append(time.perf_counter())
        submitting.jobs.submit("annotate", {}, by="b")
        while len(delays) <= number:
            time.sleep(0.001)
    ended.set()
    working.jobs.queued.set()
    thread.join()
    return delays


def _print_starts(delays: list[float], on: str) -> None:
    p95 = sorted(delays)[int(len(delays) * 0.95)]
    figure(f"{on}, a waiting worker has a job after, median", statistics.median(delays) * 1e3, "ms")
    figure(f"{on}, a waiting worker has a job after, p95", p95 * 1e3, "ms")


WORKER = """
import sys, time
from pathlib import Path
from uncanny.service.jobs.worker import Worker
from uncanny.service.service import Service
service = Service.open(Path(sys.argv[1]), database=sys.argv[2] or None, roots=[Path(sys.argv[3])])
Worker(service, jobs=1).start()
print("ready", flush=True)
time.sleep(600)
"""


def _takeover(folder: Path, address: str | None, on: str) -> None:
    """From the death of a worker to another one's having its job; on SQLite the same one started again."""
    delays: list[float] = []
    for number in range(TAKEOVERS):
        data, root = folder / f"data{number}", folder / "root"
        database = None if address is None else _another(address, number)
        with Service.open(data, database=database, roots=[root]) as service:
            job = _submit(service, root, concurrency=1)
        first = _worker(data, database, root)
        with_run = data / "jobs" / job.id / "run" / "calls.jsonl"
        _until(lambda file=with_run: file.exists() and file.stat().st_size)  # type: ignore[misc]
        second = None if address is None else _worker(data, database, root)
        first.kill()
        killed = time.perf_counter()
        first.wait()
        if second is None:
            second = _worker(data, database, root)
        log = data / "jobs" / job.id / ".result.json.part"
        before = log.stat().st_ino, log.stat().st_mtime_ns
        _until(lambda file=log, old=before: _stamp(file) != old)  # type: ignore[misc]
        delays.append(time.perf_counter() - killed)
        second.send_signal(signal.SIGKILL)
        second.wait()
    lease = Pace().lease_s
    words = f"after a kill, lease {lease:g} s" if address else "after a kill and a restart"
    figure(f"{on}, a job goes on {words}, median", statistics.median(delays), "s")
    figure(f"{on}, a job goes on {words}, longest", max(delays), "s")


def _at_once(folder: Path, address: str | None, on: str) -> None:
    with Service.open(folder / "data", database=address, roots=[folder / "root"]) as service:
        for at_once in (1, AT_ONCE):
            worker = Worker(service, jobs=at_once)
            jobs = [_submit(service, folder / "root") for _ in range(at_once)]
            cpu = time.process_time()
            worker.start()
            seconds = _seconds(lambda jobs=jobs: _until(lambda: _all_ended(service, jobs)))  # type: ignore[misc]
            cpu = time.process_time() - cpu
            worker.stop()
            states = {service.jobs.get(job.id).state for job in jobs}
            assert states == {"finished"}, states
            what = f"{on}, {at_once} job{'s' * (at_once > 1)} at once, {IMAGES} images each"
            figure(what, seconds, "s")
            figure(f"{what}, the service's own CPU", 100 * cpu / seconds, "% of a core")


def _all_ended(service: Service, jobs: list[Job]) -> bool:
    return all(service.jobs.get(job.id).state in ENDED for job in jobs)


def _submit(service: Service, root: Path, **more: Any) -> Job:
    asked = {"images": str(root / "in"), "model": "openai/any", "schedule": "single", **more}
    return service.submit("annotate", asked, by="b")


def _another(address: str, number: int) -> str:
    """A further empty database on the same server."""
    import psycopg

    name = f"takeover{number}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    before, _, after = address.partition("?")
    return f"{before.rpartition('/')[0]}/{name}?{after}"


def _worker(data: Path, address: str | None, root: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", WORKER, str(data), address or "", str(root)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def _pictures(folder: Path) -> None:
    folder.mkdir(parents=True)
    for number in range(IMAGES):
        Image.new("RGB", (640, 480), (number * 20, 90, 200)).save(folder / f"{number}.png")


def _stamp(file: Path) -> tuple[int, int]:
    return file.stat().st_ino, file.stat().st_mtime_ns


def _until(wanted: Callable[[], object]) -> None:
    while not wanted():
        time.sleep(0.02)


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
