"""Rewards of located artifacts, by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from uncanny.answers.boxes import BOX_FORMATS
from uncanny.learn.grounding.data import Question, read_images
from uncanny.learn.grounding.rewards import (
    Grounded,
    LocatedBox,
    box_reward,
    format_reward,
    mean_rewards,
    read_answer,
    source_reward,
)

PIXELS, THOUSANDTHS = BOX_FORMATS["pixels"], BOX_FORMATS["xyxy-1000"]
SIZE = (100, 50)


def answer(*artifacts: tuple[str, list[Any]], source: str = "generated", key: str = "box") -> str:
    entries = [{"category": category, key: box} for category, box in artifacts]
    return json.dumps({"source": source, "artifacts": entries})


def read(text: str) -> Grounded | None:
    return read_answer(text, PIXELS, sent=SIZE, original=SIZE)


def located(*artifacts: tuple[Any, tuple[int, int, int, int]], source: Any = "generated") -> Grounded:
    return Grounded(source, tuple(LocatedBox(*each) for each in artifacts))


def test_an_answer_is_read() -> None:
    said = read(answer(("physics", [0, 0, 10, 10]), ("color", [5, 5, 20, 30])))
    assert said == located(("physics", (0, 0, 10, 10)), ("color", (5, 5, 20, 30)))
    assert read('{"source": "real", "artifacts": []}') == Grounded("real")


def test_boxes_become_pixels_of_the_file() -> None:
    text = answer(("physics", [100, 200, 500, 1000]), key="bbox_2d")
    said = read_answer(text, THOUSANDTHS, sent=(28, 28), original=(200, 100))
    assert said == located(("physics", (20, 20, 100, 100)))
    # Pixels count those of the image as the model saw it.
    said = read_answer(answer(("physics", [0, 0, 14, 28])), PIXELS, sent=(28, 28), original=(200, 100))
    assert said == located(("physics", (0, 0, 100, 100)))


@pytest.mark.parametrize(
    ("text", "source", "wrong"),
    [
        ("", None, None),
        ("no artifacts", None, None),
        ("[]", None, None),
        ('{"source": "real"}', None, None),
        ('{"source": "real", "artifacts": {}}', None, None),
        ('Here: {"source": "real", "artifacts": []}', None, None),
        ('{"source": "fake", "artifacts": []}', None, 0),
        ('{"artifacts": []}', None, 0),
        ('{"source": "real", "artifacts": [3]}', "real", 1),
        (answer(("hands", [0, 0, 9, 9])), "generated", 1),
        (answer(("physics", [0, 0, 900, 9])), "generated", 1),
        (answer(("physics", [9, 9, 3, 3])), "generated", 1),
        (answer(("physics", [0, 0, 9])), "generated", 1),
    ],
)
def test_what_is_not_in_the_form_gets_nothing_for_it(text: str, source: Any, wrong: int | None) -> None:
    said = read(text)
    assert (said is None) == (wrong is None)
    if said is not None:
        assert (said.source, said.wrong, said.artifacts) == (source, wrong, ())
    assert format_reward(said) == 0.0


def test_the_form_and_the_source() -> None:
    right = Grounded("generated")
    assert format_reward(right) == 1.0
    assert source_reward(right, Grounded("generated")) == 1.0
    assert source_reward(right, Grounded("real")) == 0.0
    assert source_reward(None, Grounded("real")) == 0.0
    assert source_reward(Grounded(None), Grounded("real")) == 0.0
    # Nobody knows what the image is: no answer is right.
    assert source_reward(Grounded(None), Grounded(None)) == 0.0


A, B = (0, 0, 10, 10), (50, 20, 70, 40)
HALF_A = (0, 0, 10, 5)  # IoU with A: 50 / 100
SHIFTED_A = (5, 0, 15, 10)  # IoU with A: 50 / 150


@pytest.mark.parametrize(
    ("said", "true", "reward"),
    [
        ([], [], 1.0),
        ([], [("physics", A)], 0.0),
        ([("physics", A)], [], 0.0),
        ([("physics", A)], [("physics", A)], 1.0),
        ([("physics", HALF_A)], [("physics", A)], 0.5),
        ([("physics", SHIFTED_A)], [("physics", A)], 1 / 3),
        ([("color", A)], [("physics", A)], 0.0),  # another category
        ([("color", A)], [(None, A)], 1.0),  # a truth without categories
        ([("physics", A)], [("physics", A), ("physics", B)], 0.5),  # one is missing
        ([("physics", A), ("physics", B)], [("physics", A)], 0.5),  # one too many
        ([("physics", A), ("physics", A)], [("physics", A)], 0.5),  # twice the same
        # Each pairs once: the best sum is HALF_A with A (1/2) and B with B (1), over 2.
        ([("physics", HALF_A), ("physics", B)], [("physics", B), ("physics", A)], 0.75),
        # Taking the largest IoU first would leave 1/3 behind: A with A (1), or both halves of A.
        ([("physics", A), ("physics", HALF_A)], [("physics", A), ("physics", SHIFTED_A)], (1 + 1 / 5) / 2),
    ],
)
def test_boxes_are_matched_one_to_one(said: Any, true: Any, reward: float) -> None:
    assert box_reward(located(*said), located(*true)) == pytest.approx(reward)


def test_wrong_entries_count_as_too_many() -> None:
    said = Grounded("generated", (LocatedBox("physics", A),), wrong=1)
    assert box_reward(said, located(("physics", A))) == 0.5
    assert box_reward(Grounded("generated", (), wrong=1), Grounded("generated")) == 0.0
    assert box_reward(None, Grounded("real")) == 0.0


def test_boxes_of_an_image_that_nobody_looked_at_have_no_reward() -> None:
    """An empty list of artifacts is not right there, nor is any box wrong."""
    unknown = Grounded("generated", None)
    for said in (located(), located(("physics", A)), None):
        assert box_reward(said, unknown) is None
    assert box_reward(located(), Grounded("generated")) == 1.0
    answers = [located(), located()]
    assert mean_rewards(answers, [unknown, located(("physics", A))])["boxes"] == 0.0
    assert mean_rewards(answers, [unknown, unknown]) == {"format": 1.0, "source": 1.0, "boxes": None}


def test_regions_that_are_missing_are_not_an_empty_list(tmp_path: Path) -> None:
    records: list[dict[str, Any]] = [
        {"source": "generated"},
        {"source": "generated", "regions": []},
        {"source": "real"},
        {"regions": [{"category": "physics", "box": [0, 0, 10, 10]}]},
    ]
    for number, record in enumerate(records):
        record["image"] = f"{number}.png"
        Image.new("RGB", (20, 20), (number, 0, 0)).save(tmp_path / record["image"])
    file = tmp_path / "artifacts.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in records))
    truths = [each.truth for each in read_images(file, None)]
    assert [each.source for each in truths] == ["generated", "generated", "real", "generated"]
    assert [each.artifacts for each in truths] == [None, (), (), (LocatedBox("physics", A),)]
    question = Question(PIXELS)
    best = question.answer(truths[0], sent=(20, 20), original=(20, 20))
    assert json.loads(best) == {"source": "generated"}


def test_means_over_images() -> None:
    truths = [located(("physics", A)), Grounded("real")]
    assert mean_rewards([located(("physics", HALF_A)), None], truths) == {
        "format": 0.5,
        "source": 0.5,
        "boxes": 0.25,
    }
    assert mean_rewards([], []) == {"format": None, "source": None, "boxes": None}
