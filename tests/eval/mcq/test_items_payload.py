"""Annotation payloads and one-line predictions, there and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.eval.mcq.made_sets import to_payload
from uncanny.demo.scenes import scenes
from uncanny.errors import ItemsError, UsageError
from uncanny.eval.mcq.data.answers import load_predictions, write_predictions
from uncanny.eval.mcq.data.items import Answer, Item
from uncanny.eval.mcq.data.load import scene_item
from uncanny.eval.mcq.data.released import from_payload, import_payloads

TEXTS = {"A": "a", "B": "b", "C": "c", "D": "d"}
PAYLOAD: dict[str, Any] = {
    "artifact_type": "count_anomaly",
    "q1_ref": "yes",
    "semantic_loc": {"ref": "B", "options": TEXTS},
    "box": {"ref": "A", "candidates": {letter: [322, 181, 414, 271] for letter in "ABCD"}},
    "evidence": {"ref": "B", "options": TEXTS},
}


def test_a_payload_is_an_item() -> None:
    item = from_payload(PAYLOAD | {"annotator": 3}, id="one", image="a.png", split="art_pg", pair_id="p")
    assert (item.artifact_type, item.pair_id, item.split) == ("count", "p", "art_pg")
    assert [item.right(question) for question in ("q1", "q2", "q3", "q4")] == ["yes", "B", "A", "B"]
    assert item.q3 is not None
    assert item.q3.boxes["D"] == (322, 181, 414, 271)
    assert item.model_extra == {"annotator": 3}


def test_whole_numbers_beside_a_payload_keep_all_digits(tmp_path: Path) -> None:
    line = PAYLOAD | {"id": "one", "image": "a.png", "split": "art_pg", "seed": 2**70 + 1}
    (tmp_path / "payloads.jsonl").write_text(json.dumps(line) + "\n")
    (item,) = import_payloads(tmp_path / "payloads.jsonl", tmp_path / "set")
    assert item.model_extra == {"seed": 2**70 + 1}
    assert json.loads((tmp_path / "set" / "items.jsonl").read_bytes())["seed"] == 2**70 + 1


@pytest.mark.parametrize("scene", scenes(), ids=lambda scene: scene.id)
def test_payloads_there_and_back(scene: Any) -> None:
    item = scene_item(scene)
    payload = json.loads(json.dumps(to_payload(item)))
    again = from_payload(payload, id=item.id, image=item.image, split=item.split, pair_id=item.pair_id)
    assert again.model_dump() == item.model_dump()


def test_a_reference_has_no_type_and_parts_may_be_absent() -> None:
    item = from_payload({"artifact_type": "clean", "q1_ref": "no"}, id="r", image="r.png", split="ref_real")
    assert item.artifact_type is None
    assert item.questions() == ("q1",)


def test_every_bad_field_of_a_payload_is_named() -> None:
    bad = {
        "q1_ref": "",
        "semantic_loc": {"ref": "", "options": {**TEXTS, "E": "none"}},
        "box": {"ref": "B", "candidates": {"A": [1, 2, 3], "Z": [0, 0, 1, 1]}},
        "evidence": {"options": 3},
    }
    with pytest.raises(ItemsError) as caught:
        from_payload(bad, id="one", image="a.png", split="art_dg")
    assert [problem.field for problem in caught.value.problems] == [
        "q1_ref",
        "semantic_loc.ref",
        "semantic_loc.options.E",
        "box.candidates.A.3",
        "box.candidates.Z",
        "evidence.ref",
        "evidence.options",
    ]
    with pytest.raises(ItemsError, match="artifact_type: 'ugly' is not one of count"):
        from_payload(PAYLOAD | {"artifact_type": "ugly"}, id="one", image="a.png", split="art_dg")


def lines(path: Path, *records: object) -> Path:
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


def test_predictions_are_answers_of_the_model_named(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "p.jsonl",
        {"row_id": "a", "q1": "yes", "q2": "B", "q3": None, "q4": "hm"},
        {"row_id": "ref", "q2": "E", "q3": "E", "q4": "E"},
    )
    read = load_predictions(path, model="gpt")
    assert [(a.id, a.question, a.raw) for a in read] == [
        ("a", "q1", "yes"),
        ("a", "q2", "B"),
        ("a", "q4", "hm"),
        ("ref", "q2", "E"),
        ("ref", "q3", "E"),
        ("ref", "q4", "E"),
    ]
    assert {a.model for a in read} == {"gpt"}


def test_the_last_line_about_an_image_stands_and_words_are_kept(tmp_path: Path) -> None:
    raw = {"q2": {"text": "B or C"}, "q3": {"text": "", "error": "timeout"}, "q4": "odd"}
    path = lines(
        tmp_path / "p.jsonl",
        {"row_id": "a", "q1": "yes", "q4": "A"},
        {"row_id": "a", "q1": "no", "q2": None, "q3": None, "q4": None, "raw": raw},
    )
    read = load_predictions(path, model="m")
    assert [(a.question, a.raw) for a in read] == [("q1", "no"), ("q2", "B or C")]


def test_lines_about_other_questions_of_an_image_add_to_each_other(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "p.jsonl",
        {"row_id": "a", "q1": "yes", "q2": "B"},
        {"row_id": "ref", "q2": "E"},
        {"row_id": "a", "q2": "C", "raw": {"q4": {"text": "A or B"}}},
    )
    read = load_predictions(path, model="ann")
    assert [(a.id, a.question, a.raw) for a in read] == [
        ("a", "q1", "yes"),
        ("a", "q2", "C"),
        ("a", "q4", "A or B"),
        ("ref", "q2", "E"),
    ]


def test_bad_prediction_lines_are_all_named(tmp_path: Path) -> None:
    path = lines(tmp_path / "p.jsonl", {"row_id": "a", "q1": 1}, {"q2": "A"}, [], {"row_id": ""})
    with pytest.raises(ItemsError) as caught:
        load_predictions(path, model="m")
    assert [(p.line, p.field) for p in caught.value.problems] == [
        (1, "q1"),
        (2, "row_id"),
        (3, None),
        (4, "row_id"),
    ]
    with pytest.raises(UsageError, match="cannot be read"):
        load_predictions(tmp_path / "none", model="m")


def reply(id: str, question: Any, raw: str | None, model: str = "m") -> Answer:
    return Answer(id=id, question=question, raw=raw, model=model)


def test_written_predictions_say_what_the_answers_say(tmp_path: Path) -> None:
    pair = [scene_item(scene) for scene in scenes() if scene.pair_id == "d04"]
    form = {"answer_form": "json", "prompts": dict.fromkeys(("q1", "q2", "q3", "q4"), "?")}
    items = [Item.model_validate(item.model_dump() | form) for item in pair]
    artifact = next(item.id for item in items if item.artifact_type is not None)
    reference = next(item.id for item in items if item.artifact_type is None)
    given = [
        reply(artifact, "q2", 'Well: {"answer": "b", "chosen_reason": "…"}'),
        reply(artifact, "q1", "yes"),
        reply(artifact, "q4_no_image", "F"),
        reply("elsewhere", "q3", "**C**"),
    ]
    path = tmp_path / "p.jsonl"
    write_predictions(given, path, items=items)
    written = {line["row_id"]: line for line in map(json.loads, path.read_text().splitlines())}
    assert written[artifact] == {"row_id": artifact, "q1": None, "q2": "B", "q3": None, "q4": None}
    assert set(written[reference].values()) == {reference, None}
    assert written["elsewhere"] == {"row_id": "elsewhere", "q3": "C"}


def test_predictions_are_of_one_model(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="2 models"):
        write_predictions([reply("a", "q1", "no"), reply("a", "q1", "no", "n")], tmp_path / "p.jsonl")


CHOICES = st.fixed_dictionaries(
    {},
    optional={
        "q1": st.sampled_from(["yes", "no"]),
        **{question: st.sampled_from("ABCDE") for question in ("q2", "q3", "q4")},
    },
)


@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), CHOICES, max_size=6))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_predictions_there_and_back(tmp_path: Path, choices: dict[str, dict[str, str]]) -> None:
    answers = [reply(id, question, raw) for id, line in choices.items() for question, raw in line.items()]
    write_predictions(answers, tmp_path / "p.jsonl")
    again = load_predictions(tmp_path / "p.jsonl", model="m")
    key = lambda answer: (answer.id, answer.question, answer.raw)  # noqa: E731
    assert sorted(map(key, again)) == sorted(map(key, answers))
