from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from PIL import Image

from uncanny.errors import ImageError
from uncanny.images.discover import discover
from uncanny.images.encode import PixelPolicy, SendLimits
from uncanny.images.prepared import prepare, thumbnail
from uncanny.wording import display_path

# A host that makes errors of warnings reads the same pictures.
pytestmark = pytest.mark.filterwarnings("error")

TAKEN = SendLimits(frozenset({"image/jpeg", "image/png", "image/webp", "image/gif"}), 5 * 2**20, 8_000)


def test_every_file_fares_as_expected(tmp_path: Path, odd_files: ModuleType) -> None:
    expected = odd_files.make_odd_folder(tmp_path)
    paths = {str(path.relative_to(tmp_path)): path for path in discover([tmp_path]).files}
    assert set(paths) == {name for name, each in expected.items() if each.outcome != "not_discovered"}
    wrong = []
    for name, path in paths.items():
        want = expected[name]
        got = odd_files.Expectation(*outcome(path))
        if want.changes is None:
            got = got._replace(changes=None)
        if got != want:
            wrong.append((display_path(Path(name)), want, got))
        assert (thumbnail(path) is None) == (got.outcome == "unreadable"), name
    assert wrong == []


def outcome(path: Path) -> tuple[str, str | None, tuple[str, ...] | None]:
    try:
        image = prepare(path, PixelPolicy(), TAKEN)
    except ImageError as error:
        str(error).encode()
        return "unreadable", error.kind, None
    assert image.changes or image.sent == path.read_bytes()
    return "ok", None, image.changes


def test_nothing_is_printed(tmp_path: Path, odd_files: ModuleType) -> None:
    odd_files.make_odd_folder(tmp_path)
    # In a process of its own: pytest has its own mind about warnings and logs.
    program = """
import sys
from pathlib import Path
from uncanny.errors import ImageError
from uncanny.images.discover import discover
from uncanny.images.encode import PixelPolicy, SendLimits
from uncanny.images.prepared import prepare
for path in discover([Path(sys.argv[1])]).files:
    try:
        prepare(path, PixelPolicy(), SendLimits(frozenset({"image/png"}), None, None))
    except ImageError:
        pass
"""
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_the_folder_is_worth_its_name(tmp_path: Path, odd_files: ModuleType) -> None:
    expected = odd_files.make_odd_folder(tmp_path)
    assert sum(each.outcome == "unreadable" for each in expected.values()) >= 30
    assert sum(each.outcome == "ok" for each in expected.values()) >= 50
    assert {each.kind for each in expected.values()} >= {
        *("missing", "not_a_file", "symlink_loop", "empty", "too_large", "not_an_image"),
        *("unsupported", "truncated", "damaged", "bomb"),
    }


def test_it_is_the_same_every_time(tmp_path: Path, odd_files: ModuleType) -> None:
    first = odd_files.make_odd_folder(tmp_path / "first")
    assert first == odd_files.make_odd_folder(tmp_path / "second")
    for name in ("photo.jpg", "moves.gif", "half.webp", "interlaced.png"):
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()


def test_the_interlaced_png_is_the_picture(odd_files: ModuleType, tmp_path: Path) -> None:
    image = odd_files.picture(23, 17, "L")
    (tmp_path / "a.png").write_bytes(odd_files.interlaced_png(image))
    with Image.open(tmp_path / "a.png") as read:
        assert read.info["interlace"] == 1
        assert read.tobytes() == image.tobytes()
