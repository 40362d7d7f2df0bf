"""Batches killed at random moments: every record once, nothing answered twice, half the money.

3,681 multiple-choice questions in one batch, and 200 images with `packed` in waves, at OpenAI's and
Anthropic's batch APIs of the fake server. Of the lines 10 % expire and 5 % fail. Each run is killed (SIGKILL)
at random moments, then left to end, beside a run that asks directly and one in batches that nobody kills.

And the bytes that 400 questions about images of 0.2 MB send, with images uploaded once and with images in
the lines.

`python -m benchmarks.calls.batches --questions 400 --images 20 --kills 5` is smaller.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.calls.mcq_run import QUESTIONS, make_items
from benchmarks.calls.mcq_run import SIDE as PICTURE_SIDE
from benchmarks.common import fake_server, figure, sized, write_folder

IMAGES = sized(200, 4)
KILLS = sized(20, 2)
SIDE = 32  # of the pictures: what counts are lines, not bytes
MODELS = {"openai": "openai/gpt-4o", "anthropic": "anthropic/claude-sonnet-4-5"}
FAULTS = "expired=0.1,500=0.05"
BATCH_SECONDS = sized(15, 2)
WITH_BYTES = 400


def uncanny(arguments: Sequence[object]) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "uncanny", *map(str, arguments)])


def killed(arguments: Sequence[object], usual_s: float, kills: int, seed: int) -> int:
    """Start the command again and again and kill it each time, then let it end; how many kills it took.

    The moments are such that the kills fall into all parts of a run that takes `usual_s` seconds.
    """
    moments, done = random.Random(seed), 0
    while done < kills:
        with uncanny(arguments) as process:
            try:
                process.wait(moments.uniform(0, 2 * usual_s / kills))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                done += 1
            else:
                break
    finish(arguments)
    return done


def finish(arguments: Sequence[object]) -> float:
    """Seconds until the command has ended well."""
    began = time.perf_counter()
    with uncanny(arguments) as process:
        code = process.wait()
    assert code == 0, f"exit code {code}"
    return time.perf_counter() - began


def totals(run: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((run / "run.json").read_bytes())
    assert manifest["state"] == "finished", manifest["state"]
    return dict(manifest["totals"])


def check(run: Path, alone: Path, records: str, key: Sequence[str]) -> int:
    """That both have the same inputs, each once, and all of them answered; how many there are."""

    def keys(folder: Path) -> list[tuple[str, ...]]:
        lines = [json.loads(line) for line in (folder / records).read_bytes().splitlines()]
        assert {line.get("status", line.get("outcome")) for line in lines} <= {"ok", "answered"}
        return [tuple(line[name] for name in key) for line in lines]

    own, expected = keys(run), keys(alone)
    assert len(own) == len(set(own)) == len(expected), (len(own), len(set(own)), len(expected))
    assert set(own) == set(expected)
    return len(own)


def measure(
    what: str, provider: str, command: Sequence[object], records: str, key: Sequence[str], kills: int
) -> None:
    model = MODELS[provider]
    with tempfile.TemporaryDirectory() as tmp:
        folder = Path(tmp)

        def arguments(url: str, run: Path, *more: str) -> list[object]:
            address = f"{url}/v1" if provider == "openai" else url
            return [*command, "--model", model, "--base-url", address, "-o", run, "-q", *more]

        options = ("--batch-seconds", str(BATCH_SECONDS), "--batch-faults", FAULTS)
        live, calm, run = folder / "live", folder / "calm", folder / "killed"
        with fake_server() as url:
            finish(arguments(url, live))
        with fake_server(*options) as url:
            usual_s = finish(arguments(url, calm, "--batch"))
            lines = stats(url)
        with fake_server(*options) as url:
            done = killed(arguments(url, run, "--batch"), usual_s, kills, seed=len(what))
            after = stats(url)
        number = check(run, live, records, key)
        check(calm, live, records, key)
        full, half, own = (totals(each)["cost_usd"] for each in (live, calm, run))
    print(f"{what}, {model}: {number:,} records, each once, after {done} kills")
    for name, each in (("undisturbed", lines), ("killed", after)):
        print(
            f"  {name:<12}{each['batches']:4} batches {each['batch_lines']:6,} lines, "
            f"{each['requests']:5,} direct calls"
        )
        figure(f"{what}, {model}, {name}, lines answered again", each["batch_lines_answered_again"], "", 0)
    figure(f"{what}, {model}, batches", half, "US dollars", full, "direct calls", wanted=None)
    figure(f"{what}, {model}, killed", own, "US dollars", full, "direct calls", wanted=None)


def stats(url: str) -> dict[str, int]:
    with urllib.request.urlopen(f"{url}/stats") as answer:
        found: dict[str, int] = json.load(answer)
    return found


IN_THE_LINES = """
import sys
from uncanny.cli import main
from uncanny.client import uploads
uploads.SMALLEST_FILE = 1 << 40
main(sys.argv[1:])
"""


def measure_bytes(questions: int) -> None:
    """What is sent with images as files, beside what is sent with images in the lines."""
    with tempfile.TemporaryDirectory() as tmp:
        folder = Path(tmp)
        items = make_items(folder, questions, PICTURE_SIDE)
        for provider, model in MODELS.items():
            sent: dict[bool, dict[str, int]] = {}
            for named in (True, False):
                with fake_server() as url:
                    address = f"{url}/v1" if provider == "openai" else url
                    run = folder / f"{provider}-{named}"
                    asked = ("mcq", "run", items, "--model", model, "--base-url", address, "-o", run, "-q")
                    start = ("-m", "uncanny") if named else ("-c", IN_THE_LINES)
                    command = [sys.executable, *start, *map(str, asked), "--batch"]
                    subprocess.run(command, check=True)
                    sent[named] = stats(url)
            files, lines = sent[True], sent[False]
            assert (files["files"], lines["uploads"]) == (0, 0)
            what = f"{questions} questions about {files['uploads']} images, {model}, sent"
            figure(
                what, files["upload_bytes"] / 1e6, "MB", lines["upload_bytes"] / 1e6, "images in the lines"
            )


def main(questions: int = QUESTIONS, images: int = IMAGES, kills: int = KILLS) -> None:
    os.environ["OPENAI_API_KEY"] = os.environ["ANTHROPIC_API_KEY"] = "any"
    with tempfile.TemporaryDirectory() as tmp:
        folder = Path(tmp)
        measure_bytes(min(questions, WITH_BYTES))
        (folder / "mcq").mkdir()
        items = make_items(folder / "mcq", questions, SIDE)
        write_folder(folder / "images", images, SIDE)
        annotate = ("annotate", folder / "images", "--schedule", "packed", "--no-report")
        for provider in MODELS:
            measure(
                f"{questions:,} questions",
                provider,
                ("mcq", "run", items),
                "answers.jsonl",
                ("id", "question"),
                kills,
            )
            measure(f"{images} images, packed", provider, annotate, "annotations.jsonl", ("image",), kills)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--questions", type=int, default=QUESTIONS, help="At most 3,681.")
    options.add_argument("--images", type=int, default=IMAGES)
    options.add_argument("--kills", type=int, default=KILLS)
    chosen = options.parse_args()
    main(min(chosen.questions, QUESTIONS), chosen.images, chosen.kills)
