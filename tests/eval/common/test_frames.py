"""Runs as data frames and data sets: every column, of one type whether or not anything is in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pandas as pd
import pytest

import uncanny
from tests.bundled_runs import BundledRuns
from uncanny.errors import UsageError
from uncanny.files import dump_json

RECORD: dict[str, Any] = {
    "image": "a.png",
    "sha256": "0" * 64,
    "width": 40,
    "height": 30,
    "status": "ok",
    "model": "demo",
    "prompts": "packed@1",
    "usage": {"calls": 3, "input_tokens": 10, "output_tokens": 5, "cost_usd": 0.5},
    "pixels": {"format": "PNG", "bytes": 99},
    "anomalies": [
        {
            "name": "hand",
            "phenomenon": "six fingers",
            "reasoning": "hands have five",
            "severity": 7,
            "objects": ["hand", "cup"],
            "box": [1, 2, 30, 20],
            "kind": "anatomy",
            "found_by": ["SceneScanner"],
        },
        {"name": "cup", "phenomenon": "two handles", "reasoning": "cups have one", "severity": 60},
    ],
    "objects": [{"name": "cup", "description": "white"}],
    "columns": {"model": "sdxl", "seed": 7, "cfg": 2, "real": False, "note": "x"},
    "row": 4,
}
CLEAN = {
    **RECORD,
    "image": "b.png",
    "anomalies": [],
    "columns": {"seed": 8, "cfg": 1.5, "note": 3, "real": True},
}
FAILED: dict[str, Any] = {
    **{key: value for key, value in CLEAN.items() if key not in ("columns", "row", "pixels")},
    "image": "c.png",
    "status": "failed",
    "sha256": None,
    "width": None,
    "height": None,
    "errors": [{"agent": "ObjectPerceiver", "step": 1, "kind": "server", "message": "status 500"}],
    "usage": {"calls": 0, "input_tokens": None, "output_tokens": None},
}
TABLE = [f"columns.{name}" for name in ("model", "seed", "cfg", "real", "note")]


def run_of(folder: Path, *records: object) -> uncanny.AnnotateRun:
    folder.joinpath("annotations.jsonl").write_bytes(b"".join(dump_json(each) + b"\n" for each in records))
    return uncanny.AnnotateRun(folder)


def test_findings_have_all_that_the_record_says_of_them_and_of_their_image(tmp_path: Path) -> None:
    frame = run_of(tmp_path, RECORD, CLEAN, FAILED).to_pandas()
    assert [*frame.columns] == [*uncanny.AnnotateRun.finding_columns, *TABLE]
    assert frame["image"].tolist() == ["a.png", "a.png", "b.png", "c.png"]
    assert frame["finding"].tolist() == [1, 2, pd.NA, pd.NA]
    first = frame.iloc[0]
    for name, value in RECORD["anomalies"][0].items():
        assert first[name] == value
    assert (first["sha256"], first["width"], first["height"]) == ("0" * 64, 40, 30)
    assert frame["box"][1] is None
    assert frame["found_by"][1] is None
    assert frame["objects"].tolist() == [["hand", "cup"], [], None, None]
    assert frame["columns.model"].tolist() == ["sdxl", "sdxl", pd.NA, pd.NA]
    assert frame["columns.cfg"].tolist() == [2.0, 2.0, 1.5, pd.NA]
    assert frame["columns.note"].tolist() == ["x", "x", "3", pd.NA]  # of two sorts: text
    assert {name: str(frame[name].dtype) for name in ("columns.seed", "columns.real", "severity")} == {
        "columns.seed": "Int64",
        "columns.real": "boolean",
        "severity": "Int64",
    }


def test_images_have_all_that_the_record_says_of_them(tmp_path: Path) -> None:
    frame = run_of(tmp_path, RECORD, CLEAN, FAILED).to_pandas("images")
    assert [*frame.columns] == [*uncanny.AnnotateRun.image_columns, *TABLE]
    assert frame["anomalies"].tolist() == [2, 0, pd.NA]  # of the last one nothing is known
    assert frame["errors"].tolist() == [[], [], ["status 500"]]
    assert frame["objects"].tolist() == [["cup"]] * 3
    assert frame["bytes"].tolist() == [99, 99, pd.NA]
    assert frame["row"].tolist() == [4, 4, pd.NA]
    assert frame["calls"].tolist() == [3, 3, 0]
    assert frame["cost_usd"].tolist() == [0.5, 0.5, pd.NA]
    assert frame["columns.seed"].tolist() == [7, 8, pd.NA]


@pytest.mark.parametrize("of", ["findings", "images"])
def test_types_are_the_same_whatever_is_in_a_run(tmp_path: Path, of: Any) -> None:
    import datasets

    (tmp_path / "run.json").write_bytes(orjson.dumps({"task": "annotate"}))
    frames, features = [], []
    for records in ((), (CLEAN,), (FAILED,), (RECORD, CLEAN)):
        run = run_of(tmp_path, *({key: each[key] for key in each if key != "columns"} for each in records))
        frames.append(run.to_pandas(of).dtypes.to_dict())
        dataset = run.to_dataset(of)
        assert isinstance(dataset, datasets.Dataset)
        assert dataset.to_list() == [*run.rows(of)]
        features.append(dataset.features)
    assert all(each == frames[0] for each in frames)
    assert all(each == features[0] for each in features)


def test_cells_of_tables_are_no_trouble_whatever_they_are(tmp_path: Path) -> None:
    odd = {
        **CLEAN,
        "columns": {"big": 2**70, "seed": None, "nested": {"a": [1]}, "flag": True, "image": "mine"},
    }
    run = run_of(
        tmp_path, odd, {**CLEAN, "image": "d.png", "columns": {"flag": 1}}, {**RECORD, "columns": "x"}
    )
    frame = run.to_pandas("images")
    assert frame["columns.big"][0] == str(2**70)
    assert json.loads(frame["columns.nested"][0]) == {"a": [1]}
    assert frame["columns.flag"].tolist() == ["true", "1", pd.NA]
    assert frame["columns.seed"].isna().all()
    assert frame["image"].tolist() == ["b.png", "d.png", "a.png"]
    assert run.to_dataset("images")["columns.image"][:] == ["mine", None, None]


def test_rows_of_anything_else_are_refused(tmp_path: Path) -> None:
    run = run_of(tmp_path, CLEAN)
    for of in ("anomalies", "", ["images"], 3):
        with pytest.raises(UsageError, match="Rows can be findings or images, not"):
            run.to_pandas(of)  # type: ignore[arg-type]


def test_detections_are_images_and_their_findings(bundled_run: BundledRuns) -> None:
    run = uncanny.DetectRun(bundled_run("detect").path)
    images, findings = run.to_pandas(), run.to_pandas("findings")
    assert [*images.columns][:5] == ["image", "status", "model", "source", "anomalies"]
    for record, (_, row) in zip(run.detections, images.iterrows(), strict=True):
        assert row["verdict"] == record.verdict
        assert (None if row["source"] is pd.NA else row["source"]) == record.source
        # Of an image taken for real nobody asked what is wrong.
        assert (row["anomalies"] is pd.NA) == (record.listing is None)
    found = findings.dropna(subset="finding")
    assert len(found) == sum(len(record.anomalies) for record in run.detections) > 0
    assert set(found["source"]) == {"generated"}


def test_regions_and_images_of_an_artifact_run(tmp_path: Path) -> None:
    run = uncanny.artifacts.run("scenes", model="demo", out=tmp_path, limit=4)
    regions, images = run.to_pandas().dropna(subset="finding"), run.to_pandas("images")
    assert len(regions) == images["regions"].sum() > 0
    assert regions["width"].notna().all()
    assert all(len(box) == 4 for box in regions["box"])
    assert len(images) == len(run.artifacts)
    assert len(run.to_dataset("images")) == len(images)
