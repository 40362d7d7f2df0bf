"""CPU per call with a 1 MB image: a whole annotation run beside a bare loop on the OpenAI SDK.

Both ask the same fake server for the same mix of calls, at equal concurrency, in one process, in turns. The
bare loop does nothing but `AsyncOpenAI.chat.completions.create`; ours reads and checks the images, runs the
graph, renders prompts, keeps answers and writes records besides.
"""

from __future__ import annotations

import asyncio
import base64
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Final

import orjson

from benchmarks.common import fake_server, figure, noise_png, sized
from uncanny.agents.steps import ScheduleName

SIDE = 592  # 1.05 MB as PNG
IMAGES = sized(12, 2)
CONCURRENCY = 16
ROUNDS = sized(3, 1)
OBJECTS = 8
SCHEDULES: Final[tuple[ScheduleName, ...]] = ("packed", "paper")
PROMPT_CHARACTERS = 2_000


async def bare_loop(url: str, data_urls: list[str], calls: list[bool]) -> float:
    """CPU seconds for so many calls, True for those with an image."""
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)
    slots = asyncio.Semaphore(CONCURRENCY)
    text = {"type": "text", "text": "Describe the picture. " * (PROMPT_CHARACTERS // 22)}

    async def one(number: int, seeing: bool) -> None:
        picture = {
            "type": "image_url",
            "image_url": {"url": data_urls[number % len(data_urls)], "detail": "high"},
        }
        async with slots:
            answer = await client.chat.completions.create(
                model="gpt-4o",
                messages=[{"role": "user", "content": [picture, text] if seeing else [text]}],  # type: ignore[list-item,misc]
                temperature=0.3,
                max_tokens=2000,
            )
            assert answer.choices[0].message.content

    await one(0, True)
    began = time.process_time()
    await asyncio.gather(*(one(number, seeing) for number, seeing in enumerate(calls)))
    spent = time.process_time() - began
    await client.close()
    return spent


def whole_run(url: str, folder: Path, run: Path, schedule: ScheduleName) -> tuple[float, list[bool]]:
    """CPU seconds of an annotation run, answer cache, records and all, and its calls: True with an image."""
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
    began = time.process_time()
    end = run_here(task, quiet=True)
    spent = time.process_time() - began
    assert end.progress.statuses["ok"] == end.progress.total, end.progress.statuses
    lines = (run / "calls.jsonl").read_bytes().splitlines()
    return spent, [orjson.loads(line)["sees_image"] for line in lines]


def main() -> None:
    os.environ["OPENAI_API_KEY"] = "any"
    with (
        fake_server("--latency-ms", "20", "--objects", str(OBJECTS)) as url,
        tempfile.TemporaryDirectory() as tmp,
    ):
        folder = Path(tmp) / "images"
        folder.mkdir()
        for number in range(IMAGES):
            (folder / f"{number:02d}.png").write_bytes(noise_png(number, SIDE))
        urls = [
            "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode()
            for path in sorted(folder.iterdir())
        ]
        warm = Path(tmp) / "warm"
        warm.mkdir()
        (warm / "0.png").write_bytes(noise_png(99, SIDE))
        size = len(noise_png(0, SIDE)) / 1e6
        print(f"{IMAGES} images of {size:.2f} MB, {CONCURRENCY} calls at once, median of {ROUNDS} rounds")
        for schedule in SCHEDULES:
            whole_run(url, warm, Path(tmp) / f"run-warm-{schedule}", schedule)
            compare(url, folder, Path(tmp), urls, schedule)


def compare(url: str, folder: Path, runs: Path, urls: list[str], schedule: ScheduleName) -> None:
    """One schedule beside bare loops with as many calls, with and without the image."""
    ratios, ours_ms, bare_ms, seeing_ms = [], [], [], []
    for turn in range(ROUNDS):
        ours, calls = whole_run(url, folder, runs / f"run-{schedule}-{turn}", schedule)
        bare = asyncio.run(bare_loop(url, urls, calls))
        seen = sum(calls)
        seeing = asyncio.run(bare_loop(url, urls, [True] * seen))
        ratios.append(ours / bare)
        ours_ms.append(1000 * ours / len(calls))
        bare_ms.append(1000 * bare / len(calls))
        seeing_ms.append(1000 * seeing / seen)
    print(f"{schedule}: {len(calls)} calls, {seen} of them with the image")
    own, other = statistics.median(ours_ms), statistics.median(bare_ms)
    loop, scale = "bare loop, same mix of calls", len(calls) / IMAGES
    figure(f"{schedule}, CPU a call", own, "ms", other, loop, wanted=None)
    figure(f"{schedule}, CPU an image", own * scale, "ms", other * scale, loop, wanted=None)
    figure(f"{schedule}, bare loop, CPU a call with image only", statistics.median(seeing_ms), "ms")
    figure(f"{schedule}, median ratio of CPU to the bare loop", statistics.median(ratios), "", 0.50)


if __name__ == "__main__":
    main()
