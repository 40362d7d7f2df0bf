"""Columns of tables and metadata files reach the records of a run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import orjson
import pytest

import uncanny
from tests.runs.test_table_runs import write
from uncanny.demo.scenes import scenes
from uncanny.errors import UsageError

FILES = [scene.image_path for scene in scenes()][:3]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    pictures = [{"bytes": file.read_bytes(), "path": file.name} for file in FILES]
    columns: dict[str, Any] = {
        "image": pictures,
        "prompt_id": ["p1", "p1", None],
        "seed": [7, 8, 9],
        "score": [0.5, float("nan"), float("inf")],
        "flag": [True, False, None],
        "tags": [["a"], [], ["b"]],
    }
    return write(tmp_path / "set.parquet", columns)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    target = tmp_path / "photos"
    (target / "inner").mkdir(parents=True)
    shutil.copy(FILES[0], target)
    shutil.copy(FILES[1], target / "inner")
    return target


def cells(run: uncanny.AnnotateRun) -> dict[str, Any]:
    return {Path(record.image).name: record.model_extra or {} for record in run.annotations}


def test_columns_and_numbers_of_rows_reach_the_records(table: Path, tmp_path: Path) -> None:
    run = uncanny.annotate(table, model="noop", out=tmp_path / "run")
    assert [(each["row"], each["columns"]) for each in cells(run).values()] == [
        (0, {"prompt_id": "p1", "seed": 7, "score": 0.5, "flag": True}),
        (1, {"prompt_id": "p1", "seed": 8, "flag": False}),
        (2, {"seed": 9}),
    ]


def test_some_columns_may_be_asked_for(table: Path, tmp_path: Path) -> None:
    run = uncanny.annotate(table, model="noop", out=tmp_path / "run", columns=["seed"])
    assert [each["columns"] for each in cells(run).values()] == [{"seed": 7}, {"seed": 8}, {"seed": 9}]


def test_a_column_that_no_image_has_is_refused_before_anything_is_asked(table: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No image has the column 'promt_id'") as refusal:
        uncanny.annotate(table, model="noop", out=tmp_path / "run", columns=["seed", "promt_id"])
    assert "'prompt_id'" in str(refusal.value.remedy)
    assert not (tmp_path / "run" / "annotations.jsonl").exists()
    with pytest.raises(UsageError, match="No image has the column"):
        uncanny.annotate(FILES[0], model="noop", out=tmp_path / "other", columns=["seed"])


@pytest.mark.parametrize("name", ["metadata.csv", "metadata.jsonl", "metadata.parquet"])
def test_a_folder_of_images_has_its_columns_in_a_metadata_file(
    folder: Path, tmp_path: Path, name: str
) -> None:
    lines: list[dict[str, Any]] = [
        {"file_name": FILES[0].name, "prompt": "a, b", "pair": "1"},
        {"file_name": f"inner/{FILES[1].name}", "prompt": "c", "pair": None},
    ]
    if name.endswith(".csv"):
        (folder / name).write_text(
            "file_name,prompt,pair\n"
            + "".join(f'{e["file_name"]},"{e["prompt"]}",{e["pair"] or ""}\n' for e in lines)
        )
    elif name.endswith(".jsonl"):
        (folder / name).write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    else:
        write(folder / name, {key: [line[key] for line in lines] for key in lines[0]})
    run = uncanny.annotate(folder, model="noop", out=tmp_path / "run")
    found = cells(run)
    assert found[FILES[0].name]["columns"] == {"prompt": "a, b", "pair": "1"}
    assert found[FILES[1].name]["columns"] == {"prompt": "c"}
    assert run.end is not None
    assert not run.end.progress.skipped  # a metadata file is no input that was passed over


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        ("file_name,pair\na.png,1,2\n", "line 2 has 3 cells, and the header has 2"),
        ('file_name,pair\n"a.png,1\n', "line 2 is not CSV"),
        (b"file_name\n\xff\n", "is not UTF-8"),
    ],
)
def test_a_metadata_file_that_cannot_be_read_is_named_and_costs_nothing(
    folder: Path, tmp_path: Path, content: str | bytes, wrong: str
) -> None:
    (folder / "metadata.csv").write_bytes(content.encode() if isinstance(content, str) else content)
    run = uncanny.annotate(folder, model="noop", out=tmp_path / "run")
    (warning,) = run.summary.warnings
    assert wrong in warning
    assert run.summary.statuses["ok"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("place", [".", "inner"])
def test_records_keep_their_columns_while_a_metadata_file_cannot_be_read(
    folder: Path, tmp_path: Path, place: str
) -> None:
    name, other = FILES[0].name, f"inner/{FILES[1].name}"
    good = f"file_name,pair\n{name},1\n{other},2\n"
    (folder / "metadata.csv").write_text(good)
    uncanny.annotate(folder, model="noop", out=tmp_path / "run")
    (folder / place / "metadata.csv").write_text(good.replace("2\n", "2,\n"))
    run = uncanny.annotate(folder, model="noop", out=tmp_path / "run")
    (warning,) = run.summary.warnings
    assert "line 3 has 3 cells" in warning
    assert [each["columns"] for each in cells(run).values()] == [{"pair": "1"}, {"pair": "2"}]

    shutil.copy(FILES[2], folder / other)  # another picture under the same name
    run = uncanny.annotate(folder, model="noop", out=tmp_path / "run")
    assert [each["columns"] for each in cells(run).values()] == [{"pair": "1"}, {"pair": "2"}]

    (folder / place / "metadata.csv").write_text(f"file_name,pair\n{name},3\n{FILES[1].name},3\n")
    run = uncanny.annotate(folder, model="noop", out=tmp_path / "run")
    found = [each.get("columns") for each in cells(run).values()]
    assert found == ([{"pair": "3"}, None] if place == "." else [{"pair": "1"}, {"pair": "3"}])


def test_a_column_that_is_asked_for_and_cannot_be_read_is_refused_with_the_reason(
    folder: Path, tmp_path: Path
) -> None:
    (folder / "metadata.csv").write_text("file_name,pair\na.png,1,2\n")
    with pytest.raises(UsageError, match="No image has the column 'pair'") as refusal:
        uncanny.annotate(folder, model="noop", out=tmp_path / "run", columns=["pair"])
    assert "line 2 has 3 cells" in str(refusal.value.remedy)


def test_whole_numbers_of_a_metadata_file_keep_all_digits(folder: Path, tmp_path: Path) -> None:
    values = {"largest": 2**63 - 1, "seed": 123456789012345678901234567890, "negative": -(2**64)}
    (folder / "metadata.jsonl").write_text(json.dumps({"file_name": FILES[0].name, **values}) + "\n")
    run = uncanny.annotate(folder, model="noop", out=tmp_path / "run")
    assert cells(run)[FILES[0].name]["columns"] == {
        "largest": 2**63 - 1,
        "seed": "123456789012345678901234567890",
        "negative": str(-(2**64)),
    }


def test_metadata_of_something_else_is_left_alone(folder: Path, tmp_path: Path) -> None:
    (folder / "metadata.jsonl").write_text('{"version": 3}\n')
    run = uncanny.annotate(folder, model="noop", out=tmp_path / "run")
    assert run.summary.warnings == ()
    assert all("columns" not in each for each in cells(run).values())


def test_metadata_that_comes_later_reaches_the_records_without_a_call(folder: Path, tmp_path: Path) -> None:
    before = uncanny.annotate(folder, model="noop", out=tmp_path / "run")
    (folder / "metadata.csv").write_text(f"file_name,pair\n{FILES[0].name},1\n")
    run = uncanny.annotate(folder, model="noop", out=tmp_path / "run")
    assert cells(run)[FILES[0].name]["columns"] == {"pair": "1"}
    assert run.summary.calls == before.summary.calls
    (folder / "metadata.csv").unlink()
    run = uncanny.annotate(folder, model="noop", out=tmp_path / "run")
    assert "columns" not in cells(run)[FILES[0].name]


def test_duplicates_have_their_own_columns(tmp_path: Path) -> None:
    pictures = [{"bytes": FILES[0].read_bytes(), "path": f"{n}.png"} for n in range(2)]
    table = write(tmp_path / "set.parquet", {"image": pictures, "seed": [1, 2]})
    run = uncanny.annotate(table, model="noop", out=tmp_path / "run")
    assert {each["columns"]["seed"] for each in cells(run).values()} == {1, 2}
    assert {each["row"] for each in cells(run).values()} == {0, 1}


def test_columns_reach_detection_and_artifacts_too(table: Path, tmp_path: Path) -> None:
    detected = uncanny.detect(table, model="demo", out=tmp_path / "detect")
    assert cells(detected)[FILES[0].name]["columns"]["prompt_id"] == "p1"
    located = uncanny.artifacts.run(table, model="demo", out=tmp_path / "artifacts")
    assert (located.records[0].model_extra or {})["columns"]["prompt_id"] == "p1"
