"""The commands: their output, their exit codes, and a kill in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.eval.pairs.made_candidates import pictures
from tests.runs.e2e import uncanny_here

pytest.importorskip("cv2")


def test_from_images_to_items(tmp_path: Path) -> None:
    images, run = pictures(tmp_path / "pictures", 2), tmp_path / "pairs"
    made = uncanny_here("pairs", "make", images, "-o", run, "--inpainter", "demo", "--attempts", "2")
    assert made.code == 0, made.err
    assert "Made     4 candidates" in made.out
    assert f"uncanny pairs screen {run}" in made.out
    screened = uncanny_here("pairs", "screen", run, "--model", "demo")
    assert screened.code == 0, screened.err
    assert f"uncanny review {run / 'screened'}" in screened.out
    items = uncanny_here("pairs", "items", run, "--unreviewed", "--json", tmp_path / "pairs.json")
    assert items.code == 0, items.err
    assert "Candidates by step" in items.out
    assert f"Items    {run / 'items.jsonl'}" in items.out
    content = json.loads((tmp_path / "pairs.json").read_text())
    assert content["candidates"] == 4
    assert content["candidates"] == content["kept"] + sum(content["rejected"].values()) + sum(
        content["open"].values()
    )
    assert (run / "pairs.html").is_file()
    checked = uncanny_here("mcq", "check", run / "items.jsonl")
    assert "0 errors" in checked.out + checked.err or content["kept"] == 0


def test_a_forecast_asks_nothing(tmp_path: Path) -> None:
    images = pictures(tmp_path / "pictures", 2)
    forecast = uncanny_here(
        "pairs", "make", images, "--inpainter", "openai/gpt-image-1", "--attempts", "3", "--dry-run"
    )
    assert forecast.code == 0, forecast.err
    assert "Calls    6" in forecast.out
    assert "$" in forecast.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("make", "PICTURES", "--inpainter", "demo"), "No run folder is given"),
        (("make", "PICTURES", "-o", "RUN", "--inpainter", "demo", "--batch"), "not painted in batches"),
        (("make", "PICTURES", "-o", "RUN", "--inpainter", "gpt-image-1"), "does not name a provider"),
        (("screen", "PICTURES"), "no pairs were made there"),
        (("items", "PICTURES"), "no pairs were made there"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    places = {"PICTURES": pictures(tmp_path / "pictures"), "RUN": tmp_path / "run"}
    done = uncanny_here("pairs", *(places.get(word, word) for word in words))
    assert done.code == 2
    assert message in done.err


@pytest.mark.slow
def test_a_killed_run_resumes_and_paints_the_same(tmp_path: Path) -> None:
    images = pictures(tmp_path / "pictures", 3)
    arguments = ["pairs", "make", str(images), "--inpainter", "demo", "--attempts", "4", "--quiet"]
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    process = subprocess.Popen(
        [sys.executable, "-m", "uncanny", *arguments, "-o", str(killed), "--concurrency", "1"],
        env=dict(os.environ),
    )
    deadline = time.monotonic() + 100
    while time.monotonic() < deadline and not list(killed.glob("edited/*.png")):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert uncanny_here(*arguments, "-o", killed).code == 0
    assert uncanny_here(*arguments, "-o", whole).code == 0
    digests = [
        [
            candidate["sha256"]
            for line in (run / "candidates.jsonl").read_text().splitlines()
            for candidate in json.loads(line)["candidates"]
        ]
        for run in (killed, whole)
    ]
    assert digests[0] == digests[1]
    assert len(digests[0]) == 12
