"""Multiple-choice questions at full size: `mcq run` beside a bare OpenAI SDK loop and beside inspect_ai.

As many questions as the released SalArt-VQA set has, 3,681 about 950 images of 0.2 MB, each image with its
stored overlay for Q3, at a server that takes 200 ms; 64 and 256 calls at once. And 800 questions about
images of 1 MB. All sides send the same texts and pictures. The bare loop is given data URLs that are ready
in memory; ours reads and checks the files, keeps answers and writes records.

inspect_ai runs under the Python named by UNCANNY_INSPECT_PYTHON, and is left out when that is not set.
`python -m benchmarks.calls.mcq_run --questions 800 --rounds 2` is smaller.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from benchmarks.common import fake_server, figure, noise_png, sized

QUESTIONS = sized(3_681, 40)
IMAGES = 950
WITHOUT_Q1 = 119
LATENCY_MS = 200
SIDE = 256  # 0.2 MB as PNG
LARGE_SIDE, LARGE_QUESTIONS = 592, 800  # 1.05 MB
ROUNDS = sized(3, 1)
# The most CPU a call that is wanted: of the bare loop's by size of the images, and of inspect_ai's.
MOST_CPU = {SIDE: 0.90, LARGE_SIDE: 0.40}
MOST_OF_INSPECT = 0.25
INSPECT = "UNCANNY_INSPECT_PYTHON"


@dataclass(frozen=True, slots=True)
class Measured:
    """What so many calls took."""

    calls: int
    wall_s: float
    cpu_s: float

    @property
    def per_s(self) -> float:
        return self.calls / self.wall_s

    @property
    def cpu_ms(self) -> float:
        return 1000 * self.cpu_s / self.calls


def make_items(folder: Path, questions: int, side: int = SIDE) -> Path:
    """An item file for that many questions, with pictures of `side` pixels and overlays; its path."""
    from uncanny.images.overlay import draw_boxes

    unit = side / 256
    boxes: dict[Any, Any] = {
        letter: tuple(round(unit * each) for each in (20 + 50 * n, 30, 60 + 50 * n, 200))
        for n, letter in enumerate("ABCD")
    }
    choice = {"options": {letter: f"the {letter}th part, at the left of the car" for letter in "ABCD"}}
    lines, left = [], questions
    for number in range(IMAGES):
        without = (number + 1) * WITHOUT_Q1 // IMAGES != number * WITHOUT_Q1 // IMAGES
        item: dict[str, Any] = {"id": f"{number:04d}", "split": "ref_pg" if without else "ref_real"}
        item |= {"image": f"{number:04d}.png", "overlay": f"{number:04d}-q3.png"}
        asked: dict[str, Any] = {} if without else {"q1": {"answer": "no"}}
        asked |= {"q2": choice | {"answer": "E"}, "q3": {"boxes": boxes, "answer": "E"}}
        asked |= {"q4": choice | {"answer": "E"}}
        lines.append(json.dumps(item | dict(list(asked.items())[:left])))
        left -= len(asked)
        picture = noise_png(number, side)
        (folder / item["image"]).write_bytes(picture)
        (folder / item["overlay"]).write_bytes(draw_boxes(picture, boxes))
        if left <= 0:
            break
    path = folder / "items.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def questions_of(items_file: Path) -> list[dict[str, str]]:
    """What the others are given: file, system text and text of each question."""
    from uncanny.eval.mcq.data.load import load
    from uncanny.eval.mcq.data.texts import question_text, system_text

    listed = []
    for item in load(items_file):
        for question in item.questions():
            image = items_file.parent / str(item.overlay if question == "q3" else item.image)
            text = question_text(item, question)
            listed.append(
                {
                    "id": f"{item.id}/{question}",
                    "image": str(image),
                    "system": system_text(item),
                    "text": text,
                }
            )
    return listed


def ours(url: str, items_file: Path, run: Path, concurrency: int) -> Measured:
    """A whole run: images checked, answer cache, calls and answers on disk."""
    from uncanny.cli.common.session import run_here
    from uncanny.eval.mcq.data.load import load
    from uncanny.eval.mcq.task import McqTask
    from uncanny.models.registry import ModelOptions, parse_model
    from uncanny.records.run_folder import RunFolder
    from uncanny.runs.parameters import RunOptions

    models = ModelOptions(parse_model("openai/gpt-4o"), base_urls={"openai": f"{url}/v1"})
    began, cpu = time.perf_counter(), time.process_time()
    options = RunOptions(concurrency=concurrency)
    task = McqTask(
        folder=RunFolder(run),
        items=load(items_file),
        models=models,
        options=options,
    )
    end = run_here(task, quiet=True)
    wall, spent = time.perf_counter() - began, time.process_time() - cpu
    assert end.progress.statuses["ok"] == end.progress.total == end.progress.spending.calls
    return Measured(end.progress.total, wall, spent)


def data_urls(questions: list[dict[str, str]]) -> dict[str, str]:
    """By path of the image."""
    paths = {question["image"] for question in questions}
    return {
        path: f"data:image/png;base64,{base64.b64encode(Path(path).read_bytes()).decode()}" for path in paths
    }


async def bare(url: str, questions: list[dict[str, str]], urls: dict[str, str], concurrency: int) -> Measured:
    """Nothing but the SDK: a ready data URL is sent, the answer looked at and dropped."""
    from openai import AsyncOpenAI

    began, cpu = time.perf_counter(), time.process_time()
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0, timeout=60.0)
    slots = asyncio.Semaphore(concurrency)

    async def ask(question: dict[str, str]) -> None:
        async with slots:
            picture = {"url": urls[question["image"]], "detail": "high"}
            content = [
                {"type": "image_url", "image_url": picture},
                {"type": "text", "text": question["text"]},
            ]
            turns: Any = [
                {"role": "system", "content": question["system"]},
                {"role": "user", "content": content},
            ]
            answer = await client.chat.completions.create(
                model="gpt-4o", messages=turns, temperature=0, max_tokens=2000
            )
            assert answer.choices[0].message.content

    await asyncio.gather(*(ask(each) for each in questions))
    await client.close()
    return Measured(len(questions), time.perf_counter() - began, time.process_time() - cpu)


def inspect_ai(
    python: str, url: str, questions: list[dict[str, str]], folder: Path, concurrency: int
) -> Measured:
    listed = folder / "questions.json"
    listed.write_text(json.dumps(questions))
    script = Path(__file__).with_name("inspect_mcq.py")
    command = [python, str(script), str(listed), f"{url}/v1", str(concurrency), str(folder / "inspect-logs")]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["answers"] == len(questions), result
    return Measured(len(questions), result["wall_s"], result["cpu_s"])


def measure(side: int, concurrency: int, questions: int, rounds: int, python: str | None) -> None:
    """Measure all sides in turns, and print figures and ratios."""
    measured: dict[str, list[Measured]] = {"mcq run": [], "bare loop": [], "inspect_ai": []}
    with (
        fake_server("--latency-ms", str(LATENCY_MS)) as url,
        tempfile.TemporaryDirectory() as tmp,
    ):
        folder = Path(tmp)
        items_file = make_items(folder, questions, side)
        asked = questions_of(items_file)
        urls = data_urls(asked)
        (folder / "few.jsonl").write_text("\n".join(items_file.read_text().splitlines()[:2]))
        ours(url, folder / "few.jsonl", folder / "warm", concurrency)
        asyncio.run(bare(url, asked[:8], urls, concurrency))
        for turn in range(rounds):
            measured["mcq run"].append(ours(url, items_file, folder / f"run-{turn}", concurrency))
            measured["bare loop"].append(asyncio.run(bare(url, asked, urls, concurrency)))
        if python:
            measured["inspect_ai"].append(inspect_ai(python, url, asked, folder, concurrency))
    print(f"{len(asked):,} questions, {LATENCY_MS} ms; median of {rounds} rounds")
    show(f"{3 * side * side / 1e6:.1f} MB, {concurrency} at once", measured, MOST_CPU[side])


def show(what: str, measured: dict[str, list[Measured]], most_cpu: float) -> None:
    own = measured["mcq run"]
    per_s, cpu_ms = _median(own, "per_s"), _median(own, "cpu_ms")
    ratio = statistics.median(
        each.per_s / other.per_s for each, other in zip(own, measured["bare loop"], strict=True)
    )
    figure(f"{what}, median ratio of calls/s to the bare loop's", ratio, "", 1, higher=True)
    for peer, wanted in (("bare loop", most_cpu), ("inspect_ai", MOST_OF_INSPECT)):
        if others := measured[peer]:
            least = 1.0 if peer == "inspect_ai" else None
            figure(f"{what}, calls/s", per_s, "", _median(others, "per_s"), peer, wanted=least, higher=True)
            figure(f"{what}, CPU a call", cpu_ms, "ms", _median(others, "cpu_ms"), peer, wanted=wanted)


def _median(rounds: list[Measured], name: Literal["per_s", "cpu_ms"]) -> float:
    return statistics.median([each.per_s if name == "per_s" else each.cpu_ms for each in rounds])


def main(questions: int = QUESTIONS, rounds: int = ROUNDS) -> None:
    os.environ["OPENAI_API_KEY"] = "any"
    python = os.environ.get(INSPECT)
    for side, most in ((SIDE, QUESTIONS), (LARGE_SIDE, LARGE_QUESTIONS)):
        for concurrency in (64, 256):
            measure(side, concurrency, min(questions, most), rounds, python)
    if python is None:
        print(f"inspect_ai was left out: {INSPECT} names no Python that has it")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--questions", type=int, default=QUESTIONS, help="At most 3,681.")
    options.add_argument("--rounds", type=int, default=ROUNDS)
    chosen = options.parse_args()
    main(min(chosen.questions, QUESTIONS), chosen.rounds)
