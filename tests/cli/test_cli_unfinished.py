"""Scores of runs that are not finished say so, and how much is missing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from tests.bundled_runs import BundledRuns, Kind
from tests.runs.e2e import uncanny_here
from uncanny.eval.detect.data import SourceTruth
from uncanny.eval.detect.score import score

RECORDS: dict[Kind, str] = {
    "annotate": "annotations.jsonl",
    "realism": "verdicts.jsonl",
    "mcq": "answers.jsonl",
}
CutShort = Callable[[Kind, int], Path]


@pytest.fixture
def cut_short(bundled_run: BundledRuns, tmp_path: Path) -> CutShort:
    return lambda kind, kept: _cut_short(bundled_run(kind).copy(tmp_path / "demo"), kind, kept)


def _cut_short(run: Path, kind: Kind, kept: int) -> Path:
    """A run of the bundled scenes as an interruption leaves it, with `kept` records."""
    records = run / RECORDS[kind]
    records.write_bytes(b"".join(records.read_bytes().splitlines(keepends=True)[:kept]))
    manifest = orjson.loads((run / "run.json").read_bytes())
    (run / "run.json").write_bytes(orjson.dumps(manifest | {"state": "interrupted"}))
    return run


def test_realism(cut_short: CutShort, tmp_path: Path) -> None:
    run = cut_short("realism", 3)
    done = uncanny_here("realism", "score", run, "--resamples", "0", "--json", tmp_path / "scores.json")
    missing = "its run is not finished (interrupted), 13 of 16 pairs are missing"
    assert f"demo: {missing}; start it again to resume" in " ".join(done.out.split())
    figures = orjson.loads((tmp_path / "scores.json").read_bytes())
    assert (figures["n"], figures["unfinished"]) == (
        3,
        {"missing": 13, "of": 16, "unit": "pairs", "state": "interrupted"},
    )
    assert missing in (run / "realism.html").read_text()


def test_semantic(cut_short: CutShort, tmp_path: Path) -> None:
    run = cut_short("annotate", 33)
    command = ("semantic", run, "--truth", "scenes", "--similarity", "chrf", "--resamples", "0")
    done = uncanny_here(*command, "--json", tmp_path / "scores.json")
    said = "its run is not finished (interrupted), 1 of 34 images is missing"
    assert said in " ".join(done.out.split())
    (figures,) = orjson.loads((tmp_path / "scores.json").read_bytes())["predictions"].values()
    assert figures["unfinished"]["missing"] == 1
    assert said in (run / "semantic.html").read_text()


def test_audit(cut_short: CutShort, tmp_path: Path) -> None:
    run = cut_short("annotate", 15)
    page = tmp_path / "audit.html"
    done = uncanny_here("audit", f"a={run}", "--resamples", "0", "--report", page)
    said = "a: its run is not finished (interrupted), 19 images are missing."
    assert said in " ".join(done.out.split())
    assert said in page.read_text()
    found = uncanny_here("audit", f"a={run}", "--resamples", "0", "--json", "-").json()
    assert found["generators"]["a"]["unfinished"]["missing"] == 19


def test_mcq(cut_short: CutShort) -> None:
    run = cut_short("mcq", 123)
    done = uncanny_here("mcq", "score", "scenes", run, "--resamples", "0")
    assert "Missing answers, not counted: demo 6 of 129 (6 not answered)" in done.out
    assert "Of 129 that were asked for" in (run / "mcq.html").read_text()


@pytest.mark.parametrize("kind", ["annotate", "realism"])
def test_finished_runs_say_nothing(kind: Kind, cut_short: CutShort) -> None:
    run = cut_short(kind, 34)
    command = ("audit", f"a={run}") if kind == "annotate" else ("realism", "score", run)
    done = uncanny_here(*command, "--no-report", "--resamples", "0")
    assert "missing" not in done.out


def test_detect() -> None:
    truth = SourceTruth({"a.png": "real"}, "t")
    assert score([], truth, images=4).to_json()["missing"] == 4
    assert "missing" not in score([], truth).to_json()
