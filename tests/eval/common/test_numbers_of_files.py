"""A number in a file is a number: `true` is not 1, and `"0.3"` is text, whoever reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

import uncanny
from uncanny.errors import ItemsError
from uncanny.eval.artifacts.data.load import load as load_artifacts
from uncanny.eval.common.inputs.problems import parse_records
from uncanny.eval.edits.data import load as load_edits
from uncanny.eval.edits.people.data import Judgement
from uncanny.eval.mcq.data.items import Item
from uncanny.eval.realism.people import PersonAnswer
from uncanny.schema import Annotation

EDIT = {"id": "a", "original": "a.png", "edited": "b.png"}
BOXES = {"A": [0, 0, 5, 5], "B": [1, 1, 5, 5], "C": [2, 2, 5, 5], "D": [3, 3, 5, 5]}
ANOMALY = {"name": "Cup", "phenomenon": "It floats.", "reasoning": "Cups fall.", "severity": 5}


def artifacts(path: Path) -> None:
    load_artifacts(path)


def annotated(path: Path) -> None:
    _all(path, Annotation)


def people(path: Path) -> None:
    _all(path, PersonAnswer)


def judgements(path: Path) -> None:
    _all(path, Judgement)


def items(path: Path) -> None:
    _all(path, Item)


def edits(path: Path) -> None:
    load_edits(path)


def detector(path: Path) -> None:
    uncanny.edits.stress({"mine": path}, meta=[[{"edited": "a.png", "original": "b.png"}]])


def _all(path: Path, model: Any) -> None:
    _, problems = parse_records(path, model)
    if problems:
        raise ItemsError(str(path), problems)


def region(**more: Any) -> dict[str, Any]:
    return {"image": "a.png", "width": 9, "height": 9, "regions": [{"box": [0, 0, 5, 5], **more}]}


READERS: list[tuple[Any, dict[str, Any], str]] = [
    (artifacts, {"image": "a.png", "score": 0.3}, "score"),
    (artifacts, {"image": "a.png", "source": "real", "width": 9}, "width"),
    (artifacts, region(confidence=1), "regions.0.confidence"),
    (artifacts, region(), "regions.0.box.2"),
    (detector, {"image": "a.png", "score": 0.3}, "score"),
    (people, {"id": "a", "said": "edited", "iou": 0.3}, "iou"),
    (people, {"id": "a", "said": "edited", "boxes": [[0, 0, 5, 5]]}, "boxes.0.2"),
    (
        judgements,
        {"id": "a", "shown": "edited", "image": "", "person": "p", "judged": "real", "seconds": 3},
        "seconds",
    ),
    (edits, {**EDIT, "scene_diversity": 3}, "scene_diversity"),
    (
        items,
        {"id": "a", "image": "a.png", "split": "art_dg", "q3": {"boxes": BOXES, "answer": "A"}},
        "q3.boxes.A.2",
    ),
    (
        annotated,
        {
            **{"image": "a.png", "sha256": None, "width": 9, "height": 9, "status": "ok", "model": "m"},
            **{"prompts": "m@1", "anomalies": [ANOMALY]},
        },
        "anomalies.0.severity",
    ),
]
_NAMES = [f"{read.__name__} {field}" for read, _, field in READERS]


def _with(record: dict[str, Any], field: str, value: object) -> bytes:
    content = orjson.loads(orjson.dumps(record))
    *way, last = [int(part) if part.isdigit() else part for part in field.split(".")]
    place = content
    for part in way:
        place = place[part]
    place[last] = value
    return orjson.dumps(content) + b"\n"


@pytest.mark.parametrize(("read", "record", "field"), READERS, ids=_NAMES)
@pytest.mark.parametrize("value", [True, False, "0.3", "1"])
def test_truth_and_text_are_no_numbers(
    read: Any, record: dict[str, Any], field: str, value: object, tmp_path: Path
) -> None:
    file = tmp_path / "lines.jsonl"
    file.write_bytes(orjson.dumps(record) + b"\n")
    read(file)
    file.write_bytes(_with(record, field, value))
    with pytest.raises(ItemsError) as caught:
        read(file)
    (problem,) = caught.value.problems
    assert (problem.line, problem.field) == (1, field)


# The check of items has words of its own for it.
FINITE = [each for each in READERS if each[0] is not items]


@pytest.mark.parametrize(("read", "record", "field"), FINITE)
def test_numbers_are_finite(read: Any, record: dict[str, Any], field: str, tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    file.write_bytes(_with(record, field, "HERE").replace(b'"HERE"', b"1e999"))
    with pytest.raises(ItemsError):
        read(file)


def test_cells_of_a_csv_file_are_numbers_where_they_say_one(tmp_path: Path) -> None:
    table = tmp_path / "pairs.csv"
    table.write_text("id,original,edited,scene_diversity\na,a.png,b.png,3\nb,a.png,c.png,\n")
    assert [each.pair.scene_diversity for each in load_edits(table)] == [3.0, None]
    table.write_text("id,original,edited,scene_diversity\na,a.png,b.png,many\n")
    with pytest.raises(ItemsError, match="scene_diversity: must be a number, not 'many'"):
        load_edits(table)
    table.write_text("image,source,score\na.png,real,0.3\n")
    assert load_artifacts(table).records[0].score == 0.3
