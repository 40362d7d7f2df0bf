"""Annotations as Parquet: the same records, one schema, read by every reader of runs and by other tools."""

from __future__ import annotations

import os
import re
import shutil
import time
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import orjson
import pytest

import uncanny
from tests.bundled_runs import BundledRuns
from tests.runs.e2e import pictures, serving_process, start, uncanny_here
from uncanny.annotation.run import AnnotateRun
from uncanny.demo.scenes import scenes
from uncanny.errors import UsageError
from uncanny.eval.common.inputs.table_records import open_lines
from uncanny.records.annotation_table import LINES, TABLE, restore_lines, schema, write_table
from uncanny.schema import Annotation, Detection

FILES = [scene.image_path for scene in scenes()][:4]


def parsed(lines: bytes, kind: type[Annotation] = Annotation) -> list[Annotation]:
    return [kind.model_validate_json(line) for line in lines.splitlines()]


def through_a_table(lines: bytes, folder: Path, kind: type[Annotation] = Annotation) -> bytes:
    (folder / LINES).write_bytes(lines)
    write_table(folder / LINES, folder / TABLE, kind)
    (folder / LINES).unlink()
    restore_lines(folder)
    return (folder / LINES).read_bytes()


def schema_of(table: Path) -> Any:
    return import_module("pyarrow.parquet").read_schema(table)


@pytest.mark.parametrize(("name", "kind"), [("annotate", Annotation), ("detect", Detection)])
def test_records_come_back_as_they_were(
    name: Literal["annotate", "detect"], kind: type[Annotation], bundled_run: BundledRuns, tmp_path: Path
) -> None:
    lines = (bundled_run(name).path / LINES).read_bytes()
    assert lines
    assert parsed(through_a_table(lines, tmp_path, kind), kind) == parsed(lines, kind)


def test_what_no_column_has_a_place_for_is_kept_and_empty_is_not_missing(tmp_path: Path) -> None:
    base = {"sha256": None, "width": None, "height": None, "status": "ok", "model": "m", "prompts": "p"}
    anomaly = {"name": "n", "phenomenon": "p", "reasoning": "r", "severity": 1}
    records: list[dict[str, Any]] = [
        base | {"image": "a", "anomalies": [anomaly | {"mine": [1, {"x": None}]}], "mine": {"y": 1}},
        base | {"image": "b", "objects": [], "extra": "mine too"},
        base | {"image": "c", "anomalies": [anomaly | {"box": [1, 2, 3, 4]}], "candidates": []},
    ]
    lines = b"".join(orjson.dumps(record) + b"\n" for record in records)
    back = through_a_table(lines, tmp_path)
    assert parsed(back) == parsed(lines)
    assert [record.model_fields_set for record in parsed(back)][1] >= {"objects"}
    assert "objects" not in parsed(back)[0].model_fields_set


def test_columns_without_any_value_have_their_types(tmp_path: Path) -> None:
    for name, record in {"a": b"", "b": b'"anomalies": [],'}.items():
        (tmp_path / name).mkdir()
        line = b'{"image": "a", "sha256": null, %s "status": "ok", "model": "m", "prompts": "p"}' % record
        (tmp_path / name / LINES).write_bytes(line + b"\n")
        write_table(tmp_path / name / LINES, tmp_path / name / TABLE, Annotation)
        assert schema_of(tmp_path / name / TABLE).equals(schema(Annotation), check_metadata=True)
    (tmp_path / "a" / LINES).write_bytes(b"")
    write_table(tmp_path / "a" / LINES, tmp_path / "a" / TABLE, Annotation)
    together = import_module("pyarrow.dataset").dataset([str(tmp_path / n / TABLE) for n in "ab"])
    assert together.count_rows() == 1


def test_a_run_keeps_its_table_and_goes_on_from_it_alone(tmp_path: Path) -> None:
    out = tmp_path / "run"
    run = uncanny.annotate(FILES, model="demo", out=out, limit=2, format="parquet")
    assert import_module("pyarrow.parquet").read_metadata(out / TABLE).num_rows == 2
    assert len(run.annotations) == 2
    (out / LINES).unlink()
    run = uncanny.annotate(FILES, model="demo", out=out)  # it has one, and need not be told again
    assert run.end is not None
    assert run.end.progress.resumed == 2
    assert import_module("pyarrow.parquet").read_metadata(out / TABLE).num_rows == 4
    with open_lines(out / TABLE) as lines:
        assert parsed(lines.read()) == list(run.annotations)
    for unknown in ("csv", 3):
        with pytest.raises(UsageError, match="`format` must be"):
            uncanny.annotate(FILES, model="demo", out=out, format=unknown)  # type: ignore[arg-type]


def test_every_reader_takes_a_run_whose_lines_are_gone(tmp_path: Path) -> None:
    out = tmp_path / "run"
    uncanny.annotate(FILES, model="demo", out=out, format="parquet")
    lines = (out / LINES).read_bytes()

    def gone() -> Path:
        (out / LINES).unlink()
        return out

    expected = uncanny.audit({"a": out}).to_json()
    assert uncanny.audit({"a": gone()}).to_json() == expected
    assert uncanny.audit({"a": out / TABLE}).to_json() == expected
    assert len(AnnotateRun(gone()).records) == 4
    assert uncanny.compare(gone(), tmp_path / "run" / TABLE).to_json()["images"]["both"] == 4
    scored = uncanny.semantic.score(gone(), truth="scenes", similarity="chrf", resamples=0)
    assert list(scored.to_json()["predictions"])
    exported = uncanny.export(gone(), to="csv", out=tmp_path / "csv", all=True)
    assert exported is not None
    drafts = len(uncanny.mcq.build(out, out=tmp_path / "drafts.jsonl"))
    assert len(uncanny.mcq.build(gone(), out=tmp_path / "again.jsonl")) == drafts > 0
    assert (out / LINES).read_bytes() == lines
    # In a folder that cannot be written, as this one where the file that is to become the lines cannot.
    (out / f".{LINES}.{os.getpid()}.tmp").mkdir()
    assert uncanny.audit({"a": gone()}).to_json() == expected
    assert len(AnnotateRun(out).records) == 4
    assert uncanny.compare(out, tmp_path / "run" / TABLE).to_json()["images"]["both"] == 4
    scored = uncanny.semantic.score(out, truth="scenes", similarity="chrf", resamples=0)
    assert list(scored.to_json()["predictions"])
    assert uncanny.export(out, to="csv", out=tmp_path / "copied", all=True) is not None
    assert len(uncanny.mcq.build(out, out=tmp_path / "copied.jsonl")) == drafts
    assert uncanny.artifacts.score(out, truth=tmp_path / "run" / TABLE).to_json()
    assert uncanny_here("report", out, "-o", tmp_path / "page.html").code == 0
    assert (tmp_path / "page.html").stat().st_size > 50_000
    assert not (out / LINES).exists()
    alone = shutil.copy(out / TABLE, tmp_path / "alone.parquet")
    assert uncanny.audit({"a": alone}).to_json()["generators"]["a"]["images"] == 4


@pytest.mark.parametrize(
    ("extra", "reason"),
    [("{broken", "column 'extra' contains no JSON: "), ("[1]", "column 'extra' contains no JSON object")],
)
def test_a_table_that_another_program_changed_is_named(extra: str, reason: str, tmp_path: Path) -> None:
    parquet, arrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    rows = arrow.Table.from_pylist([{"image": "a.png", "extra": extra}], schema(Annotation))
    parquet.write_table(rows, tmp_path / TABLE)
    for read in (restore_lines, lambda run: uncanny.semantic.load(run / TABLE)):
        with pytest.raises(UsageError, match="is not a record: " + re.escape(reason)) as refused:
            read(tmp_path)
        assert f"row 1 of {tmp_path / TABLE}" in str(refused.value)
    assert not (tmp_path / LINES).exists()


def test_a_damaged_table_is_not_taken_for_a_full_disk(tmp_path: Path) -> None:
    lines = tmp_path / LINES
    lines.write_text('{"image": "a.png", "model": "' + "x1y2" * 500 + '"}\n')
    write_table(lines, tmp_path / TABLE, Annotation)
    lines.unlink()
    data = bytearray((tmp_path / TABLE).read_bytes())
    data[4:120] = bytes(255 - each for each in data[4:120])
    (tmp_path / TABLE).write_bytes(data)
    with pytest.raises(UsageError, match=r"cannot be made of annotations\.parquet: ") as refused:
        restore_lines(tmp_path)
    assert "TMPDIR" not in str(refused.value)
    assert not lines.exists()


def test_what_is_in_the_way_of_a_table_stays(tmp_path: Path) -> None:
    out = tmp_path / "run"
    uncanny.annotate(FILES, model="demo", out=out, limit=1)
    (out / TABLE).mkdir()
    (out / TABLE / "in the way").touch()
    with pytest.raises(UsageError, match=r"annotations\.parquet is no file"):
        uncanny.annotate(FILES, model="demo", out=out, format="parquet")
    shutil.rmtree(out / TABLE)
    (out / TABLE).write_bytes(b"somebody's export")
    assert not uncanny.annotate(FILES, model="demo", out=out, limit=2).summary.warnings
    (warning,) = uncanny.annotate(FILES, model="demo", out=out, limit=3, format="parquet").summary.warnings
    assert "is not a table of this run, so it was left unchanged" in warning
    assert (out / TABLE).read_bytes() == b"somebody's export"


@pytest.mark.slow
def test_a_kill_loses_no_record_and_the_table_is_made_when_the_run_ends(tmp_path: Path) -> None:
    images, out = pictures(tmp_path / "in", 12), tmp_path / "run"
    with serving_process("--latency-ms", "20") as server:
        command = ["annotate", images, *server.asked(), "--format", "parquet", "-q", "--no-report", "-o", out]
        with start(*command) as process:
            while not (out / LINES).exists() or (out / LINES).read_bytes().count(b"\n") < 3:
                assert process.poll() is None
                time.sleep(0.01)
            process.kill()
            assert process.wait(30) == -9
        killed = parsed(b"".join((out / LINES).read_bytes().splitlines(keepends=True)[:3]))
        assert not (out / TABLE).exists()
        assert uncanny_here(*command).code == 0
    with open_lines(out / TABLE) as lines:
        records = {record.image: record for record in parsed(lines.read())}
    assert len(records) == 12
    assert [records[record.image] for record in killed] == killed


@pytest.mark.slow
def test_other_tools_read_it(tmp_path: Path) -> None:
    import datasets
    import pandas as pd

    out = tmp_path / "run"
    run = uncanny.annotate(FILES, model="demo", out=out, format="parquet")
    frame = pd.read_parquet(out / TABLE)
    assert list(frame["image"]) == [record.image for record in run.annotations]
    assert [len(each) for each in frame["anomalies"]] == [len(each.anomalies) for each in run.annotations]
    own = datasets.Dataset.from_parquet(str(out / TABLE), cache_dir=str(tmp_path / "cache"))
    assert own["status"][:] == ["ok"] * 4
    frame.to_parquet(tmp_path / "again.parquet")  # which knows nothing of our mark
    assert uncanny.audit({"a": tmp_path / "again.parquet"}).to_json()["generators"]["a"]["images"] == 4
    assert len(run.to_dataset()) == len(run.to_pandas())
