"""Scores of records: what is in them, and what is counted apart."""

from __future__ import annotations

from typing import Any

from uncanny.eval.detect.data import SourceTruth
from uncanny.eval.detect.score import score, score_json
from uncanny.eval.metrics.intervals import wilson_interval
from uncanny.schema import Detection, StepError

TRUTH = SourceTruth(
    {"a": "generated", "b": "generated", "c": "real", "d": "real", "e": "real"}, "t.jsonl", unused=2
)
FAILED = (StepError(agent="SourceDetector", step=2, kind="refused", message="no"),)


def record(image: str, source: Any, verdict: str | None = "…", **more: Any) -> Detection:
    fields: dict[str, Any] = {"sha256": "0", "width": 1, "height": 1, "status": "ok"}
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
    told = score_json(score([record("a", "generated"), record("b", None)], TRUTH))
    assert told == {
        "truth": "t.jsonl",
        "images": 2,
        "accuracy": 0.5,
        "ci": {"accuracy": wilson_interval(1, 2)},
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
    }
    empty = score_json(score([], TRUTH))
    assert (empty["accuracy"], empty["ci"]["accuracy"]) == (None, None)
