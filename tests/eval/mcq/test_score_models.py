"""Several models, raters and baselines on one set."""

from __future__ import annotations

import pytest

from tests.eval.mcq.made_sets import RELEASE, answered, answers_to, made_item, made_set, scored
from uncanny.errors import UsageError
from uncanny.eval.mcq.data.items import Answer
from uncanny.eval.mcq.score.aggregate import as_rater, random_expectation
from uncanny.eval.mcq.score.controls import BASELINES, baseline_answers
from uncanny.eval.mcq.score.score import score
from uncanny.eval.mcq.score.tables import published_scores, score_table
from uncanny.eval.metrics.association import holm
from uncanny.eval.metrics.paired import paired_interval

ITEMS = made_set({"art_dg": 6, "art_pg": 2, "ref_real": 4, "ref_pg": 2})
REFERENCES = ["1111"] * 4 + ["-111"] * 2
RIGHT_TWICE = ["1111", "1111", "0111", "0000", "1101", "1000", "0000", "1110", *REFERENCES]
RIGHT_ONCE = ["0111", "1111", "1111", "0000", "1000", "1000", "0000", "0000", *REFERENCES]


def test_oracle_and_mcnemar_by_hand() -> None:
    scores = scored(
        ITEMS, answered(ITEMS, RIGHT_TWICE, "one") + answered(ITEMS, RIGHT_ONCE, "two"), resamples=300
    )
    assert set(scores) == {"models", "oracle", "oracle_counts", "mcnemar", "about"}
    assert list(scores["models"]) == ["one", "two"]
    assert scores["oracle"] == 3 / 8
    assert (scores["oracle_counts"]["solved"], scores["oracle_counts"]["n"]) == (3, 8)
    low, high = scores["oracle_counts"]["ci"]
    assert 0 <= low < 3 / 8 < high <= 1
    (test,) = scores["mcnemar"]
    assert test["models"] == ["one", "two"]
    counts = ("n", "first_only", "second_only", "p_value", "adjusted_p", "cohens_g", "odds_ratio")
    q1, q2, all_four = (tuple(test[question][key] for key in counts) for question in ("q1", "q2", "all_q1_4"))
    assert q1 == (12, 2, 1, 1.0, 1.0, pytest.approx(1 / 6), 2.0)
    assert q2 == (14, 2, 0, 0.5, 0.5, 0.5, None)
    assert all_four == (12, 1, 1, 1.0, 1.0, 0.0, 1.0)
    assert test["q2"]["difference"] == 2 / 14
    assert tuple(test["q2"]["ci"]) == paired_interval(*_table(RIGHT_TWICE, RIGHT_ONCE, 1))


def _table(first: list[str], second: list[str], question: int) -> tuple[int, int, int, int]:
    """Both right, only the first, only the second, neither."""
    pairs = [(one[question], other[question]) for one, other in zip(first, second, strict=True)]
    both, one, other, neither = (
        pairs.count((a, b)) for a, b in (("1", "1"), ("1", "0"), ("0", "1"), ("0", "0"))
    )
    return both, one, other, neither


def test_p_values_of_several_models_are_corrected_by_holm_question_by_question() -> None:
    patterns = {"one": ["1111"] * 8 + REFERENCES, "two": ["0111"] * 8 + REFERENCES, "three": RIGHT_TWICE}
    answers = [answer for name, given in patterns.items() for answer in answered(ITEMS, given, name)]
    tests = score(ITEMS, answers, baselines=True, resamples=0).mcnemar
    assert {name for test in tests for name in (test.first, test.second)} == set(patterns)
    for question in ("q1", "all_q1_4"):
        family = [test for test in tests if test.question == question]
        assert [test.adjusted_p for test in family] == holm([test.p_value for test in family])
    first = next(test for test in tests if test.question == "q1")
    assert (first.p_value, first.adjusted_p) == (2 / 2**8, 3 * 2 / 2**8)


def test_the_table_of_pairs_has_the_better_one_first() -> None:
    answers = answered(ITEMS, RIGHT_ONCE, "worse") + answered(ITEMS, ["1111"] * 8 + REFERENCES, "better")
    main, pairs = score(ITEMS, answers, resamples=0).tables()
    assert [row[0].text for row in main.shown] == ["better", "worse"]
    (row,) = pairs.shown
    assert row[0].text == "better − worse"
    assert (row[2].text, row[3].text, row[4].text, row[7].text) == ("+50.0", "6", "0", "0.50")
    assert score(ITEMS, answered(ITEMS, RIGHT_ONCE, "alone"), resamples=0).tables()[1:] == ()
    six = [answer for name in "abcdef" for answer in answered(ITEMS, RIGHT_ONCE, name)]
    _, pairs = score(ITEMS, six, resamples=0).tables()
    assert [row[0] for row in pairs.rows] == ["a − b", "b − c", "c − d", "d − e", "e − f"]
    assert "all 15" in pairs.notes[0]


def test_comparisons_keep_to_items_that_both_answer() -> None:
    half = answered(ITEMS[:1], ["0111"], "two")
    scores = scored(ITEMS, answered(ITEMS, RIGHT_TWICE, "one") + half, resamples=0)
    assert scores["oracle_counts"] == {"solved": 1, "n": 1, "ci": None}
    test = scores["mcnemar"][0]["q1"]
    assert (test["n"], test["first_only"], test["second_only"], test["p_value"]) == (1, 1, 0, 1.0)
    only_q1 = [answer for answer in half if answer.question == "q1"]
    scores = scored(ITEMS, answered(ITEMS, RIGHT_TWICE, "one") + only_q1, resamples=0)
    assert scores["oracle"] is None
    assert scores["mcnemar"][0]["q4"]["p_value"] is None


def test_raters_are_averaged_and_take_no_part_in_the_oracle() -> None:
    people = as_rater(answered(ITEMS, RIGHT_TWICE), "ann") + as_rater(answered(ITEMS, RIGHT_ONCE), "bob")
    scores = scored(ITEMS, people + answered(ITEMS, RIGHT_ONCE, "model"), resamples=300)
    human = scores["models"]["human"]
    assert list(scores["models"]) == ["human", "model"]
    assert human["raters"] == 2
    assert human["splits"]["artifact"]["q1"] == (5 / 8 + 4 / 8) / 2
    assert human["hierarchy"]["full_success"] == (2 / 8 + 2 / 8) / 2
    low, high = human["ci"]["splits"]["artifact"]["q1"]
    assert 0 < low < 4.5 / 8 < high < 1
    assert scores["oracle"] is None
    assert scores["mcnemar"] == []


def test_intervals_of_people_are_told_from_those_of_models() -> None:
    one = as_rater(answered(ITEMS, RIGHT_TWICE), "ann")
    two = one + as_rater(answered(ITEMS, RIGHT_ONCE), "bob")
    notes = [score_table(score(ITEMS, each, resamples=20)).notes[-1] for each in (one, two)]
    assert notes == [
        "Percent, in brackets 95 % intervals (Wilson).",
        "Percent, in brackets 95 % intervals (Wilson; of the mean of people bootstrap).",
    ]


def test_what_is_in_no_share_is_said_in_a_sentence_for_all_models() -> None:
    answers = [
        *answered(ITEMS[:1], ["1-11"], "a"),
        Answer(id=ITEMS[0].id, question="q2", raw=None, model="a", outcome="error", error="image: no file"),
        Answer(id="no such item", question="q2", raw="A", model="b"),
        *answers_to(ITEMS[0], "1111", "b"),
    ]
    notes = score_table(score(ITEMS[:1], answers, resamples=0)).notes
    assert "Missing answers, not counted: a 1 of 4 (1 image not readable)" in notes
    assert "Answers to what these items do not ask, left out: b 1" in notes


def test_a_rater_who_skipped_weighs_as_much_as_one_who_did_not() -> None:
    people = as_rater(answered(ITEMS, RIGHT_TWICE), "ann") + as_rater(answers_to(ITEMS[3], "0000"), "bob")
    human = scored(ITEMS, people, resamples=50)
    assert human["splits"]["artifact"]["q1"] == (5 / 8 + 0) / 2
    assert human["splits"]["ref_real"]["q1"] == 1.0
    assert human["missing"] == 4 * 12 + 3 * 2 - 4


def test_published_row_of_three_raters() -> None:
    items = made_set()
    plain = ["1111"] * 831 + ["-111"] * 119
    real, edited = 475, 831
    slips = {0: [real, real + 1, edited], 1: [real + 2, real + 3, edited + 1], 2: [real + 4, edited + 2]}
    people: list[Answer] = []
    for rater, wrong in slips.items():
        patterns = list(plain)
        for row in wrong:
            patterns[row] = "-110" if row >= edited else "0110"
        people += as_rater(answered(items, patterns), str(rater))
    scores = scored(items, people, resamples=0)["splits"]
    row = next(row for row in published_scores()["main"] if row["model"] == "Human")
    for cell, percent in row.items():
        split = next((split for split in scores if cell.startswith(split)), None)
        if split:
            share = scores[split][cell.removeprefix(f"{split}_")]
            assert 100 * share == pytest.approx(percent, abs=0.00501), cell


def test_baselines() -> None:
    items = made_set()
    expected = random_expectation(items)
    row = next(row for row in published_scores()["main"] if row["model"] == "Random")
    for cell, percent in row.items():
        split = next((split for split in expected["splits"] if cell.startswith(split)), None)
        if split:
            share = expected["splits"][split][cell.removeprefix(f"{split}_")]
            assert 100 * share == pytest.approx(percent), cell
    scores = scored(
        items, [answer for name in BASELINES for answer in baseline_answers(items, name)], resamples=0
    )
    assert scores["oracle"] is None
    always = scores["models"]["baseline/always-E/no"]
    assert always["missing"] == 0
    assert set(always["splits"]["ref_pg"].values()) == {None, 1.0}
    assert set(always["splits"]["artifact"].values()) == {0.0}
    assert always["q1_detection"] == {"precision": None, "recall": 0.0, "specificity": 1.0, "f1": 0.0}
    drawn = scores["models"]["baseline/random"]["splits"]["overall"]["q1"]
    assert drawn == pytest.approx(0.5, abs=0.06)


def test_the_score_of_guessing_is_its_expectation_and_no_draw() -> None:
    items = made_set(RELEASE)[:60] + made_set(RELEASE)[-60:]
    scores = score(items, answered(items[:1], ["1111"], "m"), baselines=True, resamples=200)
    expected, guessing = random_expectation(items)["splits"], scores["baseline/random"]
    for split, figures in expected.items():
        for name, value in figures.items():
            share = guessing.share(split, name)
            assert share is not None
            assert share.value == (None if value is None else pytest.approx(value)), (split, name)
            assert share.interval is None
    failures = {name: share.value for name, share in guessing.hierarchy.items()}
    assert failures == pytest.approx(
        {"q1_miss": 0.5, "evidence_failure": 0.4, "localization_failure": 0.096, "full_success": 0.004}
    )
    assert guessing.answer_bias["q2"]["E"].given == pytest.approx(0.2)
    assert guessing.disagreement["q4_vs_q3"]["q4_only"].value == pytest.approx(0.2 * 0.8)
    again = score(items, answered(items[:1], ["1111"], "m"), baselines=True, resamples=0, seed=9)
    assert again["baseline/random"] == guessing


def test_random_answers_depend_on_seed_and_item_alone() -> None:
    items = made_set(RELEASE)[:40]
    drawn = baseline_answers(items, "random")
    assert baseline_answers(items[::-1], "random")[::-1] != []
    assert {(a.id, a.question): a.raw for a in baseline_answers(items[::-1], "random")} == {
        (a.id, a.question): a.raw for a in drawn
    }
    assert baseline_answers(items, "random", seed=1) != drawn
    assert {answer.raw for answer in drawn} == {"yes", "no", *"ABCDE"}


def test_same_seed_same_report_whatever_the_order() -> None:
    answers = answered(ITEMS, RIGHT_TWICE)
    first = scored(ITEMS, answers, resamples=200, seed=3)
    assert scored(ITEMS, answers[::-1], resamples=200, seed=3) == first
    assert scored(ITEMS[::-1], answers, resamples=200, seed=3)["ci"] == first["ci"]
    assert scored(ITEMS, answers, resamples=200, seed=4)["ci"] != first["ci"]


def test_typed_result_and_empty_set() -> None:
    scores = score(ITEMS, answered(ITEMS, RIGHT_TWICE), resamples=100)
    share = scores.models["m"].splits["artifact"].shares["all_q1_4"]
    assert (share.value, share.counts, share.out_of) == (2 / 8, 2, 8)
    assert share.interval is not None
    empty = scored([], [Answer(id="x", question="q1", raw="no", model="m")], resamples=20)
    assert empty["n_images"]["all"] == 0
    assert empty["splits"]["overall"] == {"q1": None, "all_q1_4": None, "all_q2_4": None}
    assert empty["ci"]["splits"]["overall"]["q1"] is None
    with pytest.raises(UsageError):
        scored([made_item("a", "art_dg")], [Answer(id="x", question="q1", raw="no", model="m")])
