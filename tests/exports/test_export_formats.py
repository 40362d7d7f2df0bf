"""Each form, read back by the library it is for."""

from __future__ import annotations

import contextlib
import csv
import json
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from pydantic import ValidationError

import uncanny
from tests.bundled_runs import BundledRuns
from tests.exports.made_runs import FORMULAS, HOSTILE, SIZE, anomaly, judge, make_run
from uncanny.answers.forms import ANOMALIES
from uncanny.answers.lists import read_list
from uncanny.exports.formats import FORMATS, FormatName
from uncanny.exports.formats.chats import listed
from uncanny.exports.run import ExportResult
from uncanny.records.jsonl import read_records
from uncanny.schema import Annotation


def lines(file: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in file.read_bytes().splitlines()]


@pytest.fixture
def to(run: Path, tmp_path: Path) -> Callable[..., ExportResult]:
    def call(*names: Any, **options: Any) -> ExportResult:
        return uncanny.export(run, to=names, out=tmp_path / "out", **options)

    return call


def test_jsonl_is_read_as_annotations_again(to: Callable[..., ExportResult], tmp_path: Path) -> None:
    result = to("jsonl")
    records = list(read_records(tmp_path / "out/annotations.jsonl", Annotation))
    assert [len(record.anomalies) for record in records] == [2, 1]
    assert records[0].anomalies[1].phenomenon == HOSTILE
    picture = tmp_path / "out" / records[0].image
    assert picture.is_file()
    assert (result.images, result.anomalies) == (2, 3)
    assert uncanny.audit({"reviewed": tmp_path / "out/annotations.jsonl"}).leaderboards


def test_csv_cells_are_no_formulas_and_come_back(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    texts = [*FORMULAS, HOSTILE, "plain, 'quoted' \"twice\""]
    make_run(run, [("a.png", [anomaly("x", phenomenon=f"{text}.", reasoning=text) for text in texts])])
    table = uncanny.export(run, to="csv", out=tmp_path / "x.csv", all=True).files["csv"]
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(texts)
    assert not any(
        cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) for row in rows for cell in row.values()
    )
    back = [each.anomaly for each in FORMATS["csv"].load_reader()(table)]
    assert [each and each["reasoning"].split() for each in back] == [text.split() for text in texts]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_column_holds_whole_numbers_of_any_size(
    bundled_run: BundledRuns, tmp_path: Path, form: FormatName
) -> None:
    import pandas

    path = bundled_run("annotate").copy(tmp_path / "run")
    records = [record | {"columns": {"seed": 2**70}} for record in lines(path / "annotations.jsonl")]
    (path / "annotations.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    file = uncanny.export(path, to=form, out=tmp_path / f"out.{form}", all=True).files[form]
    table = getattr(pandas, f"read_{form}")(file)
    assert set(table["columns"].dropna()) == {f'{{"seed":{2**70}}}'}


def test_csv_is_what_pandas_reads(to: Callable[..., ExportResult], tmp_path: Path) -> None:
    import pandas

    to("csv", all=True)
    frame = pandas.read_csv(tmp_path / "out/anomalies.csv")
    assert frame["name"].tolist() == ["Six fingers", "'=1+1", "Two moons", "Bent wall", "No shadow"]
    assert frame["decision"].fillna("").tolist() == ["accept", "accept", "accept", "", ""]
    assert frame["x1"].tolist()[0] == 30


def test_parquet_is_what_pyarrow_reads(to: Callable[..., ExportResult], tmp_path: Path) -> None:
    parquet = import_module("pyarrow.parquet")
    to("parquet", all=True)
    rows = parquet.read_table(tmp_path / "out/annotations.parquet").to_pylist()
    assert [len(row["anomalies"]) for row in rows] == [2, 2, 1]
    assert len(rows[0]["anomalies"][0].pop("text_sha256")) == 64
    assert rows[0]["anomalies"][0] | {"phenomenon": "", "reasoning": ""} == {
        **{"index": 0, "name": "Six fingers", "phenomenon": "", "reasoning": "", "severity": 20},
        **{"kind": "anatomy", "confidence": None, "probability": None, "objects": [], "box": [10, 5, 30, 40]},
        **{"found_by": None},
        **{"decision": "accept", "rating": 2 / 3, "accept": 2, "reject": 1, "unsure": 0},
        **{"edited": False, "added": False},
    }
    assert rows[0]["anomalies"][1]["phenomenon"] == HOSTILE
    assert rows[1]["anomalies"][1]["box"] is None


def test_hf_is_what_datasets_loads_with_pictures(
    to: Callable[..., ExportResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    to("hf", all=True, test_fraction=0)
    loaded = datasets.load_dataset(str(tmp_path / "out/hf"), cache_dir=str(tmp_path / "cache"))
    assert list(loaded) == ["train"]
    first = loaded["train"][0]
    assert isinstance(first["image"], Image.Image)
    assert first["image"].size == SIZE
    assert first["anomalies"][1]["phenomenon"] == HOSTILE
    assert first["anomalies"][0]["box"] == [10, 5, 30, 40]
    assert isinstance(loaded["train"].features["image"], datasets.Image)


def test_hf_without_pictures_has_null(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    (run / "photos/a b#1.png").unlink()
    (run / "photos/b.png").write_bytes((run / "photos/c.png").read_bytes())
    result = uncanny.export(run, to="hf", out=tmp_path / "out", all=True, test_fraction=1)
    loaded = datasets.load_dataset(str(tmp_path / "out/hf"), cache_dir=str(tmp_path / "cache"))["test"]
    assert [row["image"] is None for row in loaded] == [True, True, False]
    assert result.notes["hf"] == {"pictures missing or changed, null": 2}


def test_coco_is_what_pycocotools_loads(to: Callable[..., ExportResult], tmp_path: Path) -> None:
    from pycocotools.coco import COCO

    to("coco", all=True)
    coco = COCO(str(tmp_path / "out/coco/annotations.json"))
    assert len(coco.getImgIds()) == 3
    annotations = coco.loadAnns(coco.getAnnIds())
    assert [each["bbox"] for each in annotations] == [[10, 5, 20, 35], [0, 0, 64, 48], [1, 2, 2, 2]]
    names = [coco.loadCats(each["category_id"])[0]["name"] for each in annotations]
    assert names == ["anatomy", "anomaly", "light"]
    assert annotations[0]["attributes"]["decision"] == "accept"
    sidecar = lines(tmp_path / "out/coco/without_boxes.jsonl")
    assert [each["attributes"]["name"] for each in sidecar] == ["=1+1", "Bent wall"]
    picture = coco.loadImgs([1])[0]["file_name"]
    assert (tmp_path / "out/coco" / picture).is_file()


def test_coco_of_nothing_is_valid(tmp_path: Path) -> None:
    from pycocotools.coco import COCO

    run = tmp_path / "run"
    run.mkdir()
    make_run(run, [("a.png", [])])
    uncanny.export(run, to=["coco", "labelstudio", "cvat", "hf", "parquet"], out=tmp_path / "out", all=True)
    assert COCO(str(tmp_path / "out/coco/annotations.json")).getAnnIds() == []


def test_a_box_that_leaves_the_picture_is_clipped_or_left_out(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    make_run(run, [("a.png", [anomaly("x", (60, 40, 99, 99)), anomaly("y", (70, 1, 80, 2))])])
    uncanny.export(run, to=["coco"], out=tmp_path / "out", all=True)
    content = orjson.loads((tmp_path / "out/coco/annotations.json").read_bytes())
    assert [each["bbox"] for each in content["annotations"]] == [[60, 40, 4, 8]]
    assert len(lines(tmp_path / "out/coco/without_boxes.jsonl")) == 1


def test_labelme_has_what_its_loader_requires(to: Callable[..., ExportResult], tmp_path: Path) -> None:
    """labelme itself is GPL and needs Qt: these are the keys that `labelme.LabelFile.load` asks for (6.3)."""
    to("labelme", all=True)
    files = sorted((tmp_path / "out/labelme").glob("*.json"))
    assert len(files) == 3
    assert not any(set(file.name) & set(" #") for file in files)
    content = orjson.loads(files[0].read_bytes())
    assert {"version", "imageData", "imagePath", "shapes", "flags", "imageHeight", "imageWidth"} <= set(
        content
    )
    assert (files[0].parent / content["imagePath"]).is_file()
    shape = content["shapes"][0]
    assert {"label", "points", "shape_type", "flags", "description", "group_id", "mask"} <= set(shape)
    assert (shape["points"], shape["shape_type"]) == ([[10.0, 5.0], [30.0, 40.0]], "rectangle")
    assert shape["flags"] == {"accept": True, "reject": False, "unsure": False}


@pytest.mark.parametrize("chat", ["parts", "tags"])
def test_chats_are_what_datasets_loads(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chat: Any
) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    uncanny.export(
        run,
        to=["sft", "sft-detect"],
        out=tmp_path / "out",
        all=True,
        chat=chat,
        test_fraction=0,
        source="generated",
    )
    for name in ("sft", "sft-detect"):
        file = str(tmp_path / "out" / name / "train.jsonl")
        loaded = datasets.load_dataset("json", data_files=file, cache_dir=str(tmp_path / "cache"))["train"]
        assert len(loaded) == 3
        for row in loaded:
            roles = [message["role"] for message in row["messages"]]
            assert roles == ["user", "assistant"] * (1 if name == "sft" else 2)
            contents = [message["content"] for message in row["messages"]]
            flat = json.dumps(contents)
            assert flat.count("<image>") == (1 if chat == "tags" else flat.count("<image>"))
            if chat == "parts":
                kinds = [part["type"] for content in contents for part in content]
                assert kinds.count("image") == len(row["images"]) == 1
            assert all((tmp_path / "out" / name / path).is_file() for path in row["images"])


def test_the_list_is_what_the_reader_of_answers_reads(run: Path, tmp_path: Path) -> None:
    """Hostile text neither begins an entry nor a field: as many come out as went in."""
    uncanny.export(run, to="sft", out=tmp_path / "out", test_fraction=0, chat="tags")
    chats = lines(tmp_path / "out/sft/train.jsonl")
    assert len(chats) == 1  # the second image is not reviewed to the end
    answer = chats[0]["messages"][1]["content"]
    assert answer.count("@1. Name: ") == answer.count("@2. Name: ") == 1
    assert answer.count("\nSeverity Score: 20.") == 2
    back = read_list(answer, ANOMALIES)
    assert sorted(each.name for each in back) == ["=1+1", "Six fingers"]
    assert all(each.severity == 20 for each in back)


@given(st.lists(st.tuples(st.text(min_size=1), st.text(min_size=1)), min_size=1, max_size=4))
def test_any_text_is_one_entry(texts: list[tuple[str, str]]) -> None:
    anomalies = []
    for number, (phenomenon, reasoning) in enumerate(texts):
        with contextlib.suppress(ValidationError):
            anomalies.append(
                anomaly(
                    f"number {number}",
                    severity=number,
                    phenomenon=f"p {phenomenon}",
                    reasoning=f"r {reasoning}",
                )
            )
    answer = "\n".join(listed(number, each) for number, each in enumerate(anomalies, 1))
    back = read_list(answer, ANOMALIES) if anomalies else ()
    assert [(each.name, each.severity) for each in back] == [(each.name, each.severity) for each in anomalies]


def test_agents_have_every_call_of_a_run(tmp_path: Path) -> None:
    from uncanny.demo.scenes import scenes

    pictures = [scene.image_path for scene in scenes()][:3]
    run = uncanny.annotate(pictures, model="demo", out=tmp_path / "run")
    result = uncanny.export(run, to="agents", out=tmp_path / "agents.jsonl", all=True)
    rows = lines(result.files["agents"])
    calls = lines(tmp_path / "run/calls.jsonl")
    assert sum(len(row["answers"]) for row in rows) == len(calls)
    assert all({"agent", "step", "asked", "answer"} <= set(call) for row in rows for call in row["answers"])


def test_judged_images_of_which_nothing_is_accepted_say_so(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (record,) = make_run(run, [("a.png", [anomaly("x")])])
    judge(run, record, "ann", "reject")
    uncanny.export(run, to=["sft", "csv"], out=tmp_path / "out", test_fraction=0, chat="tags")
    assert lines(tmp_path / "out/sft/train.jsonl")[0]["messages"][1]["content"] == "No anomalies."
    assert len((tmp_path / "out/anomalies.csv").read_text().splitlines()) == 2
