"""Which images a run has and what they are called."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.runs.e2e import pictures
from uncanny.errors import UsageError
from uncanny.runs import inputs
from uncanny.runs.inputs import Inputs, find_inputs, sample_sizes


@pytest.fixture
def data(tmp_path: Path) -> Path:
    pictures(tmp_path / "data", 3)
    pictures(tmp_path / "data" / "deep", 1)
    (tmp_path / "data" / "notes.txt").write_text("x")
    return tmp_path / "data"


def names(found: Inputs) -> list[str]:
    return [file.image for file in found.files]


def test_names_are_relative_to_the_run_and_sorted(data: Path, tmp_path: Path) -> None:
    found = find_inputs([data], run=tmp_path / "runs" / "a")
    assert names(found) == [
        "../../data/deep/p00.png",
        "../../data/p00.png",
        "../../data/p01.png",
        "../../data/p02.png",
    ]
    assert all(
        (tmp_path / "runs" / "a" / file.image).resolve() == file.path.resolve() for file in found.files
    )


def test_names_are_relative_to_the_root_where_there_is_one(data: Path, tmp_path: Path) -> None:
    found = find_inputs([data], run=tmp_path / "run", root=data)
    assert names(found) == ["deep/p00.png", "p00.png", "p01.png", "p02.png"]


def test_the_working_directory_does_not_matter(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = find_inputs([data], run=tmp_path / "run")
    monkeypatch.chdir(data)
    assert names(find_inputs([Path()], run=Path("../run"))) == names(whole)


def test_an_image_named_twice_is_there_once(data: Path, tmp_path: Path) -> None:
    found = find_inputs([data / "p01.png", data, data / "p01.png"], run=tmp_path / "run")
    assert len(found.files) == 4


def test_the_limit_takes_the_first_by_name(data: Path, tmp_path: Path) -> None:
    whole = names(find_inputs([data], run=tmp_path / "run"))
    assert names(find_inputs([data], run=tmp_path / "run", limit=2)) == whole[:2]
    assert names(find_inputs([data], run=tmp_path / "run", limit=99)) == whole


def test_no_images_is_explained(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"No images in .*empty"):
        find_inputs([tmp_path / "empty"], run=tmp_path / "run")


def test_a_path_that_is_not_there_is_explained(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere"):
        find_inputs([tmp_path / "nowhere"], run=tmp_path / "run")


@pytest.mark.skipif(os.name == "nt", reason="names of that kind cannot be made there")
def test_names_are_unique_whatever_bytes_they_are_made_of(tmp_path: Path) -> None:
    picture = (pictures(tmp_path / "one", 1) / "p00.png").read_bytes()
    folder = tmp_path / "data"
    folder.mkdir()
    for name in (b"\\xff.png", b"\xff.png", b"\\x5cxff.png", b"\\xFF.png"):
        try:
            Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_bytes(picture)
        except OSError:
            pytest.skip("the file system takes UTF-8 names only")
    found = names(find_inputs([folder], run=tmp_path / "run", root=folder))
    assert sorted(found) == [r"\x5cx5cxff.png", r"\x5cxff.png", r"\xFF.png", r"\xff.png"]


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="needs links")
def test_what_lies_above_a_link_s_target_is_named_from_there(data: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "link").symlink_to(data / "deep")
    above = tmp_path / "other" / "link" / ".."
    found = find_inputs([above], run=tmp_path / "run")
    assert names(found) == names(find_inputs([data], run=tmp_path / "run"))


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="needs links")
def test_a_link_keeps_its_own_name(data: Path, tmp_path: Path) -> None:
    (tmp_path / "linked.png").symlink_to(data / "p00.png")
    assert names(find_inputs([tmp_path / "linked.png"], run=tmp_path / "run")) == ["../linked.png"]


def test_sizes_are_not_looked_at_for_long(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where images are behind URLs that do not answer."""
    files = find_inputs([data], run=tmp_path / "run").files
    assert sample_sizes(files) == ([(32, 24)] * 4, 0)
    monkeypatch.setattr(inputs, "OPENING_S", 0.0)
    assert sample_sizes(files) == ([(32, 24)], 0)
    files[0].path.write_bytes(b"")
    assert sample_sizes(files) == ([], 4)
