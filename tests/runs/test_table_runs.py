"""Runs over pictures in Parquet files: asked, gone on with and shown as runs over folders are."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import uncanny
from uncanny.demo.scenes import scenes
from uncanny.errors import UsageError

FILES = [scene.image_path for scene in scenes()][:4]


def write(path: Path, columns: dict[str, Any]) -> Path:
    pa, pq = import_module("pyarrow"), import_module("pyarrow.parquet")
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, row_group_size=2)
    return path


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    pictures = [{"bytes": file.read_bytes(), "path": file.name} for file in FILES]
    write(tmp_path / "set/data/0.parquet", {"image": [*pictures[:2], None]})
    write(tmp_path / "set/data/1.parquet", {"image": pictures[2:]})
    return tmp_path / "set"


def test_a_run_over_shards_goes_on_where_it_stopped(shards: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    first = uncanny.annotate(shards, model="demo", out=out, limit=2)
    assert [Path(record.image).name for record in first.annotations] == [file.name for file in FILES[:2]]
    run = uncanny.annotate(shards, model="demo", out=out)
    assert run.end is not None
    assert (len(run.annotations), run.end.progress.resumed) == (5, 2)
    by_name = {Path(record.image).name: record for record in run.annotations}
    assert by_name["000002"].status == "unreadable"
    assert "contains no picture (null)" in by_name["000002"].errors[0].message
    folder = uncanny.annotate(FILES, model="demo", out=tmp_path / "files")
    same = {"sha256", "anomalies", "objects", "width", "height", "status", "pixels"}
    for record in folder.annotations:
        row = by_name[Path(record.image).name]
        assert row.model_dump(include=same) == record.model_dump(include=same)
    assert (out / by_name[FILES[0].name].image).parent == out / "../set/data/0.parquet"


@pytest.mark.slow
def test_a_page_shows_pictures_of_rows_and_leads_nowhere(shards: Path, tmp_path: Path) -> None:
    page = uncanny.annotate(shards, model="demo", out=tmp_path / "run").report().read_text()
    assert page.count("data:image/webp") >= len(FILES)
    assert not re.findall(r'href="[^"]*\.parquet', page)  # a browser would find nothing there


def test_detection_artifacts_and_audit_take_them_too(shards: Path, tmp_path: Path) -> None:
    detected = uncanny.detect(shards / "data/1.parquet", model="demo", out=tmp_path / "d")
    assert {record.status for record in detected.detections} == {"ok"}
    located = uncanny.artifacts.run(shards / "data/1.parquet", model="demo", out=tmp_path / "a")
    assert {record.status for record in located.artifacts} == {"ok"}
    audited = uncanny.audit(
        {"file": shards / "data/1.parquet", "folder": shards}, model="demo", out=tmp_path / "audit"
    )
    assert [each["images"] for each in audited.to_json()["generators"].values()] == [2, 4]


def test_a_column_is_named_in_python_as_on_the_command_line(tmp_path: Path) -> None:
    cells = [file.read_bytes() for file in FILES]
    file = write(tmp_path / "pairs.parquet", {"real": cells[:1], "fake": cells[1:2]})
    with pytest.raises(UsageError, match="Pass one with `image_column='real'`"):
        uncanny.annotate(file, model="demo", out=tmp_path / "run")
    run = uncanny.annotate(file, model="demo", out=tmp_path / "run", image_column="fake")
    assert [record.image for record in run.annotations] == ["../pairs.parquet/fake/000000"]
    # The column is in the name, so that a picture is found again without it.
    one = uncanny.annotate_image(tmp_path / "pairs.parquet/fake/000000", model="demo")
    assert one.sha256 == run.annotations[0].sha256


def test_a_run_over_images_beside_tables_is_what_it_was(tmp_path: Path, shards: Path) -> None:
    (shards / "cup.webp").write_bytes(FILES[0].read_bytes())
    run = uncanny.annotate(shards, model="demo", out=tmp_path / "run")
    assert [Path(record.image).name for record in run.annotations] == ["cup.webp"]
