"""Which records belong to a run: one answer in what a call returns, in its folder, and in every score."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import orjson
import pytest

import uncanny
from tests.runs.test_table_runs import write
from uncanny.demo.scenes import scenes
from uncanny.eval.mcq.data.load import copy_scenes
from uncanny.eval.realism.data import scene_pairs

FILES = [scene.image_path for scene in scenes()][:4]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    target = tmp_path / "photos"
    target.mkdir()
    for file in FILES[:3]:
        shutil.copy(file, target)
    return target


def lines(path: Path) -> list[dict[str, object]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


def names(run: Sequence[uncanny.Annotation]) -> list[str]:
    return [Path(record.image).name for record in run]


def counted_everywhere(run: uncanny.AnnotateRun) -> set[int]:
    """How many images there are, by every way to ask."""
    audit = uncanny.audit({"own": run.path}, model="demo")
    totals = run.manifest.totals
    assert totals is not None
    assert totals.model_extra is not None
    return {
        len(run.annotations),
        len(uncanny.AnnotateRun(run.path).annotations),
        len(lines(run.path / "annotations.jsonl")),
        sum(run.summary.statuses.values()),
        totals.model_dump()["images"],
        audit.leaderboard.generators["own"].images,
        len(run.to_pandas().image.unique()),
    }


def test_a_record_leaves_the_run_with_its_image_and_is_kept_aside(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    before = uncanny.annotate(folder, model="demo", out=out)
    assert counted_everywhere(before) == {3}
    (folder / FILES[1].name).unlink()
    run = uncanny.annotate(folder, model="demo", out=out)
    assert counted_everywhere(run) == {2}
    assert names(run.annotations) == [FILES[0].name, FILES[2].name]
    assert [Path(str(line["image"])).name for line in lines(out / "removed.jsonl")] == [FILES[1].name]
    (warning,) = run.summary.warnings
    assert FILES[1].name in warning
    assert "removed.jsonl" in warning
    assert "keep_missing" in warning
    # What it cost stays counted, and its calls stay on record.
    assert run.summary.calls == before.summary.calls == len(lines(out / "calls.jsonl"))
    again = uncanny.annotate(folder, model="demo", out=out)
    assert again.summary.warnings == ()
    assert counted_everywhere(again) == {2}
    assert len(lines(out / "calls.jsonl")) == before.summary.calls


def test_an_image_that_comes_back_costs_nothing(folder: Path, tmp_path: Path) -> None:
    out, file = tmp_path / "run", folder / FILES[1].name
    before = uncanny.annotate(folder, model="demo", out=out)
    file.unlink()
    uncanny.annotate(folder, model="demo", out=out)
    shutil.copy(FILES[1], folder)
    run = uncanny.annotate(folder, model="demo", out=out)
    assert counted_everywhere(run) == {3}
    assert run.summary.calls == before.summary.calls


def test_records_of_missing_images_stay_where_that_is_asked_for(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    uncanny.annotate(folder, model="demo", out=out)
    (folder / FILES[1].name).unlink()
    run = uncanny.annotate(folder, model="demo", out=out, keep_missing=True)
    assert counted_everywhere(run) == {3}
    assert not (out / "removed.jsonl").exists()
    assert run.summary.warnings == ()


def test_images_beyond_the_limit_of_a_session_belong_to_the_run(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    uncanny.annotate(folder, model="demo", out=out)
    run = uncanny.annotate(folder, model="demo", out=out, limit=1)
    assert counted_everywhere(run) == {3}
    assert run.summary.state == "finished"


def test_images_of_several_folders_may_come_one_after_the_other(folder: Path, tmp_path: Path) -> None:
    out, other = tmp_path / "run", tmp_path / "more"
    other.mkdir()
    shutil.copy(FILES[3], other)
    uncanny.annotate(folder, model="demo", out=out)
    run = uncanny.annotate(other, model="demo", out=out)
    assert counted_everywhere(run) == {4}


def test_rows_that_left_their_table_leave_the_run(tmp_path: Path) -> None:
    pictures = [{"bytes": file.read_bytes(), "path": file.name} for file in FILES[:3]]
    table, out = write(tmp_path / "set.parquet", {"image": pictures}), tmp_path / "run"
    uncanny.annotate(table, model="demo", out=out)
    write(table, {"image": pictures[1:]})
    run = uncanny.annotate(table, model="demo", out=out)
    assert counted_everywhere(run) == {2}
    assert names(run.annotations) == [file.name for file in FILES[1:3]]


def test_a_table_that_cannot_be_read_for_now_costs_no_record(tmp_path: Path) -> None:
    shards, out = tmp_path / "set", tmp_path / "run"
    pictures = [{"bytes": file.read_bytes(), "path": file.name} for file in FILES[:3]]
    table = write(shards / "0.parquet", {"image": pictures})
    uncanny.annotate(shards, model="demo", out=out)
    table.write_bytes(table.read_bytes()[:100])
    run = uncanny.annotate(shards, model="demo", out=out)
    assert run.summary.statuses == {"ok": 3, "partial": 0, "failed": 0, "unreadable": 1}


def test_a_folder_that_cannot_be_read_for_now_costs_no_record(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner, out = folder / "inner", tmp_path / "run"
    inner.mkdir()
    shutil.move(folder / FILES[0].name, inner)
    uncanny.annotate(folder, model="demo", out=out)
    import os

    scandir = os.scandir

    def closed(path: str) -> object:
        if Path(path) == inner:
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", closed)  # root may read whatever the mode says
    run = uncanny.annotate(folder, model="demo", out=out)
    assert sum(run.summary.statuses.values()) == 3
    assert not (out / "removed.jsonl").exists()


@pytest.mark.parametrize("keep", [False, True])
def test_a_pair_that_left_its_file_leaves_the_run(tmp_path: Path, keep: bool) -> None:
    pairs, out = tmp_path / "pairs.jsonl", tmp_path / "run"
    sides = [{"original": str(each.original), "edited": str(each.edited)} for each in scene_pairs()]
    both = [orjson.dumps({"id": str(n), **sides[n]}) + b"\n" for n in range(2)]
    pairs.write_bytes(b"".join(both))
    uncanny.realism.run(pairs, model="demo", out=out)
    pairs.write_bytes(both[0])
    run = uncanny.realism.run(pairs, model="demo", out=out, keep_missing=keep)
    assert [verdict.id for verdict in run.records] == (["0", "1"] if keep else ["0"])
    assert len(lines(out / "removed.jsonl")) == (0 if keep else 1)
    assert uncanny.realism.score(out).to_json()["n"] == 1 + keep


def test_pairs_of_a_program_stay_in_the_run(tmp_path: Path) -> None:
    """A program may hand over its pairs bit by bit."""
    first, second = list(scene_pairs())[:2]
    uncanny.realism.run([first], model="demo", out=tmp_path)
    run = uncanny.realism.run([second], model="demo", out=tmp_path)
    assert {verdict.id for verdict in run.records} == {first.id, second.id}


def test_questions_of_an_item_that_was_removed_leave_the_run(tmp_path: Path) -> None:
    copy_scenes(tmp_path / "set")
    items, out = tmp_path / "set/items.jsonl", tmp_path / "run"
    content = items.read_bytes().splitlines(keepends=True)
    items.write_bytes(b"".join(content[:3]))
    answers = len(uncanny.mcq.run(items, model="demo", out=out).records)
    items.write_bytes(b"".join(content[:2]))
    run = uncanny.mcq.run(items, model="demo", out=out)
    left = {str(orjson.loads(line)["id"]) for line in content[:2]}
    assert {answer.id for answer in run.records} == left
    assert len(run.records) + len(lines(out / "removed.jsonl")) == answers
    assert sum(run.summary.statuses.values()) == len(run.records)


def test_detection_counts_the_records_of_the_run(tmp_path: Path) -> None:
    photos, out = tmp_path / "photos", tmp_path / "run"
    for source, file in zip(("real", "generated", "generated"), FILES, strict=False):
        (photos / source).mkdir(parents=True, exist_ok=True)
        shutil.copy(file, photos / source)
    uncanny.detect(photos, model="demo", out=out)
    next((photos / "generated").iterdir()).unlink()
    run = uncanny.detect(photos, model="demo", out=out)
    assert run.score().to_json() == uncanny.DetectRun(out).score().to_json()
    assert len(run.detections) == 2
