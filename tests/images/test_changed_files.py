"""Whether a file still holds what was read from it, however its times were set."""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from uncanny.images.encode import PixelPolicy, SendLimits
from uncanny.images.file_bytes import RecordedFile, changed_files, read_stamped
from uncanny.images.prepared import prepare

OLD, NEW = b"one thing", b"two thing"
MOST = 1_000


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock has gone on since the files were made, so that their times tell something."""
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + 10**10)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "a.png").write_bytes(OLD)
    return tmp_path / "a.png"


def as_read(path: Path) -> RecordedFile:
    file = read_stamped(path, MOST)
    return RecordedFile(path, hashlib.sha256(file.data).hexdigest(), file.stamp)


def rewritten(path: Path) -> None:
    path.write_bytes(NEW)


def rewritten_with_old_times(path: Path) -> None:
    status = path.stat()
    path.write_bytes(NEW)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def older_file_moved_over(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(NEW)
    os.utime(other, (1.0, 1.0))
    other.replace(path)


def copied_over_with_times(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(NEW)
    shutil.copystat(path, other)
    shutil.copy2(other, path)


def longer(path: Path) -> None:
    path.write_bytes(OLD + NEW)


def made_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def made_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


CHANGES = [
    *(rewritten, rewritten_with_old_times, older_file_moved_over, copied_over_with_times, longer),
    *(made_a_folder, made_a_pipe),
]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("stamped", [True, False])
@pytest.mark.usefixtures("later")
def test_other_bytes_are_noticed(change: Callable[[Path], None], stamped: bool, place: Path) -> None:
    before = as_read(place)
    assert before.stamp
    if not stamped:
        before = RecordedFile(before.path, before.sha256, None)
    change(place)
    assert changed_files([before]) == {before}


@pytest.mark.usefixtures("later")
def test_the_same_bytes_are_the_same_file_whatever_their_times(place: Path) -> None:
    before = as_read(place)
    os.utime(place, (1.0, 1.0))
    assert changed_files([before]) == set()
    place.unlink()
    place.write_bytes(OLD)
    assert changed_files([before]) == set()


@pytest.mark.usefixtures("later")
def test_a_file_as_it_was_is_not_read(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = as_read(place)

    def no_reading(*_: object) -> None:
        raise AssertionError("the file was read")

    monkeypatch.setattr(hashlib, "file_digest", no_reading)
    assert changed_files([before]) == set()


def test_times_of_a_file_that_was_just_written_tell_nothing(place: Path) -> None:
    before = as_read(place)
    assert before.stamp is None
    assert changed_files([before]) == set()
    place.write_bytes(NEW)
    assert changed_files([before]) == {before}


@pytest.mark.usefixtures("later")
def test_a_clock_that_was_set_back_changes_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = as_read(place)
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    assert as_read(place).stamp is None
    place.write_bytes(NEW)
    assert changed_files([before]) == {before}


def test_files_that_are_gone_keep_what_they_were(place: Path) -> None:
    files = [as_read(place), RecordedFile(place.with_name("never"), "0" * 64, "1-2-3-4")]
    place.unlink()
    assert changed_files(files) == set()


def test_many_files(tmp_path: Path) -> None:
    files = []
    for number in range(100):
        (tmp_path / str(number)).write_bytes(str(number).encode())
        files.append(as_read(tmp_path / str(number)))
    for number in range(0, 100, 7):
        (tmp_path / str(number)).write_bytes(b"x")
    assert changed_files(files) == set(files[::7])


@pytest.mark.usefixtures("later")
def test_an_image_comes_with_its_stamp(tmp_path: Path) -> None:
    from PIL import Image

    path = tmp_path / "a.png"
    Image.new("RGB", (3, 2)).save(path)
    image = prepare(path, PixelPolicy(), SendLimits(frozenset({"image/png"}), None, None))
    assert changed_files([RecordedFile(path, image.source_sha256, image.stamp)]) == set()
    assert image.stamp == read_stamped(path, MOST).stamp
