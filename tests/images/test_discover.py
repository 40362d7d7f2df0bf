from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from uncanny.errors import UsageError
from uncanny.images.discover import MOST_LISTED, Skipped, discover
from uncanny.settings import Settings
from uncanny.wording import display_path, short_path


def touch(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")


def names(folder: Path, *arguments: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in discover(arguments or (folder,)).files]


def test_folders_are_walked_and_sorted(tmp_path: Path) -> None:
    touch(tmp_path, "b.png", "a/z.JPG", "a/b/c.webp", "a.png", "a/b.tif", "c/d.avif", "B.png", "x.jpeg/y.gif")
    expected = ["B.png", "a.png", "a/b.tif", "a/b/c.webp", "a/z.JPG", "b.png", "c/d.avif", "x.jpeg/y.gif"]
    assert names(tmp_path) == expected


def test_nothing_found_is_no_error(tmp_path: Path) -> None:
    assert discover([tmp_path]).files == discover([]).files == ()


def test_what_is_skipped_is_told(tmp_path: Path) -> None:
    touch(tmp_path, ".a.png", ".git/b.png", "c.txt", "d.heic", "png", "e.png")
    discovered = discover([tmp_path])
    assert [path.name for path in discovered.files] == ["d.heic", "e.png"]
    assert [(each.path.name, each.reason) for each in discovered.skipped.listed] == [
        (".a.png", "hidden"),
        (".git", "hidden"),
        ("c.txt", "other_file"),
        ("png", "other_file"),
    ]
    assert discovered.skipped.counts == {"hidden": 2, "other_file": 2}


def test_what_is_called_like_an_image_is_taken_whether_or_not_it_can_be_read(tmp_path: Path) -> None:
    some = ["a.heic", "b.JXL", "c.dng", "d.svg", "e.jp2", "f.tga"]
    touch(tmp_path, *some)
    assert names(tmp_path) == some


def test_of_what_is_skipped_all_is_counted_and_the_first_of_it_listed(tmp_path: Path) -> None:
    number = 2 * MOST_LISTED + 10
    for index in range(number):
        (tmp_path / f"{index * 7919 % number:05d}.txt").touch()
    skipped = discover([tmp_path]).skipped
    assert skipped.counts == {"other_file": number}
    assert [each.path.name for each in skipped.listed] == [f"{index:05d}.txt" for index in range(MOST_LISTED)]
    touch(tmp_path / "more", "x.txt", ".y")
    both = skipped + discover([tmp_path / "more"]).skipped
    assert both.counts == {"hidden": 1, "other_file": number + 1}
    assert (len(both.listed), both.listed[0].reason) == (MOST_LISTED, "hidden")


def test_what_is_named_is_taken(tmp_path: Path) -> None:
    touch(tmp_path, ".a.png", "c.txt", ".hidden/d.png")
    assert names(tmp_path, tmp_path / "c.txt", tmp_path / ".a.png") == [".a.png", "c.txt"]
    assert names(tmp_path, tmp_path / ".hidden") == [".hidden/d.png"]


def test_overlapping_arguments_give_each_file_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "a/b/c.png", "a/d.png")
    monkeypatch.chdir(tmp_path)
    arguments = [Path("a"), Path("a/b"), Path("a/b/c.png"), tmp_path / "a", Path("a/../a/d.png"), Path("a")]
    discovered = discover(arguments)
    assert len(discovered.files) == 2
    assert {path.resolve() for path in discovered.files} == {tmp_path / "a/b/c.png", tmp_path / "a/d.png"}
    assert not discovered.skipped
    assert discover(arguments[::-1]) == discovered


def test_linked_folders_are_walked_once(tmp_path: Path) -> None:
    touch(tmp_path / "in", "a/one.png", "z/two.png")
    touch(tmp_path / "out", "three.png")
    (tmp_path / "in/a/loop").symlink_to("..")
    (tmp_path / "in/0_link").symlink_to("z")
    (tmp_path / "in/far").symlink_to("../out")
    discovered = discover([tmp_path / "in"])
    assert [path.relative_to(tmp_path / "in").as_posix() for path in discovered.files] == [
        *("a/one.png", "far/three.png", "z/two.png")
    ]
    assert [(each.path.name, each.reason) for each in discovered.skipped.listed] == [
        ("0_link", "same_folder"),
        ("loop", "same_folder"),
    ]


def test_linked_files_are_files_of_their_own(tmp_path: Path) -> None:
    touch(tmp_path, "a.png")
    for name, target in (("b.png", "a.png"), ("c.png", "nowhere"), ("d.png", "d.png"), ("e.txt", "e.txt")):
        (tmp_path / name).symlink_to(target)
    assert names(tmp_path) == ["a.png", "b.png", "c.png", "d.png"]
    assert names(tmp_path, tmp_path / "c.png", tmp_path / "d.png") == ["c.png", "d.png"]


def test_a_folder_that_cannot_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "a.png", "locked/b.png")
    scandir = os.scandir

    def guarded(path: str) -> os._ScandirIterator[str]:
        if path.endswith("locked"):  # root may read everything, so a mode would not do
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    discovered = discover([tmp_path])
    assert [path.name for path in discovered.files] == ["a.png"]
    assert discovered.skipped.listed == (
        Skipped(tmp_path / "locked", "unreadable_folder", "Permission denied"),
    )
    assert discovered.skipped.unreadable_folders == 1


@pytest.mark.parametrize("name", ["gone", "x" * 10_000, "a/" * 5_000, "nul\0byte", "a.png/below"])
def test_an_argument_that_does_not_exist_is_named(name: str, tmp_path: Path) -> None:
    touch(tmp_path, "a.png")
    with pytest.raises(UsageError) as caught:
        discover([tmp_path / "a.png", tmp_path / name])
    assert short_path(tmp_path / name) in str(caught.value)
    assert len(str(caught.value)) < 400


def test_names_of_any_bytes(tmp_path: Path) -> None:
    try:
        (tmp_path / os.fsdecode(b"caf\xe9\xff.png")).write_bytes(b"")
    except OSError:
        pytest.skip("the file system takes UTF-8 names only")
    (path,) = discover([tmp_path]).files
    assert path.exists()
    assert display_path(path.relative_to(tmp_path)) == r"caf\xe9\xff.png"
    assert short_path(Path("a\nb\u202ec")) == r"a\nb\u202ec"


def test_names_that_look_alike_are_shown_as_two() -> None:
    raw, literal = os.fsdecode(b"a\xff.png"), r"a\xff.png"
    assert display_path(Path(raw)) == r"a\xff.png"
    assert display_path(Path(literal)) == r"a\x5cxff.png"
    assert display_path(Path(r"a\b\xg.png")) == r"a\b\xg.png"


pieces = st.lists(st.sampled_from([b"\\", b"x", b"5", b"c", b"f", b"\xff", b"\xe9", b"g"]), max_size=12)


@given(pieces.map(b"".join), pieces.map(b"".join))
def test_no_two_names_are_shown_alike(first: bytes, second: bytes) -> None:
    shown = [display_path(Path(os.fsdecode(b"n" + name))) for name in (first, second)]
    assert (shown[0] == shown[1]) == (first == second)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.binary(min_size=1, max_size=60).filter(lambda data: b"/" not in data and b"\0" not in data))
def test_display_always_encodes(name: bytes) -> None:
    path = Path(os.fsdecode(name))
    display_path(path).encode()
    assert short_path(path).isprintable()


def test_order_does_not_depend_on_the_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, *(f"{n % 7}/{n}.png" for n in range(60)))
    (tmp_path / "link").symlink_to("3")
    first = discover([tmp_path])
    scandir = os.scandir

    class Backwards:
        def __init__(self, path: str) -> None:
            self.entries = scandir(path)

        def __enter__(self) -> list[os.DirEntry[str]]:
            return list(self.entries)[::-1]

        def __exit__(self, *_: object) -> None:
            self.entries.close()

    monkeypatch.setattr(os, "scandir", Backwards)
    assert discover([tmp_path]) == first
    assert len(first.files) == 60


def test_what_a_folder_elsewhere_holds_is_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("in/sub/a.png", "out/hidden.png", "out/sub/hidden.png", "out/hidden.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    inside = tmp_path / "in"
    (inside / "link").symlink_to(tmp_path / "out")
    (inside / "sub" / "link").symlink_to(inside / "sub")
    monkeypatch.setattr(
        sys.modules[discover.__module__], "settings", lambda: Settings(folders=(inside.resolve(),))
    )
    for rows in (False, True):
        found = discover([inside], rows=rows)
        assert found.files == (inside / "sub" / "a.png",)
        assert "hidden" not in repr(found)
        assert found.skipped.counts == {"unreadable_folder": 1, "same_folder": 1}
        assert "lies in no folder that may be read" in repr(found.skipped)
