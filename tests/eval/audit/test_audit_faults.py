"""How many images show a fault, by kind and by similar names: against counts by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.eval.audit.annotation_sets import anomaly, left_out, record, written
from uncanny.errors import UsageError
from uncanny.eval.audit.run import audit
from uncanny.eval.audit.score.tables import headline, share_ends
from uncanny.eval.common.estimates import Share
from uncanny.eval.metrics.intervals import wilson_interval


def fault(kind: str | None, name: str, severity: int = 10) -> dict[str, Any]:
    return {**anomaly(severity, name), "kind": kind}


def images(folder: Path, name: str, faults: list[list[dict[str, Any]]]) -> Path:
    return written(
        folder / f"{name}.jsonl",
        [record(f"{number}.png", anomalies=each) for number, each in enumerate(faults)],
    )


def test_shares_are_of_images_and_only_clear_faults_are_visible(tmp_path: Path) -> None:
    faults = [
        [fault("anatomy", "six fingers", 49), fault("anatomy", "two thumbs", 60)],
        [fault("text", "no letters", 50)],
        [fault(None, "odd thing", 0)],
        [],
    ]
    file = images(tmp_path, "a", faults)
    with file.open("ab") as lines:
        lines.write(
            images(tmp_path, "x", [[fault("text", "no letters")]]).read_bytes().replace(b"0.png", b"z")
        )
    written(tmp_path / "left.jsonl", [left_out("y.png", "failed")])
    result = audit({"a": file}, resamples=100)
    own = result["a"].faults
    assert (own.visible.counts, own.visible.out_of) == (3, 5)
    assert own.visible.interval == wilson_interval(3, 5)
    by_kind = {
        kind: (each.share.counts, each.anomalies) for kind, each in own.kinds.items() if each.anomalies
    }
    assert by_kind == {"anatomy": (1, 2), "text": (2, 2), None: (1, 1)}
    assert own.kinds["light"].share.value == 0
    assert own.without_kind == 1
    kept = result.to_json()["generators"]["a"]
    assert kept["visible"]["share"] == 0.6
    assert kept["kinds"]["not recorded"]["anomalies"] == 1


def test_images_of_one_prompt_are_resampled_together(tmp_path: Path) -> None:
    """Ten prompts with four images each that are all alike: as much is known as of ten images."""
    faults = [[fault("text", "no letters")] if number % 10 < 5 else [] for number in range(40)]
    records = [
        record(f"{number}.png", anomalies=each, seed=str(number % 10)) for number, each in enumerate(faults)
    ]
    file = written(tmp_path / "a.jsonl", records)
    together = audit({"a": file}, pair_by="seed", resamples=2000)["a"].faults.visible
    alone = audit({"a": file}, resamples=2000)["a"].faults.visible
    assert together.value == alone.value == 0.5
    assert together.interval is not None
    assert alone.interval is not None
    assert together.interval == pytest.approx((0.2, 0.8), abs=0.1)
    assert together.interval[1] - together.interval[0] > 1.5 * (alone.interval[1] - alone.interval[0])
    assert audit({"a": file}, resamples=0)["a"].faults.visible.interval is None
    never = audit({"a": file}, pair_by="seed", resamples=200)["a"].faults.kinds["light"].share
    assert (never.value, never.interval) == (0, wilson_interval(0, 10))


def test_ends_that_are_nearly_0_or_100_are_not_rounded_there() -> None:
    for ends, words in (
        ((0.0, 0.0038), "0–0.4"),
        ((0.00004, 0.0126), "0.004–1"),
        ((0.9962, 1.0), "99.6–100"),
        ((0.384, 0.4649), "38–46"),
    ):
        assert share_ends(Share(0.5, 1, 2, ends)) == words
    assert share_ends(Share(None, 0, 0)) == ""


def test_names_are_grouped_by_kind_and_then_by_likeness(tmp_path: Path) -> None:
    first = [
        [fault("anatomy", "Extra finger"), fault("anatomy", "extra fingers")],
        [fault("anatomy", "extra  FINGER")],
        [fault("count", "extra finger")],
    ]
    second = [[fault("anatomy", "extra fingers")], [fault("text", "garbled letters")], []]
    result = audit({"a": images(tmp_path, "a", first), "b": images(tmp_path, "b", second)}, resamples=100)
    faults = result.leaderboard.faults
    rows = {(row.group.kind, row.group.name): row for row in faults.rows}
    assert set(rows) == {("anatomy", "Extra finger"), ("count", "extra finger"), ("text", "garbled letters")}
    fingers = rows["anatomy", "Extra finger"]
    # One image with two of the group counts once.
    assert fingers.group.others == ("extra fingers",)
    assert fingers.group.anomalies == 4
    assert {name: share.counts for name, share in fingers.shares.items()} == {"a": 2, "b": 1}
    assert (faults.measure, faults.similar) == ("chrf", 0.6)
    # What was there before is as it was: names by their letters, of all kinds together.
    assert [(name.name, name.anomalies, name.images) for name in result["a"].names] == [
        ("Extra finger", 3, 3),
        ("extra fingers", 1, 1),
    ]
    apart = audit({"a": tmp_path / "a.jsonl"}, resamples=0, group_threshold=1.0).leaderboard.faults
    assert len(apart.rows) == 3
    with pytest.raises(UsageError, match="threshold"):
        audit({"a": tmp_path / "a.jsonl"}, group_threshold=1.5)


def test_the_headline_is_about_ones_own_generator_where_it_is_named(tmp_path: Path) -> None:
    bad, good = [fault("text", "no letters")], list[dict[str, Any]]()
    sources = {
        "ours": images(tmp_path, "a", [bad] * 4 + [good] * 6),
        "x": images(tmp_path, "b", [bad] * 3 + [good] * 7),
        "y": images(tmp_path, "c", [bad] * 9 + [good]),
    }
    ours = "ours shows a visible fault in 40 % of images [17–69]"
    leaders = (
        "x (0.08) and ours (0.14) lead in CAP (lower is better); ours is not significantly behind x. "
        "x is significantly ahead of y (0.73)."
    )
    assert headline(audit(sources, own="ours")) == f"{ours}. {leaders}"
    assert headline(audit(sources)) == f"x shows a visible fault in 30 % of images [11–60]. {leaders}"
    assert headline(audit(sources, resamples=0)).endswith("Whether they differ is not tested.")
    few = {**sources, "few": images(tmp_path, "d", [good] * 9)}
    assert headline(audit(few, own="few")) == (
        f"few (ours) shows a visible fault in 0 % of images [0–30], too few images to compare. {leaders}"
    )
    assert headline(audit(sources, own="x")).startswith("x (ours) shows a visible fault in 30 %")
    assert headline(audit({"ours": sources["ours"]}, own=["ours"])) == f"{ours}."
    twice = {"ours": sources["ours"], "again": sources["ours"]}
    assert headline(audit(twice, own="ours")).startswith(f"{ours}. No significant difference between")
    with pytest.raises(UsageError, match="`own` names 'z', which is not a generator here"):
        audit(sources, own="z")
