"""Merged runs: findings joined as `compare` matches them, voters, records, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import uncanny
from tests.eval.compare.made_runs import anomaly, as_records, record, written
from tests.eval.merge.made_reviews import run_folder
from tests.runs.e2e import uncanny_here
from uncanny.errors import UsageError

if TYPE_CHECKING:
    from tests.bundled_runs import BundledRuns


def merged(out: Path) -> dict[str, dict[str, Any]]:
    return {
        line["image"]: line for line in map(json.loads, (out / "annotations.jsonl").read_text().splitlines())
    }


def by_text(out: Path) -> dict[str, dict[str, Any]]:
    """The merged findings of all images by the first word of their phenomenon."""
    return {
        each["phenomenon"].partition(":")[0]: each
        for line in merged(out).values()
        for each in line["anomalies"]
    }


def test_a_case_worked_by_hand(tmp_path: Path) -> None:
    hand: dict[str, Any] = {"confidence": 0.7, "severity": 30, "box": [0, 0, 10, 10], "kind": "anatomy"}
    a = run_folder(tmp_path / "a", {"1.png": [anomaly("hand", **hand), anomaly("cup")], "2.png": []})
    b = run_folder(
        tmp_path / "b", {"1.png": [anomaly("sign"), anomaly("fingers", "hand", confidence=0.9)], "2.png": []}
    )
    c = run_folder(tmp_path / "c", {"1.png": [anomaly("cup")], "2.png": [anomaly("rope", severity=80)]})
    result = uncanny.merge({"a": a, "b": b, "c": c}, out=tmp_path / "all")
    found = by_text(tmp_path / "all")
    assert {
        name: (each["voters"], each["missed_by"], each["confidence"]) for name, each in found.items()
    } == {
        "hand": (["a", "b"], ["c"], 0.6667),
        "cup": (["a", "c"], ["b"], 0.6667),
        "sign": (["b"], ["a", "c"], 0.3333),
        "rope": (["c"], ["a", "b"], 0.3333),
    }
    # The surest text, and of the other what it lacks.
    assert found["hand"]["name"] == "fingers"
    assert found["hand"]["severity"] == 20
    assert found["hand"]["box"] == [0, 0, 10, 10]
    assert found["hand"]["kind"] == "anatomy"
    assert found["hand"]["members"] == {"a": 0, "b": 1}
    assert result.basis == "votes"
    assert (result.images, result.not_examined) == (2, 0)
    assert (result.merged.findings, result.sure.findings) == (4, 2)
    assert result.merged.visible.counts == 1
    assert result.runs["c"].agreement.counts == 1
    assert result.runs["c"].agreement.out_of == 2
    assert result.merged.agreement.value == 0.5
    assert result.merged.accepted.value is None


def test_a_failed_record_is_not_a_flawless_image(tmp_path: Path) -> None:
    why = {"agent": "image", "step": 0, "object": None, "kind": "server", "message": "The server is down."}
    a = run_folder(tmp_path / "a", {"1.png": [anomaly("hand")], "2.png": [anomaly("cup")]})
    b = written(
        tmp_path / "b.jsonl",
        [
            record("1.png", status="failed", errors=[why]),
            record("2.png"),
            record("3.png", status="failed", errors=[why]),
        ],
    )
    result = uncanny.merge({"a": a, "b": b}, out=tmp_path / "all")
    found, records = by_text(tmp_path / "all"), list(merged(tmp_path / "all").values())
    assert (found["hand"]["voters"], found["hand"]["missed_by"], found["hand"]["confidence"]) == (
        ["a"],
        [],
        1,
    )
    assert (found["cup"]["missed_by"], found["cup"]["confidence"]) == (["b"], 0.5)
    assert [each["status"] for each in sorted(records, key=lambda each: each["image"][-5:])] == [
        *("ok", "ok", "failed")
    ]
    failed = next(each for each in records if each["status"] == "failed")
    assert failed["errors"] == [why | {"run": "b"}]
    assert failed["not_examined_by"] == {"b": "failed"}
    assert result.not_examined == 1
    assert result.runs["b"].images == 1
    assert "b did not examine 2 of its 3 images" in str(result).replace("\n  ", " ")
    assert "a has no record of 1 of 3 images" in str(result).replace("\n  ", " ")


def test_images_match_by_digest_under_other_names(tmp_path: Path) -> None:
    a = as_records([record("x/1.png", [anomaly("hand")], sha256="aa"), record("x/2.png", sha256="bb")])
    b = as_records([record("y/7.png", [anomaly("hand")], sha256="aa")])
    uncanny.merge({"a": a, "b": b}, out=tmp_path / "all")
    assert by_text(tmp_path / "all")["hand"]["voters"] == ["a", "b"]
    assert len(merged(tmp_path / "all")) == 2


def test_a_run_of_each_half_merges_with_a_run_of_all(tmp_path: Path) -> None:
    first, second = as_records([record("1.png", [anomaly("hand")])]), as_records([record("2.png")])
    both = as_records([record("1.png"), record("2.png")])
    result = uncanny.merge({"a": first, "b": second, "c": both}, out=tmp_path / "all")
    assert result.images == 2
    assert by_text(tmp_path / "all")["hand"]["missed_by"] == ["c"]


def test_doubtful_findings_are_left_out_and_counted(tmp_path: Path) -> None:
    a = as_records([record("1.png", [anomaly("hand", confidence=0.2), anomaly("cup")])])
    b = as_records([record("1.png", [anomaly("hand", confidence=0.9)])])
    result = uncanny.merge({"a": a, "b": b}, out=tmp_path / "all")
    assert by_text(tmp_path / "all")["hand"]["members"] == {"b": 0}
    assert by_text(tmp_path / "all")["cup"]["members"] == {"a": 1}
    assert "a: 1 finding below confidence 0.5 is left out." in result.notices
    uncanny.merge({"a": a, "b": b}, out=tmp_path / "more", min_confidence=0)
    assert by_text(tmp_path / "more")["hand"]["members"] == {"a": 0, "b": 0}


def test_other_prompts_are_told(tmp_path: Path) -> None:
    a = as_records([record("1.png")])
    b = as_records([record("1.png", prompts="annotate@2")])
    result = uncanny.merge({"a": a, "b": b}, out=tmp_path / "all")
    assert result.notices == ("The runs were not made alike: prompts: a: annotate@1; b: annotate@2.",)


def test_what_cannot_be_merged_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    a = run_folder(tmp_path / "a", {"1.png": []})
    b = run_folder(tmp_path / "b", {"2.png": []})
    before = sorted(tmp_path.rglob("*"))
    for runs, message in (
        ({"a": a}, "A merge takes two runs or more, not 1"),
        ({"a": a, "b": b}, "no image of a is in b: '1.png' here, '2.png' there"),
        ({"a": a, "": b}, "'' is not a name of a run"),
        ([a, b], "must be a mapping from name to run"),
    ):
        with pytest.raises(UsageError, match=message):
            uncanny.merge(runs, out=tmp_path / "all")  # type: ignore[arg-type]
    for out, message in (
        (a, "is a, one of the runs to merge"),
        (tmp_path, "is not empty"),
        (a / "annotations.jsonl", "not a folder"),
    ):
        with pytest.raises(UsageError, match=message):
            uncanny.merge({"a": a, "b": a}, out=out)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_file_that_changed_between_the_runs_is_refused(tmp_path: Path) -> None:
    a = as_records([record("1.png", sha256="aa"), record("2.png")])
    b = as_records([record("1.png", sha256="bb"), record("2.png")])
    with pytest.raises(UsageError, match=r"1\.png has different bytes in a and in b"):
        uncanny.merge({"a": a, "b": b}, out=tmp_path / "all")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_command_writes_a_run_that_the_others_read(bundled_run: BundledRuns, tmp_path: Path) -> None:
    for name in ("annotate", "detect"):
        bundled_run(name).copy(tmp_path / name)
    named = [f"a={tmp_path / 'annotate'}", f"b={tmp_path / 'detect'}"]
    done = uncanny_here("merge", *named, "-o", tmp_path / "all", "--json")
    assert done.code == 0, done.err
    told = done.json()
    assert told["images"] == 34
    assert told["merged"]["findings"] >= told["runs"]["a"]["findings"]
    records = merged(tmp_path / "all").values()
    assert sum(len(each["anomalies"]) for each in records) == told["merged"]["findings"]
    assert all((tmp_path / "all" / each["image"]).is_file() for each in records)
    again = uncanny_here("merge", *named, "-o", tmp_path / "all")
    assert again.code == 2
    assert "is not empty, and a merge does not resume" in again.err
    assert uncanny.report(tmp_path / "all").is_file()
    assert "all" in str(uncanny.audit({"all": tmp_path / "all"}, resamples=0))
    assert uncanny.export(tmp_path / "all", to="csv", out=tmp_path / "all.csv", all=True).images == 34
    (comparison,) = uncanny.compare(tmp_path / "all", tmp_path / "annotate", resamples=0).comparisons
    assert comparison.only_b == 0
