"""Python on the pages runs as it stands: block after block, as a reader would paste it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from lab_tools.model import LabModel
from PIL import Image

import uncanny
from tests.bundled_runs import BundledRuns
from uncanny.demo.scenes import scenes
from uncanny.models import registry

DOCS = Path(__file__).parents[2] / "docs"
PHOTOS = {"cup.webp": "r01-cup-on-saucer", "hand.png": "d01-six-fingers", "table.jpg": "r04-table-three-legs"}
# The first line of a block that cannot run, for readers to see; and how many there are of these, by page.
NOT_RUN = "# Not run by the tests: "
NOT_RUN_ON = {"python.md": 1, "learn.md": 1, "detectors.md": 1, "pairs.md": 1}
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ANY_BLOCK = re.compile(r"^\s*(?:```|~~~)\s*(?:python|py|python3|pycon|ipython)\b", re.MULTILINE)
# Those of the tutorials are run, too, by `test_tutorials`.
README = "../README.md"
PAGES = [README]
PAGES += sorted(
    page.name for page in DOCS.glob("*.md") if _ANY_BLOCK.search(page.read_text(encoding="utf-8"))
)


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory, bundled_run: BundledRuns) -> Path:
    """Two finished runs over the bundled scenes that differ, the first with the verdicts of two reviewers."""
    folder = tmp_path_factory.mktemp("pages")
    bundled_run("annotate").copy(folder / "a")
    # The same settings, and other findings.
    bundled_run("annotate").copy(folder / "b")
    records = [orjson.loads(line) for line in (folder / "b" / "annotations.jsonl").read_bytes().splitlines()]
    changed = [each | ({} if number % 3 else {"anomalies": []}) for number, each in enumerate(records)]
    (folder / "b" / "annotations.jsonl").write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in changed))
    at = "2026-01-01T00:00:00Z"
    verdicts = [
        {"image": each["image"], "sha256": each["sha256"], "anomaly": number, "reviewer": who, "at": at}
        | {"decision": "reject" if who == "ben" and not at_image % 5 else "accept"}
        for at_image, each in enumerate(records)
        for number in range(len(each["anomalies"]))
        for who in ("ann", "ben")
    ]
    (folder / "a" / "reviews.jsonl").write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in verdicts))
    return folder


@pytest.fixture
def folder(tmp_path: Path, bundled: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a reader has: images, runs over the bundled scenes, a picture before and after an edit."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "_REGISTERED", {"lab": LabModel})
    for target in ("photos", "a", "b"):
        (tmp_path / target).mkdir()
    images = {scene.image_path.stem: scene.image_path for scene in scenes()}
    for name, stem in PHOTOS.items():
        shutil.copy(images[stem], tmp_path / "photos" / name)
    for side, stem in (("a", "r01-cup-on-saucer"), ("b", "d01-six-fingers")):
        with Image.open(images[stem]) as image:
            image.save(tmp_path / side / "1.png")
    for run, source in (("a", "a"), ("b", "b"), ("demo", "a")):
        shutil.copytree(bundled / source, tmp_path / "runs" / run)
    return tmp_path


def blocks_of(page: str) -> Iterator[tuple[str, str]]:
    """The blocks of Python on a page: each with lines ahead of it, so that errors have the page's numbers."""
    text = (DOCS / page).read_text(encoding="utf-8")
    for match in _BLOCK.finditer(text):
        yield match[1], "\n" * (text.count("\n", 0, match.start()) + 1) + match[1]


def run_blocks(page: str) -> dict[str, Any]:
    """Run all blocks of a page but those that say that they cannot, and return the names they leave."""
    names: dict[str, Any] = {"__name__": page}
    blocks = [placed for block, placed in blocks_of(page) if not block.startswith(NOT_RUN)]
    assert blocks or page in NOT_RUN_ON
    for placed in blocks:
        exec(compile(placed, str(DOCS / page), "exec"), names)
    return names


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_every_block_runs(page: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_blocks(page)
    assert "Traceback" not in capsys.readouterr().err
    assert (folder / "photos").is_dir()


def test_no_block_is_passed_over_but_those_that_say_so() -> None:
    assert len(PAGES) >= 15
    for page in PAGES:
        text = (DOCS / page).read_text(encoding="utf-8")
        blocks = [block for block, _ in blocks_of(page)]
        # Blocks that are indented, or called `py`, would not be found.
        assert len(blocks) == len(_ANY_BLOCK.findall(text)), page
        assert sum(block.startswith(NOT_RUN) for block in blocks) == NOT_RUN_ON.get(page, 0), page
        assert sum(NOT_RUN in block for block in blocks) == NOT_RUN_ON.get(page, 0), page
    for page in NOT_RUN_ON:
        assert page in PAGES
    others = [*DOCS.glob("adr/*.md"), *DOCS.parent.glob("*.md"), *DOCS.parent.glob("*/*.md")]
    others = [page for page in others if page.parent != DOCS and page != DOCS.parent / "README.md"]
    assert [str(page) for page in others if _ANY_BLOCK.search(page.read_text(encoding="utf-8"))] == []


def test_every_public_name_is_on_a_page() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("*.md"))
    missing = [name for name in uncanny.__all__ if not re.search(rf"\b{name}\b", pages)]
    assert not missing
