"""From files and folders to the image files in them, in one order whatever the file system says.

Their names are made fit for records and messages by `display_path` and `short_path`.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from uncanny.errors import UsageError
from uncanny.images.signature import RAW_SUFFIXES, UNREAD_SUFFIXES

_LONGEST_SHOWN = 200
_LIKE_A_BYTE = re.compile(r"\\(?=x[0-9a-f]{2})")


def display_path(path: Path) -> str:
    """The path as posix text that can always be encoded, another one for every path.

    Bytes that are not UTF-8 appear as `\\xff`, these four characters themselves as `\\x5cxff`.
    """
    text = path.as_posix()
    if "\\x" in text:
        text = _LIKE_A_BYTE.sub(r"\\x5c", text)
    return os.fsencode(text).decode("utf-8", "backslashreplace")


def short_path(path: Path) -> str:
    """`display_path` for a message: on one line, and its middle left out where it is very long."""
    shown = "".join(char if char.isprintable() else repr(char)[1:-1] for char in display_path(path))
    if len(shown) <= _LONGEST_SHOWN:
        return shown
    half = _LONGEST_SHOWN // 2
    return f"{shown[:half]}…{shown[-half:]}"


# What is called like an image is taken for one, also where nothing here can read it: it shall not get lost.
IMAGE_SUFFIXES = (
    frozenset(
        {
            *(".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".apng", ".webp", ".gif", ".bmp", ".dib"),
            *(".tif", ".tiff", ".avif", ".heic", ".heif", ".hif", ".jxl"),
        }
    )
    | UNREAD_SUFFIXES.keys()
    | RAW_SUFFIXES
)

# In order of how much a user wants to know about them.
SkipReason = Literal["unreadable_folder", "same_folder", "hidden", "other_file"]
_RANK: Mapping[SkipReason, int] = {reason: rank for rank, reason in enumerate(get_args(SkipReason))}
MOST_LISTED = 2_000


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something inside a folder that is not taken; a skipped folder stands for all it holds.

    `same_folder`: a link to a folder that is walked already. `detail` is why a folder cannot be read, as the
    system says.
    """

    path: Path
    reason: SkipReason
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class SkippedInputs:
    """All that was skipped, by number, and `MOST_LISTED` of it at most: unreadable folders, then by name."""

    counts: Mapping[SkipReason, int] = field(default_factory=dict)
    listed: tuple[Skipped, ...] = ()

    def __add__(self, other: SkippedInputs) -> SkippedInputs:
        counts = Counter(self.counts) + Counter(other.counts)
        listed = sorted((*self.listed, *other.listed), key=lambda each: (_RANK[each.reason], str(each.path)))
        ordered = {reason: counts[reason] for reason in _RANK if counts[reason]}
        return SkippedInputs(ordered, tuple(listed[:MOST_LISTED]))

    def __bool__(self) -> bool:
        return bool(self.counts)

    @property
    def unreadable_folders(self) -> int:
        return self.counts.get("unreadable_folder", 0)


@dataclass(frozen=True, slots=True)
class Discovered:
    """Image files in order of their posix paths, each once; both parts are empty where there is nothing."""

    files: tuple[Path, ...]
    skipped: SkippedInputs


def discover(paths: Sequence[Path]) -> Discovered:
    """Walk the folders among `paths` and take the files among them, whatever these are called.

    Nothing is opened: broken links, pipes and damaged files with an image's name are found like any other,
    and told apart when they are read. A file given twice, or once by itself and once by its folder, is taken
    once; a link to a file is a file of its own. Raises `UsageError` for a path that does not exist.
    """
    walk = _Walk()
    for path in paths:
        if _is_folder(path):
            walk.folders.append(str(path))
        else:
            walk.take(str(path.parent), path.name, str(path))
    walk.run()
    files = sorted((Path(each) for each in walk.files.values()), key=Path.as_posix)
    return Discovered(tuple(files), walk.skipped.inputs())


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except (OSError, ValueError) as error:
        if _is_link(path):
            return False
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(
            f"{short_path(path)}: {reason}", remedy="Give existing image files or folders."
        ) from error


def _is_link(path: Path) -> bool:
    try:
        return path.is_symlink()
    except (OSError, ValueError):
        return False


class _SkippedList:
    """Counts everything and keeps the first by rank and name, in whatever order they come."""

    def __init__(self) -> None:
        self._counts = Counter[SkipReason]()
        self._first: list[tuple[int, str, SkipReason, str | None]] = []

    def add(self, path: str, reason: SkipReason, detail: str | None = None) -> None:
        self._counts[reason] += 1
        self._first.append((_RANK[reason], path, reason, detail))
        if len(self._first) >= 2 * MOST_LISTED:
            self._cut()

    def inputs(self) -> SkippedInputs:
        self._cut()
        listed = (Skipped(Path(path), reason, detail) for _, path, reason, detail in self._first)
        counts = {reason: self._counts[reason] for reason in _RANK if self._counts[reason]}
        return SkippedInputs(counts, tuple(listed))

    def _cut(self) -> None:
        self._first.sort(key=lambda each: each[:2])
        del self._first[MOST_LISTED:]


class _Walk:
    """Folders still to visit, and what was found. Linked folders come last, so that real paths win."""

    def __init__(self) -> None:
        self.folders: list[str] = []
        self.links: list[str] = []
        self.files: dict[tuple[str, str], str] = {}
        self.skipped = _SkippedList()
        self._seen: set[tuple[int, int]] = set()
        self._real: dict[str, str] = {}

    def run(self) -> None:
        self.folders.sort(reverse=True)
        while self.folders or self.links:
            if self.folders:
                self._visit(self.folders.pop())
            else:
                self.links.sort(reverse=True)
                self._visit(self.links.pop(), linked=True)

    def take(self, folder: str, name: str, path: str) -> None:
        real = self._real.get(folder)
        if real is None:
            real = self._real[folder] = os.path.realpath(folder)
        known = self.files.get((real, name), path)
        self.files[real, name] = min(known, path)

    def _visit(self, folder: str, *, linked: bool = False) -> None:
        try:
            status = Path(folder).stat()
            if (status.st_dev, status.st_ino) in self._seen:
                if linked:
                    self.skipped.add(folder, "same_folder")
                return
            self._seen.add((status.st_dev, status.st_ino))
            with os.scandir(folder) as entries:
                for entry in entries:
                    self._sort_in(folder, entry)
        except OSError as error:
            self.skipped.add(folder, "unreadable_folder", error.strerror)

    def _sort_in(self, folder: str, entry: os.DirEntry[str]) -> None:
        suffix = entry.name[entry.name.rfind(".") :].lower() if "." in entry.name else ""
        if entry.name.startswith("."):
            self.skipped.add(entry.path, "hidden")
        elif _leads_to_folder(entry):
            (self.links if entry.is_symlink() else self.folders).append(entry.path)
        elif suffix in IMAGE_SUFFIXES:
            self.take(folder, entry.name, entry.path)
        else:
            self.skipped.add(entry.path, "other_file")


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads back to itself
        return False
