"""Scores of people who rated how much edits changed: a case worked by hand, and the command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.runs.e2e import uncanny_here
from uncanny.errors import ItemsError, UsageError
from uncanny.eval.edits.data import EditPair
from uncanny.eval.edits.people.data import CHANGES, RATINGS, Change, Rating, read_checks
from uncanny.eval.edits.people.ratings import mode, score_ratings
from uncanny.eval.metrics.ratings import icc

# By person what they say of the pairs a, b, c and d, as 1 to 3; 0 of none.
SAID = {"ann": (1, 2, 3, 1), "ben": (1, 2, 3, 2), "cem": (2, 1, 3, 3), "bot": (3, 3, 3, 3)}
RATIOS = {"a": 0.1, "b": 0.2, "c": 0.4, "d": 0.3}


def pairs() -> list[EditPair]:
    """Metrics stand in the pairs as `edits measure` writes them; text, as in CSV, counts as its number."""
    return [
        EditPair.model_validate(
            {"id": each, "original": f"{each}.png", "edited": f"{each}-2.png", "mask_ratio": str(ratio)}
        )
        for each, ratio in RATIOS.items()
    ]


def rating(pair: str, person: str, number: int, check: Change | None = None, **more: Any) -> dict[str, Any]:
    change = CHANGES[number - 1] if number else None
    return {
        "id": pair,
        "original": "",
        "edited": "",
        "person": person,
        "change": change,
        "check": check,
        **more,
    }


def write(folder: Path, lines: Sequence[dict[str, Any]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RATINGS).write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in lines))
    return folder


def case(folder: Path) -> Path:
    """Bot says "a lot" of everything, of two identical images too. Ann changed her mind on `a`."""
    lines = [rating("a", "ann", 3)]
    for person, said in SAID.items():
        lines += [
            rating(pair, person, number, seconds=float(number))
            for pair, number in zip("abcd", said, strict=True)
        ]
        lines.append(rating("a", person, 3 if person == "bot" else 1, "not much"))
    lines += [rating("z", "ann", 1), rating("b", "dan", 0, error="it is gone")]
    return write(folder, lines)


def test_a_mode_that_several_share_is_none() -> None:
    assert mode([]) is None
    assert mode(["some"]) == "some"
    assert mode(["some", "a lot"]) is None
    assert mode(["not much", "some", "a lot"]) is None
    assert mode(["not much", "a lot", "a lot"]) == "a lot"


def test_by_hand(tmp_path: Path) -> None:
    scores = score_ratings(pairs(), case(tmp_path / "run"), resamples=200)
    assert scores.changes == {"a": "not much", "b": "some", "c": "a lot", "d": None}
    assert scores.ties == 1
    assert scores.inattentive == ("bot",)
    assert (scores.raters["bot"].passed, scores.raters["bot"].checks) == (0, 1)
    assert scores.raters["ann"].given == {"not much": 2, "some": 1, "a lot": 1}
    assert scores.raters["ann"].seconds == 1.5
    left = scores.left
    assert (left.unknown, left.unshown, left.repeated, left.inattentive, left.unrated) == (1, 1, 1, 4, 0)
    # Ann, Ben and Cem are the columns.
    table = [[SAID[person][place] for person in ("ann", "ben", "cem")] for place in range(4)]
    assert (scores.icc.k, scores.icc.pairs, scores.icc.columns) == (3, 4, "people")
    assert (scores.icc.single, scores.icc.average) == icc(table)
    metric = scores.metrics["mask_ratio"]
    # 1, 2, 3 against 0.1, 0.2, 0.4; d has no mode.
    assert (metric.n, metric.kendall.value, metric.spearman.value) == (3, 1.0, 1.0)
    assert metric.pearson.value == pytest.approx(0.9819805)
    assert metric.medians == {"not much": 0.1, "some": 0.2, "a lot": 0.4}
    # Who passes is decided by a parameter.
    assert score_ratings(pairs(), tmp_path / "run", least_passed=0, resamples=0).inattentive == ()


def test_people_who_rated_different_pairs(tmp_path: Path) -> None:
    """As on a platform: two ratings a pair, by four people. A third rating of one pair is in no ICC."""
    by_pair = {"a": "ann ben", "b": "cem dan", "c": "ann dan", "d": "ben cem ann"}
    numbers = {"a": (1, 1), "b": (2, 1), "c": (3, 3), "d": (2, 3, 1)}
    lines = [
        rating(pair, person, number)
        for pair, people in by_pair.items()
        for person, number in zip(people.split(), numbers[pair], strict=True)
    ]
    scores = score_ratings(pairs(), write(tmp_path / "run", lines), resamples=0)
    assert (scores.icc.k, scores.icc.pairs, scores.icc.columns) == (2, 4, "order")
    assert (scores.icc.single, scores.icc.average) == icc([[1, 1], [2, 1], [3, 3], [2, 3]])
    assert scores.changes == {"a": "not much", "b": None, "c": "a lot", "d": None}
    # One rating a pair: nothing to agree on.
    alone = score_ratings(pairs(), write(tmp_path / "one", lines[:1]), resamples=0)
    assert (alone.icc.k, alone.icc.single.value) == (None, None)
    assert alone.left.unrated == 3


def test_people_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    first = write(tmp_path / "x" / "first", [rating("a", "ann", 1), rating("a", "ben", 1)])
    second = write(tmp_path / "x" / "second", [rating("a", "ann", 3)])
    scores = score_ratings(pairs(), [first, second, first], resamples=0)
    assert scores.ratings["a"] == {"ann (first)": "not much", "ann (second)": "a lot", "ben": "not much"}
    assert scores.left.repeated == 0
    other = write(tmp_path / "y" / "first", [rating("a", "ann", 2)])
    assert f"ann ({other})" in score_ratings(pairs(), [first, other], resamples=0).raters


def test_a_half_written_last_line_is_passed_over(tmp_path: Path) -> None:
    run = write(tmp_path / "run", [rating("a", "ann", 1)])
    with (run / RATINGS).open("ab") as file:
        file.write(b'{"id": "b", "pers')
    assert score_ratings(pairs(), run, resamples=0).changes == {"a": "not much"}
    with (run / RATINGS).open("ab") as file:
        file.write(b"\n")
    with pytest.raises(ItemsError, match="line 2"):
        score_ratings(pairs(), run, resamples=0)


def test_what_cannot_be_scored(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There are no ratings yet"):
        score_ratings(pairs(), write(tmp_path / "none", []))
    with pytest.raises(UsageError, match="None of the ratings is of one of these pairs"):
        score_ratings(pairs(), write(tmp_path / "other", [rating("z", "ann", 1)]))
    with pytest.raises(ItemsError, match="change"):
        score_ratings(pairs(), write(tmp_path / "wrong", [{**rating("a", "ann", 1), "change": "much"}]))


def test_checks_have_their_right_answers() -> None:
    known = EditPair.model_validate({"id": "a", "original": "a", "edited": "b", "change": "a lot"})
    assert [change for _, change in read_checks([known])] == ["a lot"]
    with pytest.raises(ItemsError, match="must be one of 'not much', 'some', 'a lot', got None"):
        read_checks(pairs())


def test_the_command(tmp_path: Path) -> None:
    run = case(tmp_path / "run")
    table = tmp_path / "pairs.jsonl"
    table.write_bytes(b"".join(orjson.dumps(each.model_dump()) + b"\n" for each in pairs()))
    files = ("--json", str(tmp_path / "s.json"), "--csv", str(tmp_path / "s.csv"))
    done = uncanny_here(
        "edits", "rate-score", str(table), str(run), *files, "--published", "--resamples", "100"
    )
    assert done.code == 0, done.err
    for words in (
        "not much 1, some 1, a lot 1; 1 tie, left out of",
        "Left out for passing less than 75% of the attention checks: bot, with 4",
        "ICC(2,3)",
        "Pearson, published",
        "Semi-Truths, table 5",
    ):
        assert words in done.out
    scores = orjson.loads((tmp_path / "s.json").read_bytes())
    assert scores["metrics"]["mask_ratio"]["spearman"]["value"] == 1.0
    assert scores["pairs"]["d"] == {
        "change": None,
        "ratings": {"ann": "not much", "ben": "some", "cem": "a lot"},
    }
    assert scores["left_out"]["raters"] == ["bot"]
    assert scores["published"]["human_correlation"][0] == {
        "coefficient": "pearson",
        "area_ratio": 0.46,
        "lpips": 0.14,
        "ssim": -0.16,
    }
    head, first = (tmp_path / "s.csv").read_text().splitlines()[:2]
    assert head == "metric,n,coefficient,value,low,high,published"
    assert first.startswith("mask_ratio,3,pearson,0.98198")
    assert first.endswith(",0.46")
    assert (run / "ratings.html").exists()


def test_a_record_says_what_was_shown() -> None:
    kept = Rating.model_validate(rating("a", "ann", 2))
    assert (kept.change, kept.check) == ("some", None)
