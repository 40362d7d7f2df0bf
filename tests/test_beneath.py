"""Files are opened below allowed folders only, whatever their names are made to stand for meanwhile."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.swapped import ATTACK_S, attacked
from uncanny.files import beneath, open_file
from uncanny.files.beneath import (
    OutsideError,
    confine,
    open_allowed,
    open_beneath,
    open_file_beneath,
    place_of,
)
from uncanny.settings import Settings

pytestmark = pytest.mark.slow

SECRET = b"the secret"


@pytest.fixture(params=[True, False], ids=["openat2", "proc"])
def _ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the kernel of this machine does it, and as it is done without."""
    monkeypatch.setattr(beneath.KERNEL, "knows", request.param)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "a").mkdir(parents=True)
    outside.mkdir()
    (root / "a" / "file").write_bytes(b"inside")
    (outside / "file").write_bytes(SECRET)
    (root / "to_folder").symlink_to(root / "a")
    (root / "to_file").symlink_to("a/file")
    (root / "out").symlink_to(outside)
    (root / "out_file").symlink_to(outside / "file")
    (root / "nowhere").symlink_to(outside / "nothing")
    (root / "loop").symlink_to("loop")
    os.mkfifo(root / "pipe")
    (tmp_path / "root2").mkdir()
    (tmp_path / "root2" / "file").write_bytes(SECRET)
    return root.resolve()


@pytest.mark.usefixtures("_ways")
@pytest.mark.parametrize(
    "path", ["a/file", "to_folder/file", "to_file", "a/../a/file", "to_folder/../a/file"]
)
def test_what_lies_inside_is_opened_links_followed(root: Path, path: str) -> None:
    with open_file_beneath(root / path, [root]) as file:
        assert file.read() == b"inside"
        assert Path(place_of(file)).read_bytes() == b"inside"


@pytest.mark.usefixtures("_ways")
@pytest.mark.parametrize(
    "path",
    ["out/file", "out_file", "nowhere", "../outside/file", "../outside/nothing", "../root2/file", ".."],
)
def test_what_lies_outside_is_not_whether_it_is_there_or_not(root: Path, path: str) -> None:
    with pytest.raises(OutsideError, match="in no folder that may be read"):
        open_beneath(root / path, [root])


@pytest.mark.usefixtures("_ways")
def test_other_errors_are_those_of_the_system(root: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_beneath(root / "a" / "none", [root])
    with pytest.raises(NotADirectoryError):
        open_beneath(root / "a" / "file" / "x", [root])
    with pytest.raises(IsADirectoryError):
        open_file_beneath(root / "a", [root])
    with pytest.raises(OSError, match="symbolic links"):
        open_beneath(root / "loop", [root])
    os.close(open_beneath(root, [root]))
    os.close(open_beneath(root / "pipe", [root]))  # nobody is waited for at its other end


@pytest.mark.usefixtures("_ways")
def test_an_allowed_folder_that_becomes_a_link_is_not_followed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve = os.path.realpath

    def swapped(path: str) -> str:
        real = resolve(path)
        if not (root / "b").exists():
            (root / "a").rename(root / "b")
            (root / "a").symlink_to(root.parent / "outside")
        return real

    monkeypatch.setattr("os.path.realpath", swapped)
    with pytest.raises(OutsideError):
        open_file_beneath(root / "a" / "file", [root / "a"])


def test_several_folders_and_a_narrower_one(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = root.parent / "root2"
    monkeypatch.setattr("uncanny.settings.settings", lambda: Settings(folders=(root, other)))
    for path in (root / "a" / "file", other / "file"):
        open_allowed(path).close()
    open_allowed(root / "a" / "file", [root / "a"]).close()
    open_allowed(root / "a" / "file", [root.parent]).close()
    for within in ([other], [root / "b"], []):
        with pytest.raises(OutsideError):
            open_allowed(root / "a" / "file", within)
    with pytest.raises(OutsideError):
        open_allowed(root.parent / "outside" / "file", [root.parent])


def test_a_confined_folder_reaches_no_further_for_the_rest_of_the_process(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beneath, "_CONFINED", {})
    with open_allowed(root / "out_file") as file:
        assert file.read() == SECRET
    confine(root, root.resolve())
    with pytest.raises(OutsideError):
        open_allowed(root / "out_file")
    with pytest.raises(OutsideError):
        open_allowed(root / "a" / ".." / "out" / "file")
    for path in (root / "to_file", root.parent / "outside" / "file"):
        open_allowed(path).close()


def test_without_proc_a_file_is_at_its_name(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_file(root / "to_file") as named, open_file_beneath(root / "to_file", [root]) as beneath_root:
        monkeypatch.setattr(Path, "exists", lambda _: False)
        assert place_of(named) == place_of(beneath_root) == str(root / "to_file")


def test_folders_are_confined_while_other_threads_open_files(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beneath, "_CONFINED", {})
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    stop = threading.Event()

    def open_all() -> int:
        opened = 0
        while not stop.is_set():
            open_allowed(root / "to_file").close()
            opened += 1
        return opened

    try:
        with ThreadPoolExecutor(4) as threads:
            opened = [threads.submit(open_all) for _ in range(4)]
            for number in range(3000):
                confine(root / f"run{number}", root / f"run{number}")
            confine(root, root)
            stop.set()
            assert all(each.result() for each in opened)
    finally:
        stop.set()
        sys.setswitchinterval(interval)
    with pytest.raises(OutsideError):
        open_allowed(root / "out_file")


def _read(path: Path, root: Path) -> Callable[[], bytes | None]:
    def read() -> bytes | None:
        try:
            with open_file_beneath(path, [root]) as file:
                return file.read()
        except OSError:
            return None

    return read


def swaps(root: Path) -> Iterator[tuple[Path, Path]]:
    """What is swapped for a link, and to what: the file, and the folder that it lies in."""
    yield root / "a" / "file", root.parent / "outside" / "file"
    yield root / "a", root.parent / "outside"


@pytest.mark.usefixtures("_ways")
def test_a_swapped_file_or_folder_is_never_read(root: Path) -> None:
    for inside, outside in swaps(root):
        some, leaks = attacked(_read(root / "a" / "file", root), inside, outside, SECRET, 0.2)
        assert some
        assert not leaks


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("_ways")
def test_a_swapped_file_or_folder_is_never_read_for_a_while(root: Path) -> None:
    for inside, outside in swaps(root):
        some, leaks = attacked(_read(root / "a" / "file", root), inside, outside, SECRET, ATTACK_S / 2)
        assert some
        assert not leaks
