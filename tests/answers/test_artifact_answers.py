"""Answers that locate artifacts, as models write them, with what each must be read as.

`corpus/artifacts/artifacts.jsonl`: `id`, `text`, and either `items` (category, box, note) or `error`, a part
of the message, with `best`, what is kept of it. Asked about is physics, or with `joint` these categories at
once, on a picture of 1000 × 500, in the format `boxes`. `likelihood.jsonl`: what is 0–1, or None.
"""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.growth import check_linear
from uncanny.answers.artifacts import CATEGORY_SPELLINGS, ArtifactReader, asked_form, read_likelihood
from uncanny.answers.boxes import BOX_FORMATS, DEFAULT_BOX_FORMAT, BoxFormat, GivenBox, pixels
from uncanny.errors import AnswerError
from uncanny.eval.artifacts.data.records import read_category
from uncanny.schema import ARTIFACT_CATEGORIES, Box

FOLDER = Path(__file__).parent / "corpus" / "artifacts"
SIZE = (1000, 500)


def cases(name: str) -> list[Any]:
    lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    return [pytest.param(json.loads(line), id=json.loads(line)["id"]) for line in lines]


def reader(case: dict[str, Any]) -> ArtifactReader:
    form: BoxFormat = BOX_FORMATS[case.get("boxes", DEFAULT_BOX_FORMAT)]

    def to_pixels(given: GivenBox) -> Box | None:
        return pixels(given, form, sent=SIZE, original=SIZE)

    return ArtifactReader(tuple(case.get("joint", ["physics"])), "joint" in case, form.key, to_pixels)


@pytest.mark.parametrize("case", cases("artifacts.jsonl"))
def test_reads_as_expected(case: dict[str, Any]) -> None:
    reading = reader(case)
    if "items" in case:
        located = reading.read(case["text"])
        assert [[each.category, [*each.box], each.note] for each in located] == case["items"]
        return
    with pytest.raises(AnswerError) as caught:
        reading.read(case["text"])
    assert case["error"] in caught.value.message
    assert len(caught.value.message) <= 600
    best = [[each.category, [*each.box], each.note] for each in reading.best or ()]
    assert best == case.get("best", [])


def test_the_best_answer_is_the_one_with_most_and_of_equals_the_last() -> None:
    reading = reader({})
    bad = '{"bbox_2d": []}'
    boxes = ['{"bbox_2d": [0, 0, 10, 20]}', '{"bbox_2d": [0, 0, 20, 20]}', '{"bbox_2d": [0, 0, 30, 20]}']
    for kept in (boxes[:1], boxes[1:], boxes[:1], boxes[:2]):
        with pytest.raises(AnswerError):
            reading.read(f'{{"artifacts": [{", ".join([*kept, bad])}]}}')
    assert [each.box[2] for each in reading.best or ()] == [10, 20]


@pytest.mark.parametrize("case", cases("likelihood.jsonl"))
def test_likelihoods(case: dict[str, Any]) -> None:
    if case["is"] is not None:
        assert read_likelihood(case["text"]) == case["is"]
        return
    with pytest.raises(AnswerError):
        read_likelihood(case["text"])


@pytest.mark.parametrize("joint", [False, True])
def test_the_schema_asks_for_boxes_under_the_models_own_key(joint: bool) -> None:
    for form in BOX_FORMATS.values():
        names = [each.asked_as for each in asked_form(form.name, joint=joint).fields]
        assert names == (["category"] if joint else []) + ["note", form.key]
    (category,) = (each for each in asked_form("pixels", joint=True).fields if each.kind == "choice")
    assert category.offered == ARTIFACT_CATEGORIES


@pytest.mark.parametrize("piece", ["Likelihood: ", "1" * 40, "\n*", "score : "])
def test_likelihoods_are_read_in_linear_time(piece: str) -> None:
    def read(text: str) -> None:
        with contextlib.suppress(AnswerError):
            read_likelihood(text)

    check_linear(read, lambda size: piece * size)


@pytest.mark.parametrize("between", [" ", "_", "-", "/", " & "])
@pytest.mark.parametrize(("spelling", "category"), CATEGORY_SPELLINGS.items())
def test_models_may_spell_categories_as_files_may(spelling: str, category: str, between: str) -> None:
    written = spelling.replace(" ", between).title()
    text = json.dumps({"artifacts": [{"category": written, "note": "odd", "box": [0, 0, 500, 500]}]})
    case = {"joint": ARTIFACT_CATEGORIES, "boxes": "pixels"}
    assert [each.category for each in reader(case).read(text)] == [category]
    assert read_category(written) == category
