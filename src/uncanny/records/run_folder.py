"""A run's folder: its lock, its manifest `run.json`, and where its files are."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson
from filelock import FileLock, Timeout
from pydantic import ValidationError

from uncanny.errors import RunLockedError, RunMismatchError, StorageError, UsageError
from uncanny.files import dump_json, open_file, read_file
from uncanny.files.beneath import confine
from uncanny.protocol import protocols
from uncanny.records.annotation_table import LINES, TABLE, restore_lines
from uncanny.records.jsonl import open_to_read, shared_file, write_atomically
from uncanny.records.run_manifest import FORMAT, RunManifest
from uncanny.schema import MOST_COUNTED
from uncanny.wording import another_run, either, option, shown

MOST_SHOWN = 60
MOST_DIFFERENCES = 4
LOCK = ".lock"
# In the message of RunLockedError, by which others tell this end of a command.
LOCKED = "working on"
# The run folders that this process holds.
_HELD_HERE: set[Path] = set()
# What every run writes and reads beside its records, all of them `*.jsonl`. `report.html` is not among them:
# it is replaced as a whole, and never read.
_FILES = (LOCK, "run.json", "vllm.log", TABLE)
_PATTERNS = ("*.jsonl", "*.index", "vllm-*.log")
# Of runs that make pictures, and take up again what they made.
_PICTURES = ("originals", "masks", "painted", "edited", "heat_maps")


class RunFolder:
    """Paths and manifest of one run. Creating the object touches nothing on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.annotations = path / LINES
        self.table = path / TABLE
        self.calls = path / "calls.jsonl"
        self.spending = path / "spending.jsonl"
        self.removed = path / "removed.jsonl"
        self.manifest = path / "run.json"
        self.report = path / "report.html"
        self.answers = path / "answers"
        self._lock: FileLock | None = None
        self._real = path
        # Held open, so that the folder is known again even where another one has taken its name.
        self._descriptor: int | None = None

    def removed_names(self) -> set[str]:
        """The inputs, as calls name them, whose records were moved out of the run; their calls stay in it."""
        names: set[str] = set()
        if (reader := open_to_read(self.removed)) is not None:
            with reader:
                for line in reader:
                    with suppress(orjson.JSONDecodeError, AttributeError):
                        record = orjson.loads(line)
                        names.update(map(str, filter(None, (record.get("image"), record.get("id")))))
        return names

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the run for this process. Raises RunLockedError, UsageError. A dead holder leaves no lock.

        Where nothing was written meanwhile, as when a model has no price, neither the lock's file is left nor
        the folders that were made for it.
        """
        made = [each for each in (self.path, *self.path.parents) if not each.exists()]
        before = self._names()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.check_links(writes=True)
            self._take()
        except Timeout as error:
            where = self.path.resolve()
            who = "This process is already" if where in _HELD_HERE else "Another process is"
            raise RunLockedError(
                f"{who} {LOCKED} {self.path}",
                remedy=f"Wait for it, stop it, or {another_run()}.",
            ) from error
        except OSError as error:
            raise UsageError(
                f"{self.path} cannot be used as a run folder: {error.strerror or error}",
                remedy=f"Pass a folder that you can write to with {option('out')}.",
            ) from error
        try:
            yield
        finally:
            self._leave_nothing(made, before)
            self._let_go()

    def check_links(self, *, writes: bool = False) -> None:
        """Nothing of a run is reached through links: a folder from elsewhere could name any file that way.

        Raises UsageError for a link, a pipe or a device where a run has a file or a folder, and, for a
        session that `writes`, a file that has another name elsewhere.
        """
        named = (file for pattern in _PATTERNS for file in self.path.glob(pattern))
        for file in (*(self.path / name for name in _FILES), *named):
            _check_kind(file, stat.S_ISREG, "file", writes=writes)
        check_no_links(self.answers, writes=writes)
        if writes:
            for name in _PICTURES:
                check_no_links(self.path / name)

    def begun(self) -> bool:
        """Whether anything was asked or recorded here, but that images cannot be read: no model said that."""
        return any(file.is_file() and _says_more(file) for file in self.path.glob("*.jsonl"))

    def read_manifest(self) -> RunManifest | None:
        """`run.json`, or None where there is none yet. Raises UsageError when it cannot be read.

        Where only the table of annotations is there, their lines are written anew, if need be elsewhere:
        `annotations` is where.
        """
        self.check_links()
        self.annotations = restore_lines(self.path)
        try:
            content = orjson.loads(read_file(self.manifest))
        except FileNotFoundError:
            return None
        except NotADirectoryError as error:
            raise UsageError(
                f"{self.path} is a file, not a folder",
                remedy=f"Pass a folder with {option('out')}.",
            ) from error
        except (OSError, orjson.JSONDecodeError) as error:
            raise UsageError(
                f"{self.manifest} cannot be read: {error}",
                remedy=f"Restore it, or {another_run()}.",
            ) from error
        if not isinstance(content, dict):
            raise UsageError(
                f"{self.manifest} is not the run.json of a run", remedy=f"Restore it, or {another_run()}."
            )
        return self._checked(content)

    def _checked(self, content: dict[str, Any]) -> RunManifest:
        written = content.get("format", FORMAT)
        if written != FORMAT:
            newer = isinstance(written, int) and written > FORMAT
            raise UsageError(
                f"{self.manifest} has format {shown(written)}; this version of uncanny reads format {FORMAT}",
                remedy="A newer version wrote it: update uncanny."
                if newer
                else "An unreleased version wrote it: make the run again in another folder.",
            )
        try:
            return RunManifest.model_validate(content)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"])
            raise UsageError(
                f"{self.manifest}, field {field!r}: {first['msg']}",
                remedy=f"Restore it, or {another_run()}.",
            ) from error

    def write_manifest(self, content: dict[str, Any]) -> None:
        """Raises StorageError where the folder is no longer the one that was locked, OSError."""
        if self.lost():
            raise StorageError(
                f"{self.path} was deleted or moved while the run was going on",
                remedy=f"Look for it, and run the same again with its name as {option('out')}.",
            )
        write_atomically(self.manifest, [dump_json(content, indent=True)])

    def lost(self) -> bool:
        """Whether the folder this process holds is gone from its place."""
        if self._descriptor is None:
            return False
        try:
            return not os.path.samestat(self.path.stat(), os.fstat(self._descriptor))
        except OSError:
            return True

    def put_back(self) -> bool:
        """Make the folder again if it was deleted; False where it was moved, replaced, or cannot be made."""
        if self._descriptor is None or os.fstat(self._descriptor).st_nlink or self.path.exists():
            return False
        deleted, lock = self._descriptor, self._lock
        try:
            self.path.mkdir(parents=True)
            self._take()
        except (OSError, Timeout):
            return False
        os.close(deleted)
        if lock is not None:
            lock.release()
        return True

    def _take(self) -> None:
        lock = FileLock(self.path / LOCK)
        lock.acquire(blocking=False)
        if os.name == "posix":
            try:
                self._descriptor = _locked_folder(self.path)
            except BaseException:
                lock.release()
                raise
        self._lock = lock
        self._real = self.path.resolve()
        _HELD_HERE.add(self._real)

    def _names(self) -> set[str]:
        try:
            return set(os.listdir(self.path))  # noqa: PTH208
        except OSError:
            return set()

    def _leave_nothing(self, made: Sequence[Path], before: set[str]) -> None:
        """Remove the file of the lock, still held, where it is all that was written, and folders `made` for
        it; `before` is what was there. A run that was begun keeps it."""
        with suppress(OSError):
            begun = LOCK in before and before != {LOCK}
            if not self.lost() and not begun and self._names() == before | {LOCK}:
                (self.path / LOCK).unlink()
                for folder in made:
                    folder.rmdir()

    def _let_go(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None
            _HELD_HERE.discard(self._real)


def _locked_folder(path: Path) -> int:
    """The folder, open and locked: the lock's file may be removed by hand, the folder's own lock may not.

    Raises Timeout where another process, or another call of this one, has it.
    """
    import fcntl

    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise Timeout(str(path)) from None
    except OSError:
        pass  # file systems of a network have no locks of folders; the lock's file is there
    return descriptor


def check_apart(out: Path, pictures: Iterable[Path], folders: Iterable[Path] = ()) -> None:
    """Refuse to write results among the pictures they are about: `out` is a folder of some of them.

    `folders` are those that the pictures were found in. A run that is in `out` already goes on there. Raises
    UsageError.
    """
    if not out.is_dir() or (out / "run.json").is_file():
        return
    there = {str(folder) for folder in folders} | {os.path.dirname(picture) or "." for picture in pictures}  # noqa: PTH120
    for folder in there:
        with suppress(OSError):
            if os.path.samefile(folder, out):  # noqa: PTH121
                raise UsageError(
                    f"{out} contains the images, and results would be written among them",
                    remedy=f"Pass a separate folder with {option('out', str(out / 'uncanny'))}.",
                )


def check_no_links(folder: Path, *, writes: bool = False) -> None:
    """Raises UsageError where `folder` or anything in it is a link, a pipe or a device; OSError.

    With `writes` also where a file has another name: whoever wrote to it would write to the other.
    """
    if not _check_kind(folder, stat.S_ISDIR, "folder"):
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                check_no_links(Path(entry.path), writes=writes)
            elif not entry.is_file(follow_symlinks=False):
                raise _not_plain(Path(entry.path), "file")
            elif writes and entry.stat(follow_symlinks=False).st_nlink > 1:
                raise shared_file(Path(entry.path))


def copy_into(folder: Path, files: Iterable[Path]) -> Path:
    """Copy `files` into a folder of a run, which is returned; what is there already stays.

    Raises UsageError where a link is in the way or the folder cannot be written.
    """
    try:
        check_no_links(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            target = folder / file.name
            if not target.exists():
                write_atomically(target, [read_file(file)])
    except FileNotFoundError as error:
        raise UsageError(
            f"{error.filename} is missing, which belongs to uncanny", remedy="Install uncanny again."
        ) from error
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be written: {error.strerror or error}",
            remedy=f"Free some disk space, or pass a folder that you can write to with {option('out')}.",
        ) from error
    return folder


def check_within(folder: Path, named_by: Path, paths: Iterable[Path], *, remedy: str) -> None:
    """A set that lies in a run folder names its own files only: others would be sent to a model, or shown.

    Raises UsageError for the first of `paths` that leads out of `folder`. From then on what is named below
    the folder is opened only where it lies there.
    """
    inside = folder.resolve()
    for path in paths:
        if not _resolved(path).is_relative_to(inside):
            raise UsageError(f"{named_by} names {path}, which is not in {folder}", remedy=remedy)
    confine(folder, inside)


def _resolved(path: Path) -> Path:
    """Where it leads; nowhere for what cannot be a path."""
    try:
        return path.resolve()
    except (OSError, ValueError, RuntimeError):  # a zero byte, or links in a circle
        return Path(os.sep)


def _check_kind(path: Path, is_kind: Any, kind: str, *, writes: bool = False) -> bool:
    """Whether `path` is there. Raises UsageError where it is something else than `kind`.

    With `writes` also where it has another name.
    """
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}", remedy="Pass another run folder."
        ) from error
    if not is_kind(status.st_mode):
        raise _not_plain(path, kind)
    if writes and status.st_nlink > 1:
        raise shared_file(path)
    return True


def _not_plain(path: Path, kind: str) -> UsageError:
    what = f"a link to {path.readlink()}" if path.is_symlink() else f"no {kind}"
    return UsageError(
        f"{path} is {what}; the files of a run are never reached through links",
        remedy="Put the file itself there, remove it, or pass another run folder.",
    )


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What a run has still to do: `missing` of `of` inputs, called `unit`, have no record yet.

    `state` is what `run.json` says: `interrupted`, `budget`, `stopped`, or `running`, also after a kill.
    """

    missing: int
    of: int
    unit: str
    state: str

    def __str__(self) -> str:
        verb = "is" if self.missing == 1 else "are"
        inputs = f"{self.missing:,} of {self.of:,} {self.unit} {verb}"
        return f"its run is not finished ({self.state}), {inputs} missing"


def unfinished(folder: Path, unit: str, recorded: int) -> Unfinished | None:
    """What the run in `folder`, of whose inputs `recorded` have a record, has still to do.

    `unit` is what its inputs are called in `run.json`. None where nothing is missing, and where no
    readable `run.json` tells.
    """
    try:
        manifest = RunFolder(folder).read_manifest()
    except UsageError:
        return None
    totals = {} if manifest is None or manifest.totals is None else manifest.totals.model_dump()
    of = totals.get(unit)
    if manifest is not None and isinstance(of, int) and recorded < of <= MOST_COUNTED:
        return Unfinished(of - recorded, of, unit, manifest.state or "unknown")
    return None


def _says_more(file: Path) -> bool:
    """Whether a file of records has one of something else than of an image that cannot be read."""
    try:
        with open_file(file) as lines:
            records = map(orjson.loads, lines)
            return any(not isinstance(each, dict) or each.get("status") != "unreadable" for each in records)
    except (OSError, orjson.JSONDecodeError):
        return True


def check_same_protocol(folder: RunFolder, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Raises RunMismatchError naming the settings in which `now` differs from what the run was made with."""
    task, wanted = before.get("task"), now.get("task")
    if task is not None and task != wanted:
        raise RunMismatchError(
            f"{folder.path} contains a run of `{_command(task)}`, which `{_command(wanted)}` cannot resume",
            remedy=either(f"Pass another folder with {option('out')}.", service="Start a new job."),
        )
    differing = [difference for key in now for difference in _differences((key,), before.get(key), now[key])]
    if differing:
        more = [f"and {len(differing) - MOST_DIFFERENCES} more"] if len(differing) > MOST_DIFFERENCES else []
        shown = "; ".join([*differing[:MOST_DIFFERENCES], *more])
        raise RunMismatchError(
            f"{folder.path} was made with other settings ({shown})",
            remedy=f"Pass the same settings to resume it, or {another_run()}.",
        )


def check_recorded(folder: Path, name: str) -> None:
    """Raises UsageError where `folder` has no records `name`, with what it is instead and what to pass."""
    if (folder / name).is_file():
        return
    makers = {key: each for key, each in protocols().items() if each.makes == "run" and each.records == name}
    task, what = None, "is not a run folder"
    with suppress(UsageError):
        task = getattr(RunFolder(folder).read_manifest(), "task", None)
    if task in makers:
        raise UsageError(f"{folder} has no {name} yet", remedy="Resume its run first.")
    if task is not None:
        what = f"is a run of `{_command(task)}`"
    raise UsageError(
        f"{folder} {what}: it contains no {name}",
        remedy=f"Pass a run of {' or '.join(f'`{_command(key)}`' for key in makers)}.",
    )


def _command(task: object) -> str:
    """What a run's task is started with."""
    known = protocols().get(str(task))
    command = str(task) if known is None else " ".join(known.command)
    return either(command.replace(" ", "."), terminal=command, service=command)


def _differences(place: tuple[str, ...], before: object, now: object) -> Iterator[str]:
    """Down to the single setting: two whole tables side by side are no help to anybody."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in {**before, **now}:
            yield from _differences((*place, key), before.get(key), now.get(key))
    elif dump_json(before) != dump_json(now):
        yield f"{setting(*place)}: {_short(before)} before, {_short(now)} now"


_NAMED: Final[Mapping[tuple[str, ...], str]] = {
    ("prompts", "id"): "prompts",
    ("prompts", "whose"): "whose prompts",
    ("items",): "item file",
    ("pairs",): "file of pairs",
    ("texts",): "input",
    ("pixels", "policy", "max_file_bytes"): "limit on bytes of a file",
}


def setting(*place: str) -> str:
    """What stands at a place in `run.json`, as the user of this interface knows it."""
    words = [each if each.isprintable() else repr(each) for each in place]
    match words:
        case _ if tuple(words) in _NAMED:
            return _NAMED[tuple(words)]
        case ["plan", name] if name.endswith("_sha256"):
            return f"files of {option(name.removesuffix('_sha256'))}"
        case ["model" | "root" as name] | ["plan", name]:
            return option(name)
        case ["plan", "data", name]:
            return f"{name} data"
        case ["pixels", "policy", name]:
            return option("image_format" if name == "format" else name)
        case ["roles", role]:
            return f"{option('roles')} {role}"
        case ["plan", "graph", *node]:
            return f"node {'/'.join(node)} of the graph"
    return ".".join(words)


def _short(value: object) -> str:
    text = "not given" if value is None else repr(value)
    return text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 1] + "…"
