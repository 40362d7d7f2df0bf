"""The scores once more, written from the definitions with plain loops: nothing is shared with the package."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from uncanny.eval.mcq.data.items import Item

Marks = dict[str, bool]  # by question: right or wrong; a question without an answer is absent
GROUPS = {
    "artifact": ["art_dg", "art_pg"],
    "art_dg": ["art_dg"],
    "art_pg": ["art_pg"],
    "ref_real": ["ref_real"],
    "ref_pg": ["ref_pg"],
}
ALL4, ALL3 = ["q1", "q2", "q3", "q4"], ["q2", "q3", "q4"]


def share(
    rows: Iterable[Marks], needed: list[str], test: Callable[[Marks], bool] | None = None
) -> float | None:
    """Share of the rows with every needed answer for which `test` holds; by default, all are right."""
    hits = total = 0
    for marks in rows:
        if all(question in marks for question in needed):
            total += 1
            right = test(marks) if test else all(marks[question] for question in needed)
            hits += bool(right)
    return None if total == 0 else hits / total


def naive(items: list[Item], marks: dict[str, Marks]) -> dict[str, Any]:
    """`splits`, `patterns`, `hierarchy`, `disagreement` and `by_type` of one model."""

    def rows(splits: list[str]) -> list[Marks]:
        return [marks[item.id] for item in items if item.split in splits]

    splits: dict[str, dict[str, float | None]] = {}
    for group, members in GROUPS.items():
        splits[group] = {question: share(rows(members), [question]) for question in ALL4}
        splits[group]["all_q1_4"] = None if group == "ref_pg" else share(rows(members), ALL4)
        splits[group]["all_q2_4"] = share(rows(members), ALL3)
    most = rows(["art_dg", "art_pg", "ref_real"])
    splits["overall"] = {
        "q1": share(most, ["q1"]),
        "all_q1_4": share(most, ALL4),
        "all_q2_4": share(list(marks.values()), ALL3),
    }
    artifact = rows(["art_dg", "art_pg"])
    stages = [_stage(row) for row in artifact if len(row) == 4]
    types = {item.artifact_type for item in items if item.split.startswith("art")}
    return {
        "splits": splits,
        "patterns": {
            f"{n:04b}": sum(_pattern(row) == f"{n:04b}" for row in artifact if len(row) == 4)
            for n in range(16)
        },
        "hierarchy": {
            name: stages.count(name) / len(stages) if stages else None
            for name in ("q1_miss", "evidence_failure", "localization_failure", "full_success")
        },
        "disagreement": {
            "q4_vs_q3": {"q4_only": _only(artifact, "q4", "q3"), "q3_only": _only(artifact, "q3", "q4")},
            "q2_vs_q3": {"q2_only": _only(artifact, "q2", "q3"), "q3_only": _only(artifact, "q3", "q2")},
        },
        "by_type": {
            kind or "untyped": share(
                [
                    marks[item.id]
                    for item in items
                    if item.split.startswith("art") and item.artifact_type == kind
                ],
                ALL4,
            )
            for kind in types
        },
    }


def naive_detection(rows: Iterable[tuple[bool, str | None]]) -> dict[str, float | None]:
    """From (is an artifact image, what was said) of every image with an answer to Q1; None for invalid."""
    hits = alarms = cleared = positives = negatives = 0
    for artifact, call in rows:
        positives += artifact
        negatives += not artifact
        hits += artifact and call == "yes"
        alarms += not artifact and call == "yes"
        cleared += not artifact and call == "no"
    precision = hits / (hits + alarms) if hits + alarms else None
    recall = hits / positives if positives else None
    if hits and precision and recall:
        f1: float | None = 2 * precision * recall / (precision + recall)
    else:
        f1 = 0.0 if positives or alarms else None
    specificity = cleared / negatives if negatives else None
    return {"precision": precision, "recall": recall, "specificity": specificity, "f1": f1}


def _pattern(row: Marks) -> str:
    return "".join("1" if row[question] else "0" for question in ALL4)


def _stage(row: Marks) -> str:
    if not row["q1"]:
        return "q1_miss"
    if not row["q4"]:
        return "evidence_failure"
    if not row["q2"] or not row["q3"]:
        return "localization_failure"
    return "full_success"


def _only(rows: list[Marks], this: str, other: str) -> float | None:
    return share(rows, [this, other], lambda row: row[this] and not row[other])
