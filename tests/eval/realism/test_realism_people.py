"""People's answers by the label the model gave."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.eval.realism.made_verdicts import hand_worked, written
from uncanny.errors import ItemsError
from uncanny.eval.realism.people import (
    Box,
    PersonAnswer,
    box_iou,
    people_answers,
    published_people,
    score_people,
)
from uncanny.eval.realism.score import score
from uncanny.eval.realism.verdicts import Verdict, verdict_sets

WHOLE = (0, 0, 10, 10)


def answer(name: str, said: str, **more: Any) -> PersonAnswer:
    return PersonAnswer.model_validate({"id": name, "said": said, **more})


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Verdict, ...]:
    path = written(tmp_path_factory.mktemp("v") / "v.jsonl", hand_worked())
    return verdict_sets(path)[0].verdicts


def test_worked_by_hand(verdicts: tuple[Verdict, ...]) -> None:
    scores = score_people(
        verdicts,
        [
            answer("p0", "edited", rater="u", boxes=[[0, 0, 5, 10]], truth=[WHOLE]),  # non-deceiving, IoU 0.5
            answer("p0", "edited", rater="v", iou=0.3),
            answer("p1", "real", rater="u", truth=[WHOLE]),  # non-deceiving, IoU 0
            answer("p2", "real", rater="u"),  # deceiving, IoU unknown
            answer("p4", "edited", rater="u", boxes=[], truth=[WHOLE]),  # deceiving, nothing marked
            answer("p7", "edited", rater="v"),  # intermediate
            answer("p9", "edited", rater="v"),  # undetermined
            answer("other", "real", rater="w"),
        ],
        resamples=100,
    )
    assert (scores.answers, scores.raters, scores.unused, scores.undetermined) == (8, 3, 1, 1)
    assert {label: share.value for label, share in scores.accuracy.items()} == {
        "all": 4 / 6,
        "deceiving": 1 / 2,
        "intermediate": 1,
        "non_deceiving": pytest.approx(2 / 3),
    }
    assert (scores.accuracy["non_deceiving"].counts, scores.accuracy["non_deceiving"].out_of) == (2, 3)
    assert scores.iou["non_deceiving"].value == pytest.approx(0.8 / 3)
    assert scores.iou["deceiving"].value == 0
    assert (scores.iou["intermediate"].value, scores.iou["intermediate"].interval) == (None, None)
    assert scores.iou["all"].value == pytest.approx(0.8 / 4)
    low, high = scores.accuracy["all"].interval or (1, 0)
    assert 0 <= low <= 4 / 6 <= high <= 1


def test_the_truth_of_an_edit_stands_in_any_line_about_it(verdicts: tuple[Verdict, ...]) -> None:
    scores = score_people(
        verdicts,
        [
            answer("p0", "real", rater="u"),  # called real: 0, by the truth that another line has
            answer("p0", "edited", rater="v", boxes=[[0, 0, 5, 10]], truth=[WHOLE]),  # 0.5
            answer("p0", "edited", rater="w", boxes=[[0, 0, 10, 10]]),  # 1, by the same truth
            answer("p0", "edited", rater="x"),  # nobody knows what was marked
            answer("p1", "edited", rater="u", iou=0.3),
            answer("p1", "real", rater="v"),  # 0: the edit was compared with what is true of it
            answer("p1", "edited", rater="w", boxes=[[0, 0, 5, 10]]),  # 0.3 was made of a truth we have not
            answer("p2", "real", rater="u"),  # no line says what was edited
            answer("p2", "edited", rater="v", boxes=[[0, 0, 5, 10]]),
            answer("p9", "real", rater="v"),  # undetermined: in no figure at all
        ],
        resamples=100,
    )
    assert scores.iou["non_deceiving"].value == pytest.approx((0 + 0.5 + 1 + 0.3 + 0) / 5)
    assert scores.iou["non_deceiving"].out_of == 5
    assert scores.iou["deceiving"].value is None
    left = scores.left_out
    assert (left.without_truth, left.without_boxes) == (("p1", "p2", "p2"), ("p0",))
    assert left.undetermined == ("p9",)
    assert scores.to_json()["left_out"]["without_truth"] == {"n": 3, "pairs": ["p1", "p2"]}


def test_what_is_in_no_figure_is_named_in_the_table(tmp_path: Path) -> None:
    path = written(tmp_path / "verdicts.jsonl", hand_worked())
    people = [
        answer("p0", "edited", boxes=[], truth=[WHOLE]),
        answer("p0", "edited"),
        answer("p2", "real"),
        answer("p9", "real"),
        answer("elsewhere", "real"),
    ]
    words = " ".join(str(score(path, people=people, resamples=0)).split())
    for note in (
        "not counted because the pair has no verdict: 1 (elsewhere)",
        "not counted because the pair has no label: 1 (p9)",
        "in no IoU because no answer gives the truth of the pair: 1 (p2)",
        "in no IoU because they say edited without boxes: 1 (p0)",
    ):
        assert note in words


def test_two_truths_of_one_edit_are_a_problem(tmp_path: Path) -> None:
    lines = [
        {"id": "p0", "said": "edited", "truth": [[0, 0, 1, 1], [2, 2, 3, 3]]},
        {"id": "p0", "said": "real", "truth": [[2, 2, 3, 3], [0, 0, 1, 1]]},  # the same, in another order
    ]
    path = written(tmp_path / "h.jsonl", map(orjson.dumps, lines))
    assert len(people_answers(path)) == 2
    lines.append({"id": "p0", "said": "real", "truth": [[0, 0, 1, 2]]})
    other = written(tmp_path / "other.jsonl", map(orjson.dumps, lines[2:]))
    with pytest.raises(ItemsError) as caught:
        people_answers([path, other])
    assert "p0" in str(caught.value)
    assert f"{path}:1" in str(caught.value)
    assert f"{other}:1" in str(caught.value)


@pytest.mark.parametrize(
    ("marked", "truth", "iou"),
    [
        ([WHOLE], [WHOLE], 1),
        ([], [WHOLE], 0),
        ([(20, 20, 30, 30)], [WHOLE], 0),
        ([(0, 0, 10, 5)], [WHOLE], 0.5),
        ([(5, 0, 15, 10)], [WHOLE], 1 / 3),
        ([(0, 0, 6, 10), (4, 0, 10, 10)], [WHOLE], 1),  # overlapping boxes count once
        ([WHOLE], [(0, 0, 1, 1), (9, 9, 10, 10)], 0.02),
        ([(0.5, 0.5, 1.5, 1.5)], [(0, 0, 1, 1)], 0.25 / 1.75),
    ],
)
def test_overlap_of_boxes(marked: list[Box], truth: list[Box], iou: float) -> None:
    assert box_iou(marked, truth) == pytest.approx(iou)
    assert box_iou(truth, marked) == pytest.approx(iou)


def boxes() -> st.SearchStrategy[list[Box]]:
    low = st.integers(0, 8)
    box = st.tuples(low, low, st.integers(1, 4), st.integers(1, 4))
    return st.lists(box.map(lambda b: (b[0], b[1], b[0] + b[2], b[1] + b[3])), max_size=4)


def cells(boxes: list[Box]) -> set[tuple[int, int]]:
    return {
        (x, y) for x0, y0, x1, y1 in boxes for x in range(int(x0), int(x1)) for y in range(int(y0), int(y1))
    }


@given(boxes(), boxes())
def test_overlap_agrees_with_counting_pixels(marked: list[Box], truth: list[Box]) -> None:
    in_marked, in_truth = cells(marked), cells(truth)
    expected = len(in_marked & in_truth) / len(in_marked | in_truth) if marked or truth else 0.0
    assert box_iou(marked, truth) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"said": "fake"}, "said"),
        ({"boxes": [[5, 5, 5, 9]]}, "boxes.0"),
        ({"truth": []}, "truth"),
        ({"iou": 1.2}, "iou"),
        ({"id": ""}, "id"),
    ],
)
def test_bad_answers_are_named_with_line_and_field(more: dict[str, Any], field: str, tmp_path: Path) -> None:
    good = {"id": "p", "said": "real"}
    path = written(tmp_path / "h.jsonl", [orjson.dumps(good), orjson.dumps(good | more)])
    with pytest.raises(ItemsError) as caught:
        people_answers([path])
    assert "line 2" in str(caught.value)
    assert f"field {field}" in str(caught.value)


def test_iou_and_truth_exclude_each_other(tmp_path: Path) -> None:
    line = b'{"id":"p","said":"edited","iou":0.5,"truth":[[0,0,1,1]]}'
    with pytest.raises(ItemsError, match="either iou or truth"):
        people_answers([written(tmp_path / "h.jsonl", [line])])


def test_a_name_is_the_rater_of_answers_that_name_none(tmp_path: Path) -> None:
    lines = [b'{"id": "p0", "said": "edited"}', b'{"id": "p1", "said": "real", "rater": "u"}']
    file = written(tmp_path / "people.jsonl", lines)
    raters = [each.rater for each in people_answers({"ann": file, "ben": str(file)})]
    assert raters == ["ann", "u", "ben", "u"]
    assert [each.rater for each in people_answers(file)] == [None, "u"]


def test_the_published_row() -> None:
    people = published_people()
    assert [people[f"acc_{label}"] for label in ("deceiving", "intermediate", "non_deceiving")] == [
        35.2,
        59.7,
        73.7,
    ]
    assert people["iou_deceiving"] == 12.9
