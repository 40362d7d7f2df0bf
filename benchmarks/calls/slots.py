"""Whether a run over images of uneven length keeps its slots busy.

200 images with different numbers of anomalies, so of calls, at a server that takes 100 to 500 ms for a call.
A slot is busy while a request is open. Told is the share of all slots from the first request to the end of
the last one, and to the moment when the last image has its first answer: later ones leave slots empty.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

import orjson

from benchmarks.common import fake_server, figure, sized, tiny_png, write_folder
from uncanny.agents.steps import ScheduleName

IMAGES, CONCURRENCY = sized(200, 4), 64
SCHEDULES: Final[tuple[ScheduleName, ...]] = ("packed", "paper")


class Call(NamedTuple):
    """When a request was open, in seconds, and about which image."""

    image: str
    began: float
    ended: float


def calls_of(url: str, folder: Path, run: Path, schedule: ScheduleName) -> list[Call]:
    """The calls that were made for a run over a folder."""
    from uncanny.agents.config import AnnotateConfig
    from uncanny.annotation.run import AnnotateTask
    from uncanny.cli.common.session import run_here
    from uncanny.models.registry import ModelOptions, parse_model
    from uncanny.records.run_folder import RunFolder
    from uncanny.runs.parameters import RunOptions

    models = ModelOptions(parse_model("openai/gpt-4o"), base_urls={"openai": f"{url}/v1"})
    options = RunOptions(concurrency=CONCURRENCY)
    config = AnnotateConfig(schedule=schedule)
    task = AnnotateTask(folder=RunFolder(run), paths=[folder], models=models, options=options, config=config)
    end = run_here(task, quiet=True)
    assert end.progress.statuses["ok"] == end.progress.total, end.progress.statuses
    made = []
    for call in map(orjson.loads, (run / "calls.jsonl").read_bytes().splitlines()):
        if not call["replayed"]:
            began = datetime.fromisoformat(call["started"]).timestamp()
            made.append(Call(call["image"], began, began + call["latency_s"]))
    return sorted(made, key=lambda call: call.began)


def busy(calls: Sequence[Call], until: float) -> float:
    """The share of time that the slots had a request open, from the first one on."""
    open_s = sum(max(0.0, min(call.ended, until) - call.began) for call in calls)
    return open_s / (CONCURRENCY * (until - calls[0].began))


def main() -> None:
    os.environ["OPENAI_API_KEY"] = "any"
    with (
        tempfile.TemporaryDirectory() as tmp,
        fake_server("--latency-ms", "100", "--jitter-ms", "400", "--anomalies", "8") as url,
    ):
        folder, warm = Path(tmp) / "images", Path(tmp) / "warm"
        write_folder(folder, IMAGES, None)
        warm.mkdir()
        (warm / "0.png").write_bytes(tiny_png(IMAGES))
        for schedule in SCHEDULES:
            calls_of(url, warm, Path(tmp) / f"warm-{schedule}", schedule)
            calls = calls_of(url, folder, Path(tmp) / schedule, schedule)
            first = {call.image: call for call in reversed(calls)}
            numbers = [sum(call.image == image for call in calls) for image in first]
            print(f"{schedule}: {len(calls):,} calls, {min(numbers)} to {max(numbers)} an image")
            figure(f"{schedule}, slots busy", busy(calls, max(call.ended for call in calls)), higher=True)
            begun = max(call.ended for call in first.values())
            figure(f"{schedule}, until the last image", busy(calls, begun), "", 0.95, higher=True)


if __name__ == "__main__":
    main()
