"""Release over release: differences on shared prompts, what got better or worse, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.eval.audit.annotation_sets import anomaly, record, written
from uncanny.errors import NotAlikeError, UsageError
from uncanny.eval.audit.run import audit


def release(path: Path, faults: list[list[str]], **other: Any) -> Path:
    """An image a prompt; each fault is a kind."""
    records = [
        record(f"{path.stem}/{number:03}.png", **other)
        | {"anomalies": [{**anomaly(20, f"bad {kind}"), "kind": kind} for kind in kinds]}
        for number, kinds in enumerate(faults)
    ]
    return written(path, records)


def test_differences_are_paired_and_by_kind(tmp_path: Path) -> None:
    before = [["anatomy", "text"]] * 30 + [["anatomy"]] * 10 + [[]] * 20
    now = [["text"]] * 30 + [[]] * 10 + [["text"]] * 2 + [[]] * 18
    places = {
        "v2": release(tmp_path / "now.jsonl", now),
        "other": release(tmp_path / "other.jsonl", now),
    }
    result = audit(places, before={"v2": release(tmp_path / "old.jsonl", before)}, resamples=1000)
    (changed,) = result.releases.values()
    assert (changed.name, changed.images, changed.paired, changed.shared) == ("v2", (60, 60), 60, 60)
    visible = changed.figures["visible"]
    assert (visible.before, visible.now) == (40 / 60, 32 / 60)
    assert visible.difference.value == pytest.approx(-8 / 60)
    assert visible.verdict == "better"
    # Of 60 prompts 10 changed from 1 to 0 and 2 from 0 to 1: the normal interval of paired shares.
    half = 1.96 * float(np.std([-1] * 10 + [1] * 2 + [0] * 48)) / 60**0.5
    assert visible.difference.interval == pytest.approx((-8 / 60 - half, -8 / 60 + half), abs=0.02)
    assert changed.kinds["anatomy"].verdict == "better"
    assert changed.kinds["anatomy"].difference.value == pytest.approx(-40 / 60)
    assert changed.kinds["text"].verdict == "no clear change"
    assert changed.kinds["light"].difference.value == 0
    assert [group.name for group, _ in changed.changed_groups("better")] == ["bad anatomy"]
    assert (changed.n_worse, changed.n_better) == (2, 40)
    assert [each.prompt for each in changed.worse] == ["040", "041"]
    assert changed.worse[0].change == pytest.approx(0.8)
    assert changed.worse[0].images is not None
    assert changed.worse[0].images[1].image == "now/040.png"
    kept = result.to_json()["before"]["v2"]
    assert kept["figures"]["visible"]["verdict"] == "better"
    assert kept["prompts"]["n_better"] == 40
    assert "v2, now and before, over 60 shared prompts" in str(result)


def test_other_prompts_are_compared_unpaired(tmp_path: Path) -> None:
    before = written(tmp_path / "old.jsonl", [record(f"old{number}.png", [10]) for number in range(20)])
    now = written(tmp_path / "now.jsonl", [record(f"{number}.png") for number in range(20)])
    changed = audit({"a": now}, before={"a": before}, resamples=200).releases["a"]
    assert changed.paired is None
    assert (changed.shared, changed.worse, changed.better) == (0, (), ())
    assert changed.figures["af"].difference.value == -1
    unmeasured = audit({"a": now}, before={"a": before}, resamples=0).releases["a"]
    assert unmeasured.figures["af"].verdict == "not measured"


def test_the_earlier_release_has_to_be_made_alike_and_be_of_a_generator(tmp_path: Path) -> None:
    now, old = release(tmp_path / "now.jsonl", [[]]), release(tmp_path / "old.jsonl", [[]], model="vllm/x")
    with pytest.raises(NotAlikeError, match="a, before: vllm/x"):
        audit({"a": now}, before={"a": old})
    assert audit({"a": now}, before={"a": old}, allow_mixed=True).leaderboard.mixed
    with pytest.raises(UsageError, match="`before` names 'b', which is no generator here"):
        audit({"a": now}, before={"b": now})
    with pytest.raises(UsageError, match="Annotate them first, as those of now"):
        audit({"a": now}, before={"a": "scenes:drawn"})
