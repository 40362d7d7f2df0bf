"""A run's folder: one process at a time, a manifest that is never half written."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from uncanny.cli.annotate import command as annotate
from uncanny.cli.common.terminal import as_shown, note_command, running
from uncanny.errors import RunLockedError, RunMismatchError, StorageError, UsageError
from uncanny.records.run_folder import RunFolder, check_same_protocol, setting
from uncanny.records.run_manifest import RunManifest
from uncanny.wording import rendered

HOLD = (
    "import sys, time\n"
    "from pathlib import Path\n"
    "from uncanny.records.run_folder import RunFolder\n"
    "with RunFolder(Path(sys.argv[1])).locked():\n"
    "    print('held', flush=True)\n"
    "    sys.stdin.read()\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "deep" / "run")


def test_naming_a_folder_makes_nothing(folder: RunFolder) -> None:
    assert folder.read_manifest() is None
    assert not folder.path.parent.exists()


def test_the_lock_makes_the_folder_and_can_be_taken_again(folder: RunFolder) -> None:
    for _ in range(2):
        with folder.locked():
            assert folder.path.is_dir()


def test_only_one_holds_it(folder: RunFolder) -> None:
    with (
        folder.locked(),
        pytest.raises(RunLockedError, match=r"This process is already working on .*run\. .*`out`"),
        RunFolder(folder.path).locked(),
    ):
        pass


def test_it_is_released_when_the_work_fails(folder: RunFolder) -> None:
    with pytest.raises(ZeroDivisionError), folder.locked():
        raise ZeroDivisionError
    with folder.locked():
        pass


def test_a_run_that_writes_nothing_leaves_nothing(folder: RunFolder) -> None:
    def names(place: Path) -> list[str]:
        return sorted(entry.name for entry in place.iterdir())

    with pytest.raises(ZeroDivisionError), folder.locked():
        raise ZeroDivisionError
    assert not folder.path.parent.exists()
    folder.path.mkdir(parents=True)  # a folder of the user's stays
    with folder.locked():
        assert names(folder.path) == [".lock"]
    assert names(folder.path) == []
    with folder.locked():
        folder.calls.write_text("")
    assert names(folder.path) == [".lock", "calls.jsonl"]
    shutil.rmtree(folder.path)
    with folder.locked():
        other = folder.path.parent / "other"
        other.mkdir()
    assert names(folder.path.parent) == ["other"]


def test_a_holder_that_is_killed_leaves_no_lock(folder: RunFolder) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(RunLockedError, match="Another process is working on"), folder.locked():
            pass
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.communicate(timeout=30)
    with folder.locked():
        pass


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="folders have locks of their own")
@pytest.mark.parametrize("how", ["removed", "replaced", "truncated"])
def test_the_locks_file_may_be_removed_by_hand_and_nobody_gets_in(how: str, folder: RunFolder) -> None:
    """Also not a second call of this process, nor the next one after that was turned away."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        lock = folder.path / ".lock"
        for _ in range(2):
            if how == "truncated":
                lock.write_bytes(b"")
            else:
                lock.unlink()
            if how == "replaced":
                lock.touch()
            with pytest.raises(RunLockedError, match="Another process is working on"), folder.locked():
                pass
    finally:
        holder.communicate(timeout=30)
    with folder.locked():
        (folder.path / ".lock").unlink()
        with pytest.raises(RunLockedError, match="This process is"), RunFolder(folder.path).locked():
            pass
    with folder.locked():
        pass


def test_where_folders_have_no_locks_the_file_is_the_lock(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on file systems of a network."""
    import fcntl

    locks = fcntl.flock

    def flock(file: int, how: int) -> None:
        if stat.S_ISDIR(os.fstat(file).st_mode):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        locks(file, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    with folder.locked(), pytest.raises(RunLockedError), RunFolder(folder.path).locked():
        pass


def test_a_file_in_the_folders_place_is_explained(folder: RunFolder) -> None:
    folder.path.parent.mkdir()
    folder.path.write_text("x")
    with pytest.raises(UsageError, match=r"cannot be used as a run folder: .*`out`"), folder.locked():
        pass


def test_a_manifest_comes_back_as_written(folder: RunFolder) -> None:
    folder.path.mkdir(parents=True)
    content = {"task": "annotate", "plan": {"top_p": None}, "name": "ä"}
    folder.write_manifest(content)
    folder.write_manifest(content | {"state": "finished"})
    found = folder.read_manifest()
    assert found is not None
    assert found.written() == content | {"state": "finished"}
    assert [path.name for path in folder.path.iterdir()] == ["run.json"]


def test_a_manifest_is_replaced_in_one_step_or_not_at_all(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.path.mkdir(parents=True)
    folder.write_manifest({"state": "running"})

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        folder.write_manifest({"state": "finished"})
    assert folder.read_manifest() == RunManifest(state="running")
    assert [path.name for path in folder.path.iterdir()] == ["run.json"]


@pytest.mark.parametrize("content", [b"", b'{"state":', b"[]", b"\xff\xfe", b"null"])
def test_a_manifest_that_is_none_is_explained(folder: RunFolder, content: bytes) -> None:
    folder.path.mkdir(parents=True)
    folder.manifest.write_bytes(content)
    with pytest.raises(UsageError, match=r"run\.json"):
        folder.read_manifest()


def test_the_same_settings_are_the_same_after_a_round_trip(folder: RunFolder) -> None:
    now = {"model": "a/b", "plan": {"top_p": None, "temperature": 0.3}, "roles": {}}
    check_same_protocol(folder, orjson.loads(orjson.dumps(now | {"state": "finished"})), now)


def test_each_other_setting_is_named(folder: RunFolder) -> None:
    before = {"model": "a/b", "plan": {"repeats": 3}, "root": None}
    now = {"model": "a/c", "plan": {"repeats": 3}, "root": "/data", "new": 1}
    with pytest.raises(RunMismatchError) as caught:
        check_same_protocol(folder, before, now)
    for told in (
        "`model`: 'a/b' before, 'a/c' now",
        "`root`: not given before, '/data' now",
        "new: not given before, 1 now",
    ):
        assert told in str(caught.value)
    assert "plan" not in str(caught.value)


@pytest.mark.parametrize(
    ("place", "python", "command_line"),
    [
        (("plan", "max_regions"), "`max_regions`", "--max-regions"),
        (("roles", "formatter"), "`roles` formatter", "--role formatter"),
        (("pixels", "policy", "format"), "`image_format`", "--image-format"),
        (("pixels", "policy", "max_pixels"), "`max_pixels`", "--max-pixels"),
        (("prompts", "id"), "prompts", "prompts"),
        (("plan", "graph", "format"), "node format of the graph", "node format of the graph"),
        (("a line\nmore", "b"), "'a line\\nmore'.b", "'a line\\nmore'.b"),
    ],
)
def test_settings_are_called_as_whoever_gives_them_calls_them(
    place: tuple[str, ...], python: str, command_line: str
) -> None:
    assert rendered(setting(*place), "python") == python
    with running("terminal"):
        note_command(annotate)
        assert as_shown(setting(*place)) == command_line


def test_a_folder_that_was_deleted_is_put_back_and_held_again(folder: RunFolder) -> None:
    with folder.locked():
        assert not folder.lost()
        assert not folder.put_back()
        shutil.rmtree(folder.path)
        assert folder.lost()
        with pytest.raises(StorageError, match="was deleted or moved"):
            folder.write_manifest({})
        assert folder.put_back()
        assert not folder.lost()
        folder.write_manifest({"state": "running"})
        with pytest.raises(RunLockedError), RunFolder(folder.path).locked():
            pass
    with folder.locked():
        pass


def test_a_folder_that_cannot_be_put_back_stays_lost(folder: RunFolder) -> None:
    with folder.locked():
        shutil.rmtree(folder.path.parent)
        folder.path.parent.write_text("in the way")
        assert not folder.put_back()
        assert folder.lost()


def test_a_folder_that_was_moved_or_replaced_is_not_put_back(folder: RunFolder) -> None:
    with folder.locked():
        folder.path.rename(folder.path.with_name("moved"))
        assert folder.lost()
        assert not folder.put_back()
        folder.path.mkdir()
        assert folder.lost()
        assert not folder.put_back()
    assert not list(folder.path.iterdir())
