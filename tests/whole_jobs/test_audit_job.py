"""Four generators' folders from one command to a leaderboard, with the mistakes that users made."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.whole_jobs.conftest import Shell, copy

# Many processes: a busy machine takes its time.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

GENERATORS = ("atlas", "birch", "coral", "dune")


def test_four_generators_are_ranked(shell: Shell, scenes: Path) -> None:
    images = sorted(path.name for path in scenes.iterdir())
    for number, name in enumerate(GENERATORS):
        copy(scenes, shell.folder / "images" / name, *images[number::4][:4])
    named = [f"{name}=images/{name}" for name in GENERATORS]

    assert "Did you mean audit" in shell.mistake("audti", *named)
    assert "given 2 times" in shell.mistake("audit", *named, "-m", "demo", "-m", "noop", "-o", "runs/a")
    assert "does not name a provider" in shell.mistake("audit", *named, "-m", "gpt-4o", "-o", "runs/a")
    unpriced = shell.mistake("audit", *named, "-m", "openai/own", "--max-cost-usd", 5, "-o", "runs/a")
    assert "--prices" in unpriced

    dry = shell.uncanny("audit", *named, "-m", "demo", "--dry-run")
    assert dry.code == 0
    assert not list(shell.folder.glob("runs/**/*.jsonl"))

    done = shell.uncanny("audit", *named, "-m", "demo", "-o", "runs/a", "--json", "a.json", "--csv", "a.csv")
    assert done.code == 0, done.err
    report = json.loads((shell.folder / "a.json").read_text())
    assert set(report["order"]) == set(GENERATORS)
    for figures in report["generators"].values():
        assert figures["ci"]["cap"] is None  # four images say nothing of a mean
        low, high = figures["visible"]["ci"]
        assert low <= figures["visible"]["share"] <= high
    assert not any(difference["apart"] for difference in report["differences"])
    rows = list(csv.DictReader((shell.folder / "a.csv").open()))
    assert {row["generator"] for row in rows} == set(GENERATORS)

    # The same command asks nothing again; a run of it is a run like any other.
    before = (shell.folder / "runs/a/dune/calls.jsonl").read_bytes()
    assert shell.uncanny("audit", *named, "-m", "demo", "-o", "runs/a", "--quiet").code == 0
    assert (shell.folder / "runs/a/dune/calls.jsonl").read_bytes() == before
    assert shell.uncanny("report", "runs/a/dune").code == 0
    assert "contains a run of" in shell.mistake("realism", "run", "scenes", "-m", "demo", "-o", "runs/a/dune")
    # Runs that were made in different ways are no audit.
    assert shell.uncanny("annotate", "images/atlas", "-m", "noop", "-o", "runs/other", "--quiet").code == 0
    mixed = shell.mistake("audit", "atlas=runs/other", "birch=runs/a/birch")
    assert "not made alike" in mixed

    # A page of another kind of run is the same command.
    assert shell.uncanny("realism", "run", "scenes", "-m", "demo", "-o", "r", "--limit", 1, "-q").code == 0
    assert shell.uncanny("report", "r").out.strip().endswith("r/report.html")
