"""A run's folder: its lock, its manifest `run.json`, and where its files are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
from filelock import FileLock, Timeout

from uncanny.errors import RunLockedError, RunMismatchError, UsageError
from uncanny.records.jsonl import write_atomically

MOST_SHOWN = 60
MOST_DIFFERENCES = 4
# What the task of a run is called on the command line.
COMMANDS = {"mcq": "mcq run", "realism": "realism run"}


class RunFolder:
    """Paths and manifest of one run. Creating the object touches nothing on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.annotations = path / "annotations.jsonl"
        self.calls = path / "calls.jsonl"
        self.manifest = path / "run.json"
        self.report = path / "report.html"
        self.answers = path / "answers"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the run for this process. Raises RunLockedError, UsageError. A dead holder leaves no lock."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.path / ".lock")
            lock.acquire(blocking=False)
        except Timeout as error:
            raise RunLockedError(
                f"Another process is working on {self.path}",
                remedy="Wait for it, stop it, or name another run with -o.",
            ) from error
        except OSError as error:
            raise UsageError(
                f"{self.path} cannot be used as a run folder: {error.strerror or error}",
                remedy="Name a folder that can be written with -o.",
            ) from error
        try:
            yield
        finally:
            lock.release()

    def begun(self) -> bool:
        """Whether anything was asked or recorded here."""
        return any(file.is_file() and file.stat().st_size for file in self.path.glob("*.jsonl"))

    def read_manifest(self) -> dict[str, Any] | None:
        """`run.json`, or None where there is none yet. Raises UsageError when it cannot be read."""
        try:
            content = orjson.loads(self.manifest.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, orjson.JSONDecodeError) as error:
            raise UsageError(
                f"{self.manifest} cannot be read: {error}", remedy="Restore it, or name another run with -o."
            ) from error
        if not isinstance(content, dict):
            raise UsageError(f"{self.manifest} is not a run's manifest", remedy="Name another run with -o.")
        return content

    def write_manifest(self, content: dict[str, Any]) -> None:
        write_atomically(self.manifest, [orjson.dumps(content, option=orjson.OPT_INDENT_2)])


def check_same_protocol(folder: RunFolder, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Raises RunMismatchError naming the settings in which `now` differs from what the run was made with."""
    held, wanted = (COMMANDS.get(str(each.get("task")), each.get("task")) for each in (before, now))
    if held is not None and held != wanted:
        raise RunMismatchError(
            f"{folder.path} holds a run of another task, `{held}`, and `{wanted}` cannot go on with it",
            remedy="Name another folder with -o.",
        )
    differing = [difference for key in now for difference in _differences(key, before.get(key), now[key])]
    if differing:
        more = [f"and {len(differing) - MOST_DIFFERENCES} more"] if len(differing) > MOST_DIFFERENCES else []
        shown = "; ".join([*differing[:MOST_DIFFERENCES], *more])
        raise RunMismatchError(
            f"{folder.path} was made with other settings ({shown})",
            remedy="Give the same settings to go on with it, or another folder with -o.",
        )


def _differences(name: str, before: object, now: object) -> Iterator[str]:
    """Down to the single setting: two whole tables side by side are no help to anybody."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in {**before, **now}:
            yield from _differences(f"{name}.{key}", before.get(key), now.get(key))
    elif orjson.dumps(before) != orjson.dumps(now):
        yield f"{name}: {_short(before)} before, {_short(now)} now"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 1] + "…"
