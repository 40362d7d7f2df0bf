"""How closely a run follows what a server takes at once, when it refuses the rest.

The server takes 500 ms and 40 requests at once, and refuses others with a 429; in the second part 40, then
20, then 40 again. It is asked a little before, because it takes seconds for its first questions. A run with
`--concurrency 256` asks multiple-choice questions. The ideal is as many calls as fit into the limit at 500 ms
each, without a start or an end; beside it a run that is told the limit, by `--concurrency 40`. Refused calls
are counted by the server, and asked again by the run.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
import urllib.request
from pathlib import Path

from benchmarks.calls.mcq_run import make_items
from benchmarks.common import fake_server, figure, sized

LATENCY_MS, CONCURRENCY, TOLD, SIDE = 500, 256, 40, 32
QUESTIONS = sized(3_681, 80)
PARTS = (
    ("40 at once", "40", ((0.0, 40),)),
    ("40, 20 from 12 s on, 40 from 20 s on", "40,20@12,40@20", ((0.0, 40), (12.0, 20), (20.0, 40))),
)


def ideal_s(calls: int, limits: tuple[tuple[float, int], ...]) -> float:
    """Seconds that so many calls take where each limit is used up at every moment."""
    ends = [began for began, _ in limits[1:]] + [float("inf")]
    for (began, number), end in zip(limits, ends, strict=True):
        per_s = number * 1000 / LATENCY_MS
        if calls <= (end - began) * per_s:
            return began + calls / per_s
        calls -= round((end - began) * per_s)
    raise AssertionError("the last limit has no end")


def run_of(url: str, items: Path, folder: Path, concurrency: int) -> tuple[int, float]:
    """Calls that were answered, and seconds."""
    from uncanny.cli.common.session import run_here
    from uncanny.eval.mcq.data.load import load
    from uncanny.eval.mcq.task import McqTask
    from uncanny.models.registry import ModelOptions, parse_model
    from uncanny.records.run_folder import RunFolder
    from uncanny.runs.parameters import RunOptions

    models = ModelOptions(parse_model("openai/gpt-4o"), base_urls={"openai": f"{url}/v1"})
    options = RunOptions(concurrency=concurrency)
    task = McqTask(folder=RunFolder(folder), items=load(items), models=models, options=options)
    began = time.perf_counter()
    end = run_here(task, quiet=True)
    wall = time.perf_counter() - began
    assert end.progress.statuses["ok"] == end.progress.total
    return end.progress.total - end.progress.spending.replayed, wall


def warm(url: str, items: Path, folder: Path) -> float:
    """Ask about the first two items; seconds since then, by which the limits of the server have moved on."""
    began = time.perf_counter()
    few = folder / "few.jsonl"
    few.write_text("\n".join(items.read_text().splitlines()[:2]))
    with tempfile.TemporaryDirectory() as run:
        run_of(url, few, Path(run) / "run", 1)
    return time.perf_counter() - began


def main() -> None:
    os.environ["OPENAI_API_KEY"] = "any"
    with tempfile.TemporaryDirectory() as tmp:
        folder = Path(tmp)
        items = make_items(folder, QUESTIONS, SIDE)
        with fake_server("--latency-ms", str(LATENCY_MS)) as url:
            warm(url, items, folder)
            calls, wall = run_of(url, items, folder / "told", TOLD)
        ideal = ideal_s(calls, PARTS[0][2])
        rate = calls / wall
        figure("told the limit, calls/s", rate, "", calls / ideal, "ideal", wanted=None, higher=True)
        for number, (what, option, limits) in enumerate(PARTS):
            with fake_server("--latency-ms", str(LATENCY_MS), "--at-once", option) as url:
                passed = warm(url, items, folder)
                calls, wall = run_of(url, items, folder / f"run-{number}", CONCURRENCY)
                with urllib.request.urlopen(f"{url}/stats") as answer:
                    stats = json.load(answer)
            ideal = ideal_s(calls, tuple((max(0.0, since - passed), most) for since, most in limits))
            print(f"  {what}: {calls:,} calls in {wall:.1f} s, ideal {ideal:.1f} s")
            figure(f"{what}, calls/s", calls / wall, "", calls / ideal, "ideal", wanted=0.85, higher=True)
            figure(f"{what}, refused calls", stats["too_many"])


if __name__ == "__main__":
    main()
