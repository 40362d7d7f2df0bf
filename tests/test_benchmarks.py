"""The measurements can be run one by one, and need only what they measure."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks import common, ratios
from benchmarks.common import Figure
from benchmarks.table import markdown, text

ROOT = Path(__file__).parent.parent


def test_only_benchmarks_that_are_there_are_named() -> None:
    command = [sys.executable, "-m", "benchmarks", "no such one"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    names = done.stderr.strip().split("Choose among ")[1].strip(".").split(", ")
    files = [list((ROOT / "benchmarks").glob(f"*/{name}.py")) for name in names]
    assert all("\ndef main(" in file.read_text() for (file,) in files)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["calls.overhead", "calls.orchestration", "calls.startup"])
def test_what_measures_no_service_needs_none(name: str) -> None:
    script = f"import sys; sys.modules |= dict.fromkeys(['fastapi', 'uvicorn']); import benchmarks.{name}"
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)


def test_a_ratio_that_is_too_much_worse_is_measured_once_more() -> None:
    def from_these(*figures: float) -> tuple[Iterator[float], Callable[[], float]]:
        left = iter(figures)
        return left, lambda: next(left)

    left, measure = from_these(1.3, 9.0)
    assert ratios.compared(measure, 1.0) == 1.3
    assert list(left) == [9.0]
    for second in (1.0, 1.5):
        left, measure = from_these(1.4, second, 9.0)
        assert ratios.compared(measure, 1.0) == second
        assert list(left) == [9.0]


def test_a_ratio_is_the_median_of_rounds_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    seconds = iter([2.0, 1.0, 30.0, 10.0, 8.0, 1.0])
    monkeypatch.setattr(ratios, "_spent", lambda work: (work(), next(seconds))[1])
    assert ratios.measured(lambda: done.append("ours"), lambda: done.append("peer"), 3) == 3.0
    assert done == ["ours", "peer"] * 4  # the first round is not measured


def test_a_ratio_is_recorded_and_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def made_up() -> ratios.Sides:
        """Ours, beside a peer."""
        yield list, list

    monkeypatch.setattr(ratios, "RATIOS", {"one": made_up, "other": made_up})
    monkeypatch.setattr(common, "FIGURES", [])
    file = tmp_path / "ratios.json"
    for name, value in (("one", 0.5), ("other", 2.0), ("one", 0.25)):
        monkeypatch.setattr(ratios, "measured", lambda *_, value=value: value)
        ratios.main(name, record=True, recorded=file)
    assert json.loads(file.read_bytes())["ratios"] == {"one": 0.25, "other": 2.0}
    for value, met in ((2.6, True), (2.7, False)):
        monkeypatch.setattr(ratios, "measured", lambda *_, value=value: value)
        ratios.main("other", recorded=file)
        assert common.FIGURES[-1].met is met


def test_all_ratios_are_recorded() -> None:
    assert json.loads(ratios.RECORDED.read_bytes())["ratios"].keys() == ratios.RATIOS.keys()


def test_the_table_says_what_is_met() -> None:
    stated = [
        ("a", Figure("time", 2.0, "s", 4.0, "bare loop", wanted=0.4)),
        ("a", Figure("memory", 399.0, "MB", 400.0)),
        ("b", Figure("calls/s", 90.0, "", 100.0, "ideal", wanted=0.85, higher=True)),
        ("b", Figure("faults", 1.0, "", 0.0)),
        ("b", Figure("shown", 1234.0)),
        ("b", Figure("beside", 3.0, "ms", 2.0, "a|b", wanted=None)),
    ]
    rows = [
        "| a | time | 2 s | bare loop 4 s | 0.5 (at most 0.4) | not met |",
        "| a | memory | 399 MB | limit 400 MB | 0.998 | met |",
        "| b | calls/s | 90 | ideal 100 | 0.9 (at least 0.85) | met |",
        "| b | faults | 1 | limit 0 |  | not met |",
        "| b | shown | 1,234 |  |  |  |",
        "| b | beside | 3 ms | a\\|b 2 ms | 1.5 |  |",
    ]
    page = markdown(stated, ["c"])
    assert page.startswith("Python 3")
    assert page.splitlines()[4:-2] == rows
    assert page.endswith("\n\nFailed: c.\n")
    line = text(stated).splitlines()[2]
    assert " ".join(line.split()) == "a time 2 s bare loop 4 s 0.5 (at most 0.4) not met"
