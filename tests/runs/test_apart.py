"""Results are not written among the images that they are about, and nobody is asked before that is said."""

from __future__ import annotations

import shutil
from pathlib import Path

import orjson
import pytest

import uncanny
from tests.runs.e2e import uncanny_here
from uncanny.demo.scenes import scenes
from uncanny.errors import UsageError

IMAGES = [scene.image_path for scene in scenes()[:2]]
AMONG = "contains the images, and results would be written among them"


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for number, file in enumerate(IMAGES):
        shutil.copy(file, folder / f"{number}{file.suffix}")
    return folder


def files(folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in folder.rglob("*")}


@pytest.mark.parametrize("dry", [(), ("--dry-run",)])
@pytest.mark.parametrize("command", [("annotate",), ("detect",), ("artifacts", "run")])
def test_a_run_over_images_is_not_among_them(
    photos: Path, command: tuple[str, ...], dry: tuple[str, ...]
) -> None:
    before = files(photos)
    for given in ((photos,), tuple(photos.iterdir())):
        done = uncanny_here(*command, *given, "-m", "demo", "-o", photos, *dry)
        assert done.code == 2
        assert f"{photos} {AMONG}" in done.err
        assert f"-o {photos / 'uncanny'}" in done.err
        assert files(photos) == before


def test_neither_is_one_in_a_folder_below_a_link_or_another_spelling(photos: Path, tmp_path: Path) -> None:
    below = photos / "below"
    below.mkdir()
    shutil.copy(IMAGES[0], below)
    (tmp_path / "link").symlink_to(photos)
    for out in (below, tmp_path / "link", photos / "below" / ".."):
        with pytest.raises(UsageError, match=AMONG):
            uncanny.annotate(photos, model="demo", out=out)
    assert "run.json" not in files(photos)


def test_a_folder_of_its_own_may_lie_anywhere(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert uncanny.annotate(photos, model="demo", out=photos / "run").summary.state == "finished"
    monkeypatch.chdir(photos)
    assert uncanny.annotate(".", model="demo", out="another").summary.statuses["ok"] == 2


def test_a_run_that_is_there_goes_on(photos: Path, tmp_path: Path) -> None:
    run = uncanny.annotate(photos, model="demo", out=tmp_path / "run", limit=1)
    shutil.copy(run.path / "run.json", photos)
    assert uncanny.annotate(photos, model="demo", out=photos).summary.statuses["ok"] == 2


def test_items_pairs_exports_and_audits_are_not_among_images_either(photos: Path, tmp_path: Path) -> None:
    first, second = sorted(photos.iterdir())
    item = {"id": "a", "image": first.name, "split": "ref_real", "q1": {"answer": "no"}}
    (photos / "items.jsonl").write_bytes(orjson.dumps(item) + b"\n")
    pair = {"id": "a", "original": first.name, "edited": second.name}
    (photos / "pairs.jsonl").write_bytes(orjson.dumps(pair) + b"\n")
    run = uncanny.annotate(photos, model="demo", out=tmp_path / "run")
    before = files(photos)
    for command in (
        ("mcq", "run", photos / "items.jsonl", "-m", "demo"),
        ("mcq", "people", photos / "items.jsonl"),
        ("realism", "run", photos / "pairs.jsonl", "-m", "demo"),
        ("edits", "people", photos / "pairs.jsonl"),
        ("export", run.path, "--all", "--to", "coco"),
        ("audit", f"a={photos}", "-m", "demo"),
    ):
        done = uncanny_here(*command, "-o", photos)
        assert (done.code, AMONG in done.err) == (2, True), (command, done.err)
        assert files(photos) == before, command
    assert uncanny_here("export", run.path, "--all", "--to", "csv", "-o", photos / "a.csv").code == 0
