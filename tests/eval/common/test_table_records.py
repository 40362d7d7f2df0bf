"""Items, pairs, truths and predictions in Parquet files and data sets: read as JSON Lines are."""

from __future__ import annotations

from decimal import Decimal
from importlib import import_module
from pathlib import Path
from typing import Any

import orjson
import pytest

import uncanny
from uncanny.demo.scenes import scenes
from uncanny.errors import ItemsError, UsageError
from uncanny.eval.common.inputs.runs import open_annotations
from uncanny.eval.common.inputs.table_records import open_lines, record_tables
from uncanny.eval.mcq.data.load import copy_scenes
from uncanny.images.file_bytes import read_image_file

FILES = [scene.image_path for scene in scenes()][:2]


def picture(file: Path) -> dict[str, Any]:
    return {"bytes": file.read_bytes(), "path": file.name}


def write(path: Path, rows: list[dict[str, Any]], metadata: dict[str, bytes] | None = None) -> Path:
    pa, pq = import_module("pyarrow"), import_module("pyarrow.parquet")
    path.parent.mkdir(parents=True, exist_ok=True)
    every = dict.fromkeys(key for row in rows for key in row)
    rows = [dict.fromkeys(every) | row for row in rows]
    pq.write_table(pa.Table.from_pylist(rows).replace_schema_metadata(metadata), path)
    return path


def lines(path: Path, **options: Any) -> list[Any]:
    with open_lines(path, **options) as file:
        return [orjson.loads(line) for line in file]


def test_a_row_is_the_line_it_stands_for(tmp_path: Path) -> None:
    nan = float("nan")
    rows: list[dict[str, Any]] = [
        {"id": "a", "box": [1, 2], "nested": {"x": 1, "y": None}, "score": nan, "first": None},
        {"id": "b", "box": None, "nested": {"x": None, "y": "z"}, "score": 0.5, "first": None},
    ]
    file = write(tmp_path / "a.parquet", rows)
    same: list[dict[str, Any]] = [
        {"id": "a", "box": [1, 2], "nested": {"x": 1}},
        {"id": "b", "nested": {"y": "z"}, "score": 0.5},
    ]
    assert lines(file) == same
    assert lines(file, needed={"first"}) == [line | {"first": None} for line in same]
    features = {"info": {"features": {"source": {"_type": "ClassLabel", "names": ["real", "generated"]}}}}
    named = write(tmp_path / "b.parquet", [{"source": 1}], {"huggingface": orjson.dumps(features)})
    assert lines(named) == [{"source": "generated"}]


def test_pictures_are_paths_from_where_records_have_theirs(tmp_path: Path) -> None:
    rows = [{"id": "1", "original": picture(FILES[0]), "edited": FILES[1].read_bytes()}]
    write(tmp_path / "set/data/train.parquet", rows)
    expected = {
        "original": f"data/train.parquet/original/{FILES[0].name}",
        "edited": "data/train.parquet/edited/000000",
    }
    assert lines(tmp_path / "set/data/train.parquet", root=tmp_path / "set") == [{"id": "1"} | expected]
    (line,) = lines(tmp_path / "set")
    assert read_image_file(tmp_path / line["edited"], 10**9) == FILES[1].read_bytes()


def test_a_run_folder_is_no_data_set(tmp_path: Path) -> None:
    write(tmp_path / "annotations.parquet", [{"id": "1"}])
    assert len(record_tables(tmp_path)) == 1
    (tmp_path / "run.json").write_text("{}")
    assert not record_tables(tmp_path)


def test_items_with_their_pictures_are_asked_as_those_of_a_file(tmp_path: Path) -> None:
    file = copy_scenes(tmp_path / "items")
    items = [orjson.loads(line) for line in file.read_bytes().splitlines()][:6]
    rows = [item | {"image": picture(file.parent / item["image"])} for item in items]
    table = write(tmp_path / "hub/data/test.parquet", rows)
    loaded, given = uncanny.mcq.load(table), uncanny.mcq.load(file)
    assert [item.model_dump(exclude={"image"}) for item in loaded] == [
        item.model_dump(exclude={"image"}) for item in list(given)[:6]
    ]
    run = uncanny.mcq.run(tmp_path / "hub", model="demo", out=tmp_path / "run", limit=2)
    assert {answer.id for answer in run.records} == {"c01-ball-on-thread", "c02-ball-of-two-colours"}
    assert all(answer.raw for answer in run.records)
    broken = [row | {"split": None} for row in rows]
    with pytest.raises(ItemsError, match="field split"):
        uncanny.mcq.load(write(tmp_path / "broken.parquet", broken))


def test_pairs_with_their_pictures(tmp_path: Path) -> None:
    rows = [{"id": "p1", "original": picture(FILES[0]), "edited": picture(FILES[1]), "group": None}]
    table = write(tmp_path / "pairs.parquet", rows)
    run = uncanny.realism.run(table, model="demo", out=tmp_path / "run")
    assert [verdict.id for verdict in run.records] == ["p1"]
    (pair,) = uncanny.edits.load(table).pairs
    assert read_image_file(pair.edited, 10**9) == FILES[1].read_bytes()


def test_truth_and_predictions(tmp_path: Path) -> None:
    anomaly = {"name": "n", "phenomenon": "p p", "reasoning": "r r", "severity": 10}
    rows: list[dict[str, Any]] = [
        {"image": "a.png", "anomalies": [anomaly], "source": "generated"},
        {"image": "b.png", "anomalies": [], "source": "real"},
    ]
    table = write(tmp_path / "truth/data/test.parquet", rows)
    scored = uncanny.semantic.score(tmp_path / "truth", truth=table, similarity="chrf", resamples=0)
    assert scored.to_json()["predictions"]
    region = {"category": "physics", "box": [1, 1, 3, 3], "polygon": None}
    image = {"image": "a.png", "width": 8, "height": 8, "source": "generated", "score": None}
    regions = [image | {"regions": [region]}]
    of_table = uncanny.artifacts.load(write(tmp_path / "regions.parquet", regions))
    of_memory = uncanny.artifacts.load([{**regions[0]}])
    assert [each.record for each in of_table.images] == [each.record for each in of_memory.images]


def test_a_damaged_table_is_an_error_in_words(tmp_path: Path) -> None:
    cut = tmp_path / "items.parquet"
    cut.write_bytes(write(tmp_path / "whole.parquet", [{"id": "1"}]).read_bytes()[:-9])
    for read in (uncanny.mcq.load, uncanny.realism.load, uncanny.edits.load, uncanny.artifacts.load):
        with pytest.raises(UsageError, match=r"items\.parquet cannot be read as Parquet"):
            read(cut)
    saved = tmp_path / "saved"
    (saved / "train").mkdir(parents=True)
    (saved / "dataset_dict.json").write_text('{"splits": ["train"]}')
    with pytest.raises(UsageError, match="is incomplete: its split train is missing"):
        uncanny.mcq.load(saved)
    (saved / "train" / "state.json").write_text("{")
    with pytest.raises(UsageError, match=r"state\.json does not say which files"):
        uncanny.mcq.load(saved)


def test_numbers_stay_numbers_and_what_json_has_not_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "a.parquet", [{"id": "a", "score": Decimal("1.50"), "count": Decimal(2)}])
    assert lines(file) == [{"id": "a", "score": 1.5, "count": 2}]
    file = write(tmp_path / "b.parquet", [{"id": "a"}, {"id": "b", "parts": [b"\xff"]}])
    with pytest.raises(
        UsageError, match=r"row 2 of .*b\.parquet, column 'parts', cannot be written as JSON: .*bytes"
    ):
        lines(file)


def test_pictures_are_read_between_the_lines_of_their_table(tmp_path: Path) -> None:
    rows = [{"id": str(number), "image": picture(FILES[number % 2])} for number in range(2_500)]
    file = write(tmp_path / "a.parquet", [*rows[:1], *({"id": row["id"]} for row in rows[1:])])
    with open_lines(file) as records:
        for number, line in enumerate(records):
            assert orjson.loads(line)["id"] == str(number)
            if number in (0, 1_500):
                assert read_image_file(file / FILES[0].name, 10**9) == FILES[0].read_bytes()


def test_a_table_has_one_copy_until_it_changes(tmp_path: Path) -> None:
    record = {"image": "a.png", "status": "ok", "anomalies": None}
    file = write(tmp_path / "a.parquet", [record])
    first = open_annotations(file).file
    assert open_annotations(file).file == first
    write(file, [record, record | {"image": "b.png"}])
    second = open_annotations(file).file
    assert [path.read_bytes().count(b"\n") for path in (first, second)] == [1, 2]
    assert first.parent == second.parent
