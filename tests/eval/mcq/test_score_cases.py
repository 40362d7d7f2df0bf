"""Scores by hand, archived answers, and what is missing, invalid, refused or wrong in the files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.eval.mcq.made_sets import answered, answers_to, made_item, made_set, scored
from uncanny.errors import UsageError
from uncanny.eval.mcq.data.items import QUESTIONS, Answer, Item, Split
from uncanny.eval.metrics.intervals import wilson_interval

ARCHIVED = Path(__file__).parents[2] / "data" / "oracle" / "salart_gpt54_slice46.json"
ROLES: dict[str, Split] = {
    "artifact": "art_dg",
    "clean_reference": "ref_real",
    "paired_generated_counterpart": "ref_pg",
}


def test_archived_answers() -> None:
    archive = orjson.loads(ARCHIVED.read_bytes())
    items, answers = [], []
    for row in archive["rows"]:
        item = made_item(row["row_id"], ROLES[row["image_role"]], tuple(row["gold"][1:]))
        assert [item.right(question) for question in QUESTIONS] == row["gold"]
        items.append(item)
        answers += [
            Answer(id=item.id, question=question, raw=raw, model="gpt-5.4")
            for question, raw in zip(QUESTIONS, row["pred"], strict=True)
            if raw is not None
        ]
    scores = scored(items, answers, resamples=500, require_complete=True)
    names = {"q1": "q1", "all4": "all_q1_4", "all3": "all_q2_4"}
    splits = {"artifact": "artifact", "real": "ref_real", "generated": "ref_pg", "overall": "overall"}
    assert len(archive["expected"]) == 10
    for cell, (right, total) in archive["expected"].items():
        split, name = cell.split("_")
        assert scores["splits"][splits[split]][names[name]] == pytest.approx(right / total), cell
        assert scores["scored"][splits[split]][names[name]] == total


def _four() -> list[Item]:
    return [
        made_item("a", "art_dg", ("A", "A", "A"), "anatomy"),
        made_item("b", "art_pg", ("B", "C", "B"), "count"),
        made_item("c", "ref_real"),
        made_item("d", "ref_pg"),
    ]


def test_by_hand() -> None:
    scores = scored(_four(), answered(_four(), ["1111", "1101", "0111", "-101"]), resamples=200)
    assert scores["n_images"] == {
        "art_dg": 1,
        "art_pg": 1,
        "artifact": 2,
        "ref_real": 1,
        "ref_pg": 1,
        "all": 4,
    }
    assert scores["splits"]["artifact"] == {
        "q1": 1.0,
        "q2": 1.0,
        "q3": 0.5,
        "q4": 1.0,
        "all_q1_4": 0.5,
        "all_q2_4": 0.5,
    }
    assert scores["splits"]["ref_pg"] == {
        "q1": None,
        "q2": 1.0,
        "q3": 0.0,
        "q4": 1.0,
        "all_q1_4": None,
        "all_q2_4": 0.0,
    }
    assert scores["splits"]["overall"] == pytest.approx({"q1": 2 / 3, "all_q1_4": 1 / 3, "all_q2_4": 2 / 4})
    assert scores["q1_detection"] == pytest.approx(
        {"precision": 2 / 3, "recall": 1.0, "specificity": 0.0, "f1": 4 / 5}
    )
    assert {name for name, count in scores["patterns"].items() if count} == {"1111", "1101"}
    assert scores["hierarchy"] == {
        "q1_miss": 0.0,
        "evidence_failure": 0.0,
        "localization_failure": 0.5,
        "full_success": 0.5,
    }
    assert scores["by_type"] == {"anatomy": {"n": 1, "all_q1_4": 1.0}, "count": {"n": 1, "all_q1_4": 0.0}}
    assert scores["disagreement"] == {
        "q4_vs_q3": {"q4_only": 0.5, "q3_only": 0.0},
        "q2_vs_q3": {"q2_only": 0.5, "q3_only": 0.0},
    }
    # Q2 is answered A, B, E, E, and that is right; Q1 is yes three times, right twice.
    assert scores["answer_bias"]["q2"]["E"] == {"given": 0.5, "right": 0.5}
    assert scores["answer_bias"]["q1"]["yes"] == {"given": 1.0, "right": pytest.approx(2 / 3)}
    assert scores["ci"]["splits"]["ref_pg"]["q1"] is None
    assert scores["ci"]["splits"]["art_dg"]["q1"] == list(wilson_interval(1, 1) or ())
    low, high = scores["ci"]["splits"]["artifact"]["q3"]
    assert (low, high) == wilson_interval(1, 2)
    assert orjson.loads(orjson.dumps(scores)) == scores


def test_nothing_answered_of_a_split_is_none_not_zero() -> None:
    scores = scored(_four(), answers_to(_four()[0], "1111"), resamples=50)
    assert scores["splits"]["ref_real"] == dict.fromkeys(scores["splits"]["ref_real"])
    assert scores["q1_detection"]["specificity"] is None
    assert scores["missing"] == 4 + 4 + 3
    assert scores["by_type"]["count"] == {"n": 0, "all_q1_4": None}


def _with(change: dict[str, Any], question: str = "q2") -> dict[str, Any]:
    answers = answered(_four(), ["1111", "1111", "1111", "-111"])
    return scored(
        _four(),
        [
            Answer.model_validate(answer.model_dump() | change)
            if answer.id == "a" and answer.question == question
            else answer
            for answer in answers
        ],
        resamples=0,
    )


def test_unreadable_answer_is_wrong_and_counted_apart() -> None:
    scores = _with({"raw": "A or B"})
    assert scores["splits"]["artifact"]["q2"] == 0.5
    assert (scores["invalid"]["q2"], scores["refused"]["q2"], scores["missing"]) == (1, 0, 0)


@pytest.mark.parametrize("raw", ["I cannot help with that.", "", "A", None])
def test_refusal_is_wrong_and_counted_as_such(raw: str | None) -> None:
    scores = _with({"raw": raw, "outcome": "refused"})
    assert scores["splits"]["artifact"]["q2"] == 0.5
    assert (scores["invalid"]["q2"], scores["refused"]["q2"], scores["missing"]) == (1, 1, 0)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"raw": None, "outcome": "error", "error": "timeout: after 30 s"}, "timeout"),
        ({"raw": "A", "outcome": "error", "error": "cut"}, "cut"),
        ({"raw": None}, "no reason given"),
    ],
)
def test_failed_call_is_missing_and_never_wrong(change: dict[str, Any], reason: str) -> None:
    scores = _with(change)
    assert scores["splits"]["artifact"]["q2"] == 1.0
    assert scores["splits"]["artifact"]["all_q1_4"] == 1.0
    assert scores["scored"]["artifact"] == {"q1": 2, "q2": 1, "q3": 2, "q4": 2, "all_q1_4": 1, "all_q2_4": 1}
    assert (scores["missing"], scores["missing_by"], scores["invalid"]["q2"]) == (1, {reason: 1}, 0)
    assert sum(scores["patterns"].values()) == 1


def test_invalid_q1_is_neither_yes_nor_no() -> None:
    on_artifact = _with({"raw": "perhaps"}, "q1")["q1_detection"]
    assert on_artifact == pytest.approx({"precision": 1.0, "recall": 0.5, "specificity": 1.0, "f1": 2 / 3})


def test_complete_is_demanded() -> None:
    answers = answered(_four(), ["1111", "1111", "1111", "-11-"])
    assert scored(_four(), answers, resamples=0)["missing"] == 1
    with pytest.raises(UsageError, match=r"1 of 15 answers of 'm' are missing \(not answered: 1\)"):
        scored(_four(), answers, require_complete=True)


def test_answer_takes_the_place_of_a_failed_call() -> None:
    failed = Answer(id="a", question="q1", raw=None, model="m", outcome="error", error="timeout: x")
    answers = answered(_four(), ["1111", "1111", "1111", "-111"])
    for given in ([failed, *answers], [*answers, failed]):
        assert scored(_four(), given, resamples=0)["missing"] == 0


def test_wrong_files_are_refused() -> None:
    items, answers = _four(), answered(_four(), ["1111", "1111", "1111", "-111"])
    with pytest.raises(UsageError, match="'m' answers q1 of item 'a' twice"):
        scored(items, [*answers, answers[0]])
    with pytest.raises(UsageError, match="item 'a' appears twice"):
        scored([*items, items[0]], answers)
    with pytest.raises(UsageError, match="no answers to score"):
        scored(items, [])
    with pytest.raises(UsageError, match="none of the 15 answers of 'm' belongs"):
        scored(made_set({"art_dg": 2}), answers)


def test_answers_to_other_items_are_counted() -> None:
    scores = scored(_four()[:2], answered(_four(), ["1111", "1111", "1111", "-111"]), resamples=0)
    assert (scores["unused"], scores["missing"], scores["splits"]["artifact"]["all_q1_4"]) == (7, 0, 1.0)


def test_lenient_stands_beside_exact() -> None:
    answers = [
        Answer(id="a", question=q, raw="The answer is A." if q != "q1" else "Yes, it has.", model="m")
        for q in QUESTIONS
    ]
    scores = scored(_four()[:1], answers, resamples=0, parser="lenient")
    assert (scores["splits"]["artifact"]["all_q1_4"], scores["parser"]) == (0.0, "exact/1")
    assert scores["lenient"]["splits"]["artifact"]["all_q1_4"] == 1.0
    assert scores["lenient"]["parser"] == "lenient/1"
    assert "lenient" not in scored(_four()[:1], answers, resamples=0)
