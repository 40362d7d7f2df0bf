"""What of a run is still to be done."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from tests.runs.scripted_run import image_files, record, records_of
from uncanny.annotation.run import AnnotateTask
from uncanny.images.discover import SkippedInputs
from uncanny.models.registry import ModelOptions, parse_model
from uncanny.records.record_file import RecordFile
from uncanny.records.run_folder import RunFolder
from uncanny.runs.inputs import ImageFile, ImageFiles, Inputs
from uncanny.runs.parameters import RunOptions
from uncanny.runs.progress import Progress
from uncanny.runs.task import Stock
from uncanny.schema import Annotation

ANOMALY = {"name": "odd", "phenomenon": "x", "reasoning": "x", "severity": 1}


@pytest.fixture
def files(tmp_path: Path) -> list[ImageFile]:
    return image_files(tmp_path / "in", 3)


def taken_up(
    files: list[ImageFile], path: Path, *records: Annotation, **options: Any
) -> tuple[Stock[ImageFile], Progress]:
    records_of(path / "annotations.jsonl", *records).close()
    progress = Progress(total=len(files))
    file = RecordFile(path / "annotations.jsonl", Annotation, lambda one: one.image)
    task = AnnotateTask(
        folder=RunFolder(path),
        paths=(path / "in",),
        models=ModelOptions(parse_model("noop")),
        options=RunOptions(**options),
    )
    try:
        return task.stock_of_images(Inputs(ImageFiles(files), SkippedInputs()), file, progress), progress
    finally:
        file.close()


def pending(standing: Stock[ImageFile]) -> list[str]:
    return list(standing.pending)


def by_digest(standing: Stock[ImageFile]) -> dict[str, str]:
    return {each.sha256: image for image, each in standing.records.items() if each.sha256}


def digest(file: ImageFile) -> str:
    return hashlib.sha256(file.path.read_bytes()).hexdigest()


def about(file: ImageFile, **changes: Any) -> Annotation:
    """A record of the file as it is."""
    return record(file.image, **{"sha256": digest(file), **changes})


def test_without_records_all_is_to_be_done(files: list[ImageFile], tmp_path: Path) -> None:
    standing, progress = taken_up(files, tmp_path)
    assert pending(standing) == ["p00.png", "p01.png", "p02.png"]
    assert (progress.done, progress.resumed, by_digest(standing)) == (0, 0, {})


def test_finished_images_stand_and_are_counted(files: list[ImageFile], tmp_path: Path) -> None:
    first = about(files[0], anomalies=[ANOMALY, ANOMALY])
    copy = about(files[1], duplicate_of="p00.png", pixels=_pixels())
    standing, progress = taken_up(files, tmp_path, first, copy)
    assert pending(standing) == ["p02.png"]
    assert (progress.done, progress.resumed, progress.items_found, progress.duplicates) == (2, 2, 2, 1)
    assert progress.pixel_changes == {"downscale": 1, "icc": 1}
    assert by_digest(standing) == {digest(files[0]): "p00.png", digest(files[1]): "p01.png"}


def _pixels() -> dict[str, Any]:
    return {"format": "PNG", "bytes": 9, "changes": ["downscale:9x9->4x4", "icc:dropped"]}


@pytest.mark.parametrize("status", ["partial", "failed", "unreadable"])
def test_what_failed_is_tried_again_unless_unwanted(
    files: list[ImageFile], tmp_path: Path, status: str
) -> None:
    standing, progress = taken_up(files, tmp_path, about(files[1], status=status))
    assert "p01.png" in pending(standing)
    assert (progress.done, by_digest(standing)) == (0, {})
    kept, progress = taken_up(files, tmp_path, about(files[1], status=status), retry_failed=False)
    assert pending(kept) == ["p00.png", "p02.png"]
    assert progress.statuses == {status: 1}


@pytest.mark.parametrize(("statuses", "stands"), [(("failed", "ok"), True), (("ok", "failed"), False)])
def test_of_several_records_the_last_counts(
    files: list[ImageFile], tmp_path: Path, statuses: tuple[str, str], stands: bool
) -> None:
    rows = [about(files[1], status=status, anomalies=[ANOMALY]) for status in statuses]
    standing, progress = taken_up(files, tmp_path, *rows)
    assert ("p01.png" not in pending(standing)) == stands
    assert (progress.done, progress.items_found) == (int(stands), int(stands))


def test_records_of_images_that_another_session_was_given_belong_to_the_run(
    files: list[ImageFile], tmp_path: Path
) -> None:
    standing, progress = taken_up(files, tmp_path, record("elsewhere.png"))
    assert len(standing.pending) == 3
    assert (progress.done, progress.total) == (1, 4)
    assert records_of(tmp_path / "annotations.jsonl").get("elsewhere.png").status == "ok"


@pytest.mark.parametrize("moment", [1.0, 2_000_000_000.0, 4_000_000_000.0])
@pytest.mark.parametrize("same_bytes", [False, True])
def test_a_file_that_changed_is_done_again_however_old_it_looks(
    files: list[ImageFile], tmp_path: Path, moment: float, same_bytes: bool
) -> None:
    before = about(files[1])
    if not same_bytes:
        files[1].path.write_bytes(files[0].path.read_bytes())
    os.utime(files[1].path, (moment, moment))
    standing, progress = taken_up(files, tmp_path, before)
    assert ("p01.png" not in pending(standing)) == same_bytes
    assert (progress.done, len(by_digest(standing))) == (int(same_bytes), int(same_bytes))


@pytest.mark.parametrize("status", ["failed", "ok"])
def test_a_file_that_changed_is_done_again_also_where_failures_are_kept(
    files: list[ImageFile], tmp_path: Path, status: str
) -> None:
    standing, _ = taken_up(files, tmp_path, record("p01.png", status=status), retry_failed=False)
    assert "p01.png" in pending(standing)


def test_a_file_that_went_away_keeps_its_record(files: list[ImageFile], tmp_path: Path) -> None:
    before = about(files[1])
    files[1].path.unlink()
    standing, _ = taken_up(files, tmp_path, before)
    assert "p01.png" not in pending(standing)
