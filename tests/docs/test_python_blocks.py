"""Python on the pages runs as it stands: block after block, in a folder with three of the bundled images."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import uncanny
from uncanny.demo.scenes import scenes
from uncanny.models import registry

DOCS = Path(__file__).parents[2] / "docs"
PHOTOS = {"cup.webp": "r01-cup-on-saucer", "hand.png": "d01-six-fingers", "table.jpg": "r04-table-three-legs"}
NOT_RUN = "# run: no"
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_REGISTERED", {})
    (tmp_path / "photos").mkdir()
    images = {scene.image_path.stem: scene.image_path for scene in scenes()}
    for name, stem in PHOTOS.items():
        shutil.copy(images[stem], tmp_path / "photos" / name)
    return tmp_path


def run_blocks(page: str) -> dict[str, Any]:
    """Run all blocks of a page, and return the names they leave."""
    text = (DOCS / page).read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": page}
    blocks = [match for match in _BLOCK.finditer(text) if NOT_RUN not in match[1]]
    assert blocks
    for block in blocks:
        line = text.count("\n", 0, block.start()) + 1
        exec(compile("\n" * line + block[1], str(DOCS / page), "exec"), names)
    return names


@pytest.mark.slow
@pytest.mark.parametrize("page", ["python.md", "embed.md", "extend.md", "stress.md"])
def test_every_block_runs(page: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_blocks(page)
    assert "Traceback" not in capsys.readouterr().err
    assert [each.name for each in folder.iterdir()] != ["photos"]


def test_every_public_name_is_on_a_page() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("*.md"))
    missing = [name for name in uncanny.__all__ if not re.search(rf"\b{name}\b", pages)]
    assert not missing
