"""The source of an image by its folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from uncanny.eval.detect.data import FOLDERS, folder_source


@pytest.mark.parametrize(
    ("path", "file", "source"),
    [
        ("set", "set/real/a.png", "real"),
        ("set", "set/generated/a.png", "generated"),
        ("set", "set/Fake/deep/down/a.png", "generated"),
        ("set", "set/cats/0_real/a.png", "real"),
        ("set", "set/cats/1_fake/a.png", "generated"),
        ("set/real", "set/real/a.png", "real"),
        ("set/synthetic", "set/synthetic/x/a.png", "generated"),
        ("set/real/a.png", "set/real/a.png", "real"),
        ("set", "set/a.png", None),
        ("set", "set/realistic/a.png", None),
        ("set", "set/real.png", None),
        ("set", "set/real/old/fake/a.png", None),
        ("set", "set/generated/fake/a.png", "generated"),
        ("real/set", "real/set/a.png", None),
    ],
)
def test_folders_say_what_they_say(path: str, file: str, source: str | None) -> None:
    assert folder_source(Path(file), [Path("elsewhere"), Path(path)]) == source


def test_a_folder_named_by_a_dot_counts_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    monkeypatch.chdir(tmp_path / "real")
    assert folder_source(Path("a.png"), [Path()]) == "real"
    assert folder_source(Path("a.png"), [Path("a.png")]) == "real"


def test_every_name_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "detect.md").read_text(encoding="utf-8")
    assert all(f"`{name}/`" in page for name in FOLDERS)
