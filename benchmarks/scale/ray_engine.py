"""Actors of Ray beside the local engine: images a second, start-up, memory; a driver that is killed again and
again."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from benchmarks.common import fake_server, figure, sized, write_folder
from uncanny.wording import counted

ACTORS = (None, 1, 2, 4)  # None is the local engine
NOOP_IMAGES = sized(1_000, 20)
# Enough to have all calls wait for the server, and not for the processor.
SERVED_IMAGES, LATENCY_MS, CONCURRENCY = sized(150, 5), 200, 64
KILLED_IMAGES, KILLS = sized(2_000, 200), sized(5, 1)


def child(folder: str, run: str, options: str) -> None:
    """Run to the end, and print when it started, asked first, and ended, with the number of calls."""
    began = time.perf_counter()
    import uncanny

    moments: dict[str, float] = {}

    def note(name: str) -> None:
        moments.setdefault(name, time.perf_counter() - began)

    done = uncanny.annotate(
        folder,
        out=run,
        schedule="paper",
        on_start=lambda _: note("ready"),
        on_call=lambda _: note("first"),
        **json.loads(options),
    )
    note("end")
    assert done.summary.state == "finished", done.summary
    cpu = sum(os.times()[:4])
    print(json.dumps({**moments, "calls": done.summary.calls, "cpu": cpu}), flush=True)
    os._exit(0)  # the cluster is closed, and this process needs nothing more


@contextlib.contextmanager
def measured(command: list[str]) -> Iterator[dict[str, Any]]:
    """What a process prints, and the most memory that it and its children share between them (PSS), in MB."""
    result: dict[str, Any] = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        peaks = []
        while process.poll() is None:
            with contextlib.suppress(psutil.Error):
                found = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
                peaks.append(sum(map(_pss, found)))
            time.sleep(1.0)
        assert process.stdout is not None
        result |= json.loads(process.stdout.read().splitlines()[-1])
        result["mb"] = max(peaks, default=0.0)
    yield result


def _pss(process: psutil.Process) -> float:
    try:
        lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("Pss:")).split()[1]) / 1024
    except (OSError, StopIteration):
        return 0.0


def compare(name: str, folder: Path, images: int, place: Path, **options: Any) -> None:
    print(f"{name}, {images} images, 52 calls each")
    local = 0.0
    for actors in ACTORS:
        engine = {} if actors is None else {"engine": "ray", "ray_actors": actors}
        run = place / f"{name.partition(' ')[0]}-{actors}"
        arguments = [str(folder), str(run), json.dumps({**options, **engine, "limit": images})]
        with measured([sys.executable, "-m", "benchmarks.scale.ray_engine", "--child", *arguments]) as found:
            rate = images / (found["end"] - found["first"])
            what = "local" if actors is None else counted(actors, "actor")
            local = local or rate
            figure(f"{name}, {what}, images/s", rate, "", local, "local engine", wanted=None, higher=True)
            figure(f"{name}, {what}, first call after", found["first"], "s")
            figure(f"{name}, {what}, memory of all processes", found["mb"], "MB")


def requests(url: str) -> int:
    with urllib.request.urlopen(f"{url}/stats", timeout=30) as answer:
        return int(json.load(answer)["requests"])


def killed(folder: Path, place: Path) -> None:
    """Kill the driver, resume, and compare with a run that nobody disturbed."""

    def command(url: str, run: Path, *more: str) -> list[str]:
        model = ["--model", "openai/any", "--base-url", f"{url}/v1", "--concurrency", "32"]
        return [
            sys.executable,
            "-m",
            "uncanny",
            "annotate",
            str(folder),
            *model,
            "-q",
            "--no-report",
            *more,
            "-o",
            str(run),
        ]

    with fake_server("--latency-ms", "20") as url:
        subprocess.run(command(url, place / "whole"), check=True)
        needed = requests(url)
    with fake_server("--latency-ms", "20") as url:
        on_ray = command(url, place / "killed", "--engine", "ray", "--ray-actors", "2")
        lost = []
        for kill in range(KILLS):
            with subprocess.Popen(on_ray) as driver:
                before = requests(url)
                while driver.poll() is None and requests(url) < max(
                    before + 1, needed * (kill + 1) // (KILLS + 1)
                ):
                    time.sleep(0.05)
                assert driver.poll() is None, "it ended before it was killed"
                asked = requests(url)
                driver.kill()
            time.sleep(8)  # Ray ends its processes
            lost.append(requests(url) - asked)
        subprocess.run(on_ray, check=True)
        asked = requests(url)
    ours, theirs = (_records(place / name) for name in ("killed", "whole"))
    print(f"{KILLED_IMAGES} images, driver killed {KILLS} times and resumed; {needed:,} calls are needed")
    figure("driver killed: calls made again", asked - needed, "", 32 * KILLS)
    figure("driver killed: calls after a kill, median", statistics.median(lost))
    unlike = sum(record not in theirs for record in ours) + abs(len(ours) - len(theirs))
    figure("driver killed: records unlike those of a local run", unlike)


def _records(run: Path) -> list[dict[str, Any]]:
    records = [json.loads(line) for line in (run / "annotations.jsonl").read_text().splitlines()]
    return [
        {name: each for name, each in record.items() if name not in ("usage", "file_stamp")}
        for record in records
    ]


def main() -> None:
    os.environ["OPENAI_API_KEY"] = "any-key"
    with tempfile.TemporaryDirectory() as tmp:
        folder, place = Path(tmp) / "images", Path(tmp)
        write_folder(folder, KILLED_IMAGES, None)
        compare("noop model, 64 calls at once", folder, NOOP_IMAGES, place, model="noop", concurrency=64)
        with fake_server("--latency-ms", str(LATENCY_MS)) as url:
            asked = {"model": "openai/any", "base_url": f"{url}/v1", "concurrency": CONCURRENCY}
            compare(
                f"server that answers after {LATENCY_MS} ms, {CONCURRENCY} calls at once",
                folder,
                SERVED_IMAGES,
                place,
                **asked,
            )
        killed(folder, place)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
    else:
        main()
