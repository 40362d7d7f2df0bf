"""What comes from the environment: an empty variable is as good as none, and so is no empty path."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runs.e2e import check_no_traceback, pictures, uncanny_here
from uncanny.errors import UsageError
from uncanny.settings import Settings, settings


@pytest.fixture(autouse=True)
def _read_anew() -> Iterator[None]:
    settings.cache_clear()
    yield
    settings.cache_clear()


@pytest.mark.parametrize("name", Settings.model_fields)
@pytest.mark.parametrize("value", ["", " "])
def test_an_empty_variable_counts_as_unset(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(f"UNCANNY_{name.upper()}", raising=False)
    unset = Settings()
    monkeypatch.setenv(f"UNCANNY_{name.upper()}", value)
    assert settings() == unset


def test_others_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNCANNY_CACHE_DIR", "/some/where")
    monkeypatch.setenv("UNCANNY_CONCURRENCY", "7")
    assert (settings().cache_dir, settings().concurrency) == (Path("/some/where"), 7)
    settings.cache_clear()
    monkeypatch.setenv("UNCANNY_CONCURRENCY", "many")
    with pytest.raises(UsageError, match="UNCANNY_CONCURRENCY='many'"):
        settings()


def test_an_empty_cache_folder_is_not_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images = pictures(tmp_path / "in", 1)
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    arguments = ("annotate", images, "--model", "noop", "-o", tmp_path / "run", "--no-report")
    assert uncanny_here(*arguments, env={"UNCANNY_CACHE_DIR": ""}).code == 0
    assert list(here.iterdir()) == []
    assert (tmp_path / "run" / "answers").is_dir()


@pytest.mark.parametrize(
    "arguments",
    [
        ("annotate", "", "--model", "noop", "-o", "run"),
        ("annotate", "in", "", "--model", "noop", "-o", "run"),
        ("annotate", "in", "--model", "noop", "-o", ""),
        ("annotate", "in", "--model", "noop", "-o", "run", "--cache-dir="),
        ("detect", "", "--model", "noop", "--dry-run"),
        ("realism", "run", "--original", "", "--edited", "in", "--model", "demo", "--dry-run"),
    ],
)
def test_an_empty_path_is_refused(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script whose variable is unset would work on the current folder, or write into it."""
    pictures(tmp_path / "in", 1)
    monkeypatch.chdir(tmp_path)
    done = uncanny_here(*arguments)
    check_no_traceback(done)
    assert (done.code, done.out) == (2, "")
    assert "is empty" in done.told
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_images_are_read_in_the_folders_named_and_nowhere_else(tmp_path: Path) -> None:
    inside, outside = pictures(tmp_path / "in", 1), pictures(tmp_path / "out", 1)
    (inside / "link.png").symlink_to(next(outside.iterdir()))
    done = uncanny_here(
        *("annotate", inside, "--model", "noop", "-o", tmp_path / "run", "--no-report", "--json"),
        env={"UNCANNY_FOLDERS": f"{inside}:{tmp_path / 'run'}"},
    )
    assert done.code == 1
    assert (done.json()["totals"]["ok"], done.json()["totals"]["unreadable"]) == (1, 1)
    assert "lies in no folder that may be read" in done.out
