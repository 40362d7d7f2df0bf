"""Too many open files, no memory, a disk that fails: what is not the image's fault is not put down to it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.images.odd_files import encoded, picture
from tests.runs.e2e import Run, check_no_traceback, environment, pictures, uncanny_here
from uncanny.errors import ImageError
from uncanny.images import file_bytes
from uncanny.images.encode import PixelPolicy, SendLimits
from uncanny.images.prepared import prepare

pytestmark = pytest.mark.slow

LIMITS = SendLimits(frozenset({"image/png"}), None, None)
EXHAUSTED = """
import os, resource, sys, threading
from pathlib import Path
from uncanny.errors import StorageError
from uncanny.images import file_bytes
from uncanny.images.encode import PixelPolicy, SendLimits
from uncanny.images.file_bytes import RecordedFile, changed_files
from uncanny.images.prepared import prepare

path, limits = Path(sys.argv[1]), SendLimits(frozenset({"image/png"}), None, None)
found = prepare(path, PixelPolicy(), limits)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
held = []
try:
    while True:
        held.append(os.open(os.devnull, os.O_RDONLY))
except OSError:
    pass

def close_some():
    threading.Event().wait(0.4)
    for number in held[:5]:
        os.close(number)

if sys.argv[2] == "closed":
    threading.Thread(target=close_some).start()
    assert changed_files([RecordedFile(path, "0" * 64, None)])
    assert prepare(path, PixelPolicy(), limits) == found
    print("read")
else:
    file_bytes.PATIENCE_S = 0.2
    try:
        prepare(path, PixelPolicy(), limits)
    except StorageError as error:
        print(error)
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "a.png").write_bytes(encoded(picture(), "PNG"))
    return tmp_path / "a.png"


def exhausted(place: Path, how: str) -> str:
    command = [sys.executable, "-c", EXHAUSTED, str(place), how]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment())
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(os.name == "nt", reason="needs a limit on open files")
def test_with_too_many_open_files_reading_waits_for_others_to_be_closed(place: Path) -> None:
    assert exhausted(place, "closed") == "read\n"


@pytest.mark.skipif(os.name == "nt", reason="needs a limit on open files")
def test_where_none_is_closed_it_is_no_fault_of_the_image(place: Path) -> None:
    told = exhausted(place, "kept")
    assert "a.png cannot be opened: Too many open files" in told
    assert "ulimit -n" in told


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, int, int], None]:
    """Makes opening of files with this ending fail so often with this error, as the system does."""
    real = os.open
    left: dict[str, list[int]] = {}

    def guarded(path: Any, flags: int, *rest: Any, **more: Any) -> int:
        for ending, errors in left.items():
            if errors and str(path).endswith(ending):
                number = errors.pop()
                raise OSError(number, os.strerror(number), path)
        return real(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", guarded)
    return lambda ending, number, times: left.update({ending: [number] * times})


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.EIO, "io_error"),
        (errno.ESTALE, "io_error"),
        (errno.ENOMEM, "memory"),
        (errno.EACCES, "permission"),
    ],
)
def test_what_the_system_says_is_told_apart(
    number: int, kind: str, place: Path, failing: Callable[[str, int, int], None]
) -> None:
    failing("a.png", number, 1)
    with pytest.raises(ImageError) as caught:
        prepare(place, PixelPolicy(), LIMITS)
    assert caught.value.kind == kind
    assert caught.value.remedy


@pytest.mark.parametrize("command", ["annotate", "detect"])
def test_a_run_goes_on_once_files_can_be_opened_again(
    command: str, tmp_path: Path, run: Run, failing: Callable[[str, int, int], None]
) -> None:
    images = pictures(tmp_path / "in", 3)
    failing("p01.png", errno.EMFILE, 2)
    done = uncanny_here(command, images, "--model", "noop", "-o", run.path, "--no-report")
    assert (done.code, run.statuses()) == (0, {"ok": 3})


@pytest.mark.parametrize("command", ["annotate", "detect"])
def test_a_run_that_can_open_no_file_ends_and_records_nothing_of_it(
    command: str,
    tmp_path: Path,
    run: Run,
    failing: Callable[[str, int, int], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    images = pictures(tmp_path / "in", 3)
    failing("p02.png", errno.ENFILE, 1_000)
    monkeypatch.setattr(file_bytes, "PATIENCE_S", 0.1)
    arguments = (command, images, "--model", "noop", "-o", run.path, "--no-report")
    done = uncanny_here(*arguments)
    check_no_traceback(done)
    assert done.code == 1
    assert "p02.png cannot be opened" in done.told
    assert "p02" not in str([record.image for record in run.records()])
    failing("p02.png", errno.ENFILE, 0)
    assert (uncanny_here(*arguments).code, run.statuses()) == (0, {"ok": 3})


def test_a_disk_that_fails_is_not_a_damaged_image(
    tmp_path: Path, run: Run, failing: Callable[[str, int, int], None]
) -> None:
    images = pictures(tmp_path / "in", 2)
    failing("p01.png", errno.EIO, 2)  # the forecast is the first to look
    arguments = ("annotate", images, "--model", "noop", "-o", run.path, "--no-report")
    assert uncanny_here(*arguments).code == 1
    assert [error.kind for error in run.record("p01.png").errors] == ["io_error"]
    assert (uncanny_here(*arguments).code, run.statuses()) == (0, {"ok": 2})
