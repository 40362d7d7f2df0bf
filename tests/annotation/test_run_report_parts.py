"""The parts of the report that compute: time without pauses, and bars."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from uncanny.annotation.report.calls import index_calls, timeline
from uncanny.annotation.report.counts import (
    per_image_histogram,
    severity_histogram,
)


def write_calls(path: Path, *calls: dict[str, Any]) -> Path:
    path.write_text(
        "".join(json.dumps({"image": "a.png", "outcome": "answered"} | call) + "\n" for call in calls)
    )
    return path


def test_a_night_between_two_sessions_is_cut_out(tmp_path: Path) -> None:
    file = write_calls(
        tmp_path / "calls.jsonl",
        {"started": "2026-03-02T08:00:00.500Z", "latency_s": 2.0},
        {"started": "2026-03-01T20:00:00.000+00:00", "latency_s": 1.5},
        {"started": "2026-03-01T20:00:01.000Z", "latency_s": 3.0},
    )
    line = timeline(index_calls(file, {"a.png"}), "a.png")
    assert [call["at"] for call in line.calls] == [0.0, 1.0, 4.0]
    assert line.breaks == [{"at": 4.0, "seconds": 43_196.5}]
    assert line.span == 6.0


def test_calls_without_a_time_stand_last_and_off_the_clock(tmp_path: Path) -> None:
    file = write_calls(
        tmp_path / "calls.jsonl", {"agent": "B"}, {"agent": "A", "started": "2026-03-01T20:00:00Z"}
    )
    line = timeline(index_calls(file, {"a.png"}), "a.png")
    assert [(call["agent"], call["at"], call["line"]) for call in line.calls] == [
        ("A", 0.0, 2),
        ("B", None, 1),
    ]
    assert line.span == 0


def test_other_images_count_and_are_not_kept(tmp_path: Path) -> None:
    file = write_calls(tmp_path / "calls.jsonl", {}, {"image": "b.png", "outcome": "error", "replayed": True})
    index = index_calls(file, {"a.png"})
    assert list(index.at) == ["a.png"]
    assert index.outcomes == {"answered": 1, "error": 1}
    assert (index.calls, index.replayed, index.skipped) == (2, 1, 0)


@given(st.dictionaries(st.integers(0, 100), st.integers(1, 1000)))
def test_every_severity_is_in_one_bar(counts: dict[int, int]) -> None:
    chart = severity_histogram(Counter(counts))
    assert sum(bar.count for bar in chart.bars) == chart.total == sum(counts.values())
    assert all(bar.x >= 0 and bar.x + bar.width <= chart.width and bar.y >= 0 for bar in chart.bars)


@given(st.dictionaries(st.integers(0, 60), st.integers(1, 1000)))
def test_every_image_is_in_one_bar(counts: dict[int, int]) -> None:
    chart = per_image_histogram(Counter(counts))
    assert sum(bar.count for bar in chart.bars) == chart.total == sum(counts.values())
    assert len(chart.bars) <= 16
    assert not chart.bars or chart.bars[-1].label.endswith("+") == (max(counts) > 15)
