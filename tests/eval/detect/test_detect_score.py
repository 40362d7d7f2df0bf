"""Scores of records: what is in them, and what is counted apart."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binomtest  # type: ignore[import-untyped]

import uncanny
from tests.bundled_runs import BundledRuns
from uncanny.demo.scenes import scenes
from uncanny.errors import UsageError
from uncanny.eval.detect.data import SourceTruth
from uncanny.eval.detect.score import compare_runs, score
from uncanny.eval.metrics.intervals import wilson_interval
from uncanny.schema import Detection, Source, StepError

TRUTH = SourceTruth(
    {"a": "generated", "b": "generated", "c": "real", "d": "real", "e": "real"}, "t.jsonl", unused=2
)
FAILED = (StepError(agent="SourceDetector", step=2, kind="refused", message="no"),)


def record(image: str, source: Any, verdict: str | None = "…", **more: Any) -> Detection:
    fields: dict[str, Any] = {"sha256": image, "width": 1, "height": 1, "status": "ok"}
    fields |= {"model": "m", "prompts": "p", "image": image, "source": source, "verdict": verdict}
    return Detection(**fields | more)


def test_failed_calls_and_unknown_truths_are_in_no_score() -> None:
    found = score(
        [
            record("a", "generated"),
            record("b", None, "who knows"),
            record("c", "real", status="partial", errors=FAILED),
            record("d", None, None, status="failed", errors=FAILED),
            record("e", None, None, status="unreadable", errors=FAILED),
            record("f", "generated"),
        ],
        TRUTH,
    )
    assert (found.scored.images, found.scored.right, found.scored.unparseable) == (3, 2, 1)
    assert (found.without_answer, found.without_truth) == (2, 1)


def test_a_refusal_is_a_wrong_answer_even_without_words() -> None:
    found = score([record("a", None, "", refused=True)], TRUTH)
    assert (found.scored.images, found.scored.accuracy) == (1, 0.0)


def test_json_has_every_figure_and_null_for_what_is_not_there() -> None:
    told = score([record("a", "generated"), record("b", None)], TRUTH).to_json()
    assert told == {
        "truth": "t.jsonl",
        "images": 2,
        "accuracy": 0.5,
        "ci": {
            "accuracy": [*(wilson_interval(1, 2) or ())],
            "classes": {
                "generated": {
                    "precision": [*(wilson_interval(1, 1) or ())],
                    "recall": [*(wilson_interval(1, 2) or ())],
                },
                "real": {"precision": None, "recall": None},
            },
        },
        "classes": {
            "generated": {"precision": 1.0, "recall": 0.5, "f1": 2 / 3},
            "real": {"precision": None, "recall": None, "f1": None},
        },
        "confusion": {
            "generated": {"generated": 1, "real": 0, "unparseable": 1},
            "real": {"generated": 0, "real": 0, "unparseable": 0},
        },
        "unparseable": 1,
        "without_answer": 0,
        "without_truth": 0,
        "truth_not_in_run": 2,
        "groups": None,
    }
    empty = score([], TRUTH).to_json()
    assert (empty["accuracy"], empty["ci"]["accuracy"]) == (None, None)


def test_models_are_compared_on_the_images_that_both_judged(tmp_path: Path) -> None:
    good = uncanny.detect("scenes", model="demo", out=tmp_path / "good", truth="scenes")
    poor = tmp_path / "poor"
    shutil.copytree(tmp_path / "good", poor)
    lines = [json.loads(line) for line in (poor / "annotations.jsonl").read_text().splitlines()]
    for line in lines[:10]:
        line["source"] = "real"
    lines[-1] |= {"verdict": None, "source": None, "status": "failed"}
    (poor / "annotations.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    worse = uncanny.detect("scenes", model="demo", out=poor, truth="scenes", retry_failed=False)
    compared = compare_runs({"poor": worse, "good": good})
    assert compared.ranked() == ["good", "poor"]
    (test,) = compared.tests
    assert (test.first, test.second, test.n) == ("poor", "good", good.score().scored.images - 1)
    right = {each.image for each in good.detections if each.source == good.truth.sources[each.image]}  # type: ignore[union-attr]
    turned = {line["image"] for line in lines[:10]}
    true = good.truth.sources if good.truth is not None else {}
    lost = {image for image in turned & right if true[image] == "generated"}
    assert test.second_only == len(lost) > 0
    assert test.p_value == pytest.approx(
        binomtest(test.first_only, test.first_only + test.second_only).pvalue
    )
    main, pairs = compared.tables()
    assert test.adjusted_p is not None
    proof = "good leads in accuracy with" if test.adjusted_p <= 0.05 else "No significant difference between"
    assert main.notes[0] == compared.headline()
    assert main.notes[0].startswith(proof)
    assert [row[0].text for row in main.shown] == ["good", "poor"]
    assert pairs.shown[0][0].text == "good − poor"
    assert set(compared.to_json()["scores"]) == {"poor", "good"}
    assert [each["models"] for each in compared.to_json()["mcnemar"]] == [["poor", "good"]]
    assert compare_runs({"good": good}).to_json()["mcnemar"] == []
    rows = list(csv.DictReader(compared.to_csv().splitlines()))
    assert [(row["model"], row["source"]) for row in rows][:3] == [
        ("good", "generated"),
        ("good", "real"),
        ("good", "all"),
    ]
    assert float(rows[2]["accuracy"]) == good.score().accuracy.value
    assert float(rows[2]["accuracy_low"]) == pytest.approx(good.score().to_json()["ci"]["accuracy"][0])
    assert rows[2]["recall"] == rows[0]["accuracy"] == ""
    best = f"{100 * (good.score().accuracy.value or 0):.1f}"
    assert f"**{best}**" in compared.to_markdown().splitlines()[2]


def test_runs_are_scored_together_by_a_truth_of_ones_own(bundled_run: BundledRuns) -> None:
    folder = bundled_run("detect").path
    run = uncanny.DetectRun(folder)
    names = [record.image for record in run.detections]
    (row,) = uncanny.detect_scores({"a": folder}).rows()
    assert (row["source"], row["generated"]) == (None, run.verdicts()["generated"])
    scores = uncanny.detect_scores({"a": run, "b": str(folder)}, truth=dict.fromkeys(names, "real"))
    assert scores["a"] is not None
    assert scores["a"].scored == run.score(dict.fromkeys(names, "real")).scored
    assert len(scores.tests) == 1
    with pytest.raises(UsageError, match="a mapping from name to run"):
        uncanny.detect_scores([run])  # type: ignore[arg-type]


def test_a_run_is_scored_from_python(tmp_path: Path) -> None:
    for name in ("real", "generated"):
        (tmp_path / name).mkdir()
    for scene in scenes():
        shutil.copy(scene.image_path, tmp_path / ("generated" if scene.role == "anomalous" else "real"))
    run = uncanny.detect([tmp_path / "real", tmp_path / "generated"], model="demo", out=tmp_path / "run")
    scores = run.score()
    assert (scores.truth.origin, scores.scored.right, scores.scored.images) == ("folders", 30, 34)
    assert scores.scored == run.score("scenes").scored == run.score(truth_of(run)).scored
    assert scores.to_json()["confusion"]["real"] == {"generated": 1, "real": 16, "unparseable": 1}
    assert "Accuracy 88.2" in str(scores)
    assert "1 unparseable, counted as wrong." in " ".join(str(scores).split())
    assert list(scores.to_pandas().set_index("source").loc["generated"])[:3] == [14, 2, 0]
    partly = uncanny.detect(tmp_path / "real", model="demo", out=tmp_path / "partly", limit=2)
    assert partly.score().missing == 0
    assert partly.score({partly.detections[0].image: "real"}).without_truth == 1


def truth_of(run: uncanny.DetectRun) -> dict[str, Source | None]:
    return {record.image: "real" if "/real/" in record.image else "generated" for record in run.detections}


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        (None, "The folder names do not show which images of .* are generated. Give `truth`"),
        (3, "The truth must be a file, .*, not 3"),
        ({}, "The truth is empty"),
        ({"a.png": "fake"}, "must be generated or real, not 'fake'"),
        ("nowhere.jsonl", "nowhere.jsonl"),
    ],
    ids=str,
)
def test_a_truth_that_is_none_is_refused(truth: Any, message: str, tmp_path: Path) -> None:
    run = uncanny.detect(next(iter(scenes())).image_path, model="demo", out=tmp_path)
    with pytest.raises(UsageError, match=message):
        run.score(truth)


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ("runs/d", "must be a mapping from name to run"),
        ({}, "must not be empty"),
        ({1: "runs/d"}, "must have texts for names, not 1"),
        ({"a": None}, "must be a path, not None"),
        ({"a": [3]}, r"must be a path, not \[3\]"),
    ],
    ids=str,
)
def test_runs_that_are_none_are_refused(runs: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        uncanny.detect_scores(runs)
