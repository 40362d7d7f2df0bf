"""Exports and the disk: what a full one, a kill or a folder in the way leaves; and memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

import uncanny
from uncanny.errors import UsageError
from uncanny.exports.formats import FORMATS

# The peak of this process alone: that of `getrusage` begins with what the tests' own process had.
MANY = """
import sys
from pathlib import Path
import uncanny
from tests.exports.made_runs import many_records
folder, count = Path(sys.argv[1]), int(sys.argv[2])
folder.mkdir()
many_records(folder, count)
out = folder.with_name(f"out{count}")
uncanny.export(folder, to=sys.argv[3].split(","), out=out, all=True, source="generated")
print(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""


def test_a_place_that_cannot_be_written_is_refused(run: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for out in ("-", tmp_path / "file/out", tmp_path / "file"):
        with pytest.raises(UsageError):
            uncanny.export(run, to=["csv", "coco"], out=out, all=True)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_memory_does_not_grow_with_the_run(tmp_path: Path) -> None:
    """Ten times the records, 50,000, may take their names and places in files, not the records."""
    forms = ",".join(FORMATS)
    peaks = []
    for count in (5_000, 50_000):
        arguments = [sys.executable, "-c", MANY, str(tmp_path / f"run{count}"), str(count), forms]
        done = subprocess.run(arguments, capture_output=True, text=True, check=True, env=os.environ)
        peaks.append(int(done.stdout.split()[-1]) * 1024)
    # 76 MB with the column `rating`: Parquet keeps what it says of each column of a row group until the end.
    assert peaks[1] - peaks[0] < 80 * 2**20, peaks


def test_what_killed_exports_left_is_removed_and_nothing_that_goes_on(run: Path, tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        gone = process.pid
    left, other, alive = (
        tmp_path / name for name in (f".x.csv.{gone}.export", f".y.csv.{gone}.export", ".x.csv.1.export")
    )
    held = tmp_path / f".x.csv.0{gone}.export"  # of another machine, whose process has that number
    for folder in (left, other, alive, held):
        folder.mkdir()
        (folder / "x").write_text("x")
    with FileLock(held / ".lock"):
        uncanny.export(run, to="csv", out=tmp_path / "x.csv", all=True)
    assert [folder.exists() for folder in (left, other, alive, held)] == [False, True, True, True]
    uncanny.export(run, to="csv", out=tmp_path / "x.csv", all=True)
    assert not held.exists()


def test_nothing_is_written_above_a_folder_that_is_there(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be where a disk is mounted, or a home, whose parent nobody may write to."""
    out = tmp_path / "home"
    out.mkdir()
    tmp_path.chmod(0o555)
    before = tmp_path.stat().st_mtime_ns
    try:
        monkeypatch.chdir(out)
        uncanny.export(run, to="csv", out="x.csv", all=True)
        uncanny.export(run, to=["csv", "coco"], out=".", all=True)
        uncanny.export(run, to=["csv", "coco"], out=out, all=True)
    finally:
        tmp_path.chmod(0o755)
    assert tmp_path.stat().st_mtime_ns == before
    assert sorted(path.name for path in out.iterdir()) == ["anomalies.csv", "coco", "export.json", "x.csv"]


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_a_full_disk_is_told_and_leaves_an_earlier_export(run: Path, tmp_path: Path, name: str) -> None:
    """Files of this process may have 0 bytes: what is written then fails as on a full disk."""
    (run / "calls.jsonl").write_bytes(b"")
    out = tmp_path / "out"
    uncanny.export(run, to=name, out=out, all=True)  # type: ignore[arg-type]
    before = sorted((path, path.stat().st_mtime_ns) for path in out.rglob("*"))
    script = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0));"
        "from uncanny.cli import main; main()"
    )
    arguments = ("export", run, "--all", "--to", name, "-o", out)
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert f"{out} cannot be written: File too large" in " ".join(done.stderr.split())
    assert sorted((path, path.stat().st_mtime_ns) for path in out.rglob("*")) == before
