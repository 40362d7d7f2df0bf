"""A run's records as a sequence: those of the moment, whatever happens to the file."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import pytest

import uncanny
from uncanny.demo.scenes import scenes
from uncanny.errors import RecordError, StorageError
from uncanny.eval.common.run_result import Records
from uncanny.schema import Annotation

IMAGES = [scene.image_path for scene in scenes()[:4]]


def test_records_stay_those_they_were_when_the_run_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    names = [f"{letter}.png" for letter in "abcd"]
    for name, image in zip(names[2:], IMAGES[2:], strict=True):
        shutil.copy(image, folder / name)
    records = uncanny.detect(folder, model="demo", out=tmp_path / "run").detections
    before = list(records)
    for name, image in zip(names[:2], IMAGES[:2], strict=True):
        shutil.copy(image, folder / name)
    run = uncanny.detect(folder, model="demo", out=tmp_path / "run")
    assert list(records) == [records[0], records[1]] == before
    assert len(run.detections) == 4
    # Another process opens the file as it is by then.
    assert list(pickle.loads(pickle.dumps(records))) == list(run.detections)
    shutil.rmtree(tmp_path / "run")
    assert list(records) == before


def test_a_file_is_indexed_again_only_after_it_changed(tmp_path: Path) -> None:
    uncanny.detect(IMAGES, model="demo", out=tmp_path)
    run = uncanny.DetectRun(tmp_path)
    records = run.detections
    whole = list(records)
    assert [run.annotations[number] for number in range(len(IMAGES))] == whole
    assert run.detections is run.annotations is records
    file = tmp_path / "annotations.jsonl"
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[1:]))
    assert list(run.detections) == whole[1:]
    file.unlink()
    assert list(run.detections) == []
    assert run.detections is run.annotations
    assert list(pickle.loads(pickle.dumps(run)).annotations) == []


def test_a_line_whose_key_is_no_text_is_an_invalid_record(tmp_path: Path) -> None:
    file = tmp_path / "annotations.jsonl"
    file.write_text('{"image": ["x"]}\n{"image": 1}\nnull\n')
    records = Records(file, Annotation, ("image",))
    assert len(records) == 3
    for number in range(3):
        with pytest.raises(RecordError, match=f"annotations.jsonl:{number + 1}"):
            records[number]


def test_there_are_no_records_without_a_file(tmp_path: Path) -> None:
    records = Records(tmp_path / "gone.jsonl", Annotation, ("image",))
    assert (len(records), list(records), records[:2]) == (0, [], [])
    with pytest.raises(IndexError):
        records[0]


def test_a_run_whose_folder_was_moved_away_says_so_and_keeps_its_end(tmp_path: Path) -> None:
    folder, seen = tmp_path / "run", list[str]()

    def on_record(record: uncanny.Detection) -> None:
        seen.append(record.image)
        if len(seen) == len(IMAGES):
            folder.rename(tmp_path / "moved")

    run = uncanny.detect(IMAGES, model="demo", out=folder, on_record=on_record, concurrency=1)
    assert (run.summary.lost, run.summary.unwritten) == (True, (folder / "run.json",))
    assert run.summary.state == run.manifest.state == "finished"
    assert run.summary.statuses["ok"] == len(IMAGES)
    for read in (lambda: run.records, lambda: run.detections, run.to_json, run.report):
        with pytest.raises(StorageError, match="was deleted or moved"):
            read()
    assert "finished" in str(run)
    assert len(uncanny.DetectRun(tmp_path / "moved").detections) == len(IMAGES)
