"""The service as a whole: its folders, and what is left of jobs that are gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from uncanny.errors import NotFoundError, UsageError
from uncanny.service import is_id, new_id
from uncanny.service.service import Service


def test_folders_of_deleted_jobs_are_swept_away_and_others_stay(tmp_path: Path) -> None:
    with Service.open(tmp_path / "data") as service:
        kept, gone = service.jobs.submit("annotate", {}, by="ann").id, new_id("job")
        others = tmp_path / "data" / "jobs" / "notes"
        for folder in (service.job_folder(kept), service.job_folder(gone), others):
            (folder / "run").mkdir(parents=True)
        service.sweep()
        assert service.job_folder(kept).is_dir()
        assert others.is_dir()
        assert not service.job_folder(gone).exists()


@pytest.mark.parametrize("job_id", ["", "..", "../..", "job_..", "job_" + "a" * 19 + "/", "set_" + "a" * 20])
def test_no_path_is_made_of_what_is_no_id(tmp_path: Path, job_id: str) -> None:
    with Service.open(tmp_path) as service, pytest.raises(NotFoundError):
        service.job_folder(job_id)


def test_ids_are_random_and_fit_for_paths() -> None:
    ids = {new_id("job") for _ in range(1000)}
    assert len(ids) == 1000
    assert all(is_id(each, "job") and not is_id(each, "set") for each in ids)


def test_a_root_that_is_named_twice_is_one(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "link").symlink_to("photos")
    with Service.open(tmp_path / "data", roots=[tmp_path / "link", tmp_path / "photos"]) as service:
        assert dict(service.roots) == {"photos": (tmp_path / "photos").resolve()}


def test_a_root_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a folder"):
        Service.open(tmp_path / "data", roots=[tmp_path / "missing"])
    (tmp_path / "a:b").mkdir()
    with pytest.raises(UsageError, match="has ':' in its path"):
        Service.open(tmp_path / "data", roots=[tmp_path / "a:b"])
    # A service that could not be opened keeps nobody out.
    Service.open(tmp_path / "data").close()


def test_a_data_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(
        UsageError, match=r"cannot be used: .+\. Pass a folder that can be written to \(`data`\)"
    ):
        Service.open(tmp_path / "file" / "data")


@pytest.mark.parametrize("name", ["run.json", "annotations.jsonl"])
def test_no_service_is_kept_in_the_folder_of_a_run(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(UsageError, match=r"is the folder of a run\. Pass a folder of the service's own"):
        Service.open(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == [name]
