"""From files and folders to the image files in them, in one order whatever the file system says.

Tables whose rows hold pictures are folders of a kind, where they are wanted: `_TableWalk`.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Literal, get_args

from uncanny.errors import UsageError
from uncanny.extras import pyarrow
from uncanny.files.beneath import open_beneath
from uncanny.images.columns import METADATA
from uncanny.images.row_files import (
    ROW_SUFFIXES,
    RowPaths,
    has_pictures,
    row_of,
    row_paths,
    row_place,
    saved_files,
)
from uncanny.images.signature import RAW_SUFFIXES, UNREAD_SUFFIXES
from uncanny.settings import settings
from uncanny.wording import option, short_path

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
    """Image files in order of their posix paths, each once; both are empty where there is nothing.

    Of a table there are the paths of its rows.
    """

    parts: tuple[Path | RowPaths, ...]
    skipped: SkippedInputs

    @property
    def files(self) -> tuple[Path, ...]:
        """Each file and each row by itself."""
        parts = ((part,) if isinstance(part, Path) else part for part in self.parts)
        return tuple(chain.from_iterable(parts))


def discover(paths: Sequence[Path], *, rows: bool = False, image_column: str | None = None) -> Discovered:
    """Walk the folders among `paths` and take the files among them, whatever these are called.

    Nothing is opened: broken links, pipes and damaged files with an image's name are found like any other,
    and told apart when they are read. A file given twice, or once by itself and once by its folder, is taken
    once; a link to a file is a file of its own. Raises `UsageError` for a path that does not exist.

    With `rows` pictures in Parquet and Arrow files are found, too, as the paths of `row_files`, in order of
    their rows: in files given by name, and in folders without any image file; see `_TableWalk`.
    `image_column` is the column they are in. Raises UsageError for a file given by name that holds none, and
    without pyarrow.
    """
    walk = _TableWalk(image_column) if rows else _Walk()
    for path in paths:
        if _is_folder(path, rows=rows):
            walk.folders.append(str(path))
        else:
            walk.take_named(path)
    walk.run()
    return Discovered(walk.found(), walk.skipped.inputs())


def _is_folder(path: Path, *, rows: bool) -> bool:
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except (OSError, ValueError) as error:
        if _is_link(path) or (rows and row_of(path) is not None):
            return False
        reason = error.strerror if isinstance(error, OSError) else str(error)
        remedy = "Give existing image files or folders."
        shown = short_path(path)
        scheme = path.parts[0] if path.parts else ""
        if re.fullmatch("[a-z][a-z0-9+.-]+:", scheme):
            shown = f"{scheme}//" + "/".join(path.parts[1:])
            reason = "images are not read from a URL that is given by itself"
            remedy = (
                "Write the URLs into a column of a Parquet file, give that file, and name the column with "
                f"{option('image_column')}."
            )
        if scheme == "hf:":
            reason = "data sets of the Hub are not loaded by their names"
            remedy = (
                "Download it with `hf download NAME --repo-type dataset --local-dir FOLDER`, and give FOLDER."
            )
        raise UsageError(f"{shown}: {reason}", remedy=remedy) from error


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

    def found(self) -> tuple[Path | RowPaths, ...]:
        return tuple(sorted((Path(each) for each in self.files.values()), key=Path.as_posix))

    def take_named(self, path: Path) -> None:
        """Take what was given by itself."""
        self.take(str(path.parent), path.name, str(path))

    def take(self, folder: str, name: str, path: str) -> None:
        real = self._real.get(folder)
        if real is None:
            real = self._real[folder] = os.path.realpath(folder)
        known = self.files.get((real, name), path)
        self.files[real, name] = min(known, path)

    def _visit(self, folder: str, *, linked: bool = False) -> None:
        allowed = settings().folders
        place: str | int = folder
        try:
            # Also what a folder elsewhere holds is not told.
            place = folder if allowed is None else open_beneath(folder, allowed)
            status = os.stat(place)  # noqa: PTH116
            if (status.st_dev, status.st_ino) in self._seen:
                if linked:
                    self.skipped.add(folder, "same_folder")
                return
            self._seen.add((status.st_dev, status.st_ino))
            with os.scandir(place) as entries:
                for entry in entries:
                    self._sort_in(folder, entry)
        except OSError as error:
            self.skipped.add(folder, "unreadable_folder", error.strerror)
        finally:
            if isinstance(place, int):
                os.close(place)

    def _sort_in(self, folder: str, entry: os.DirEntry[str]) -> None:
        path = os.path.join(folder, entry.name)  # noqa: PTH118  of a descriptor an entry knows its name only
        suffix = entry.name[entry.name.rfind(".") :].lower() if "." in entry.name else ""
        if entry.name.startswith("."):
            self.skipped.add(path, "hidden")
        elif leads_to_folder(entry):
            (self.links if entry.is_symlink() else self.folders).append(path)
        elif entry.name in METADATA:
            return  # read for what it says of the images
        elif suffix in IMAGE_SUFFIXES:
            self.take(folder, entry.name, path)
        else:
            self._pass_over(path, suffix)

    def _pass_over(self, path: str, suffix: str) -> None:  # noqa: ARG002  of use to tables
        self.skipped.add(path, "other_file")


class _TableWalk(_Walk):
    """The same with pictures in the rows of tables.

    A folder that was given and holds image files, itself or further down, is a folder of images, and tables
    in it are passed over: they may hold anything. In one without any they are what was meant. A table there
    that cannot be read is taken as a file, so that it gets a record that says why; one without pictures, and
    what `datasets` keeps beside its files, is passed over.
    """

    def __init__(self, image_column: str | None) -> None:
        super().__init__()
        self._column = image_column
        self._named: tuple[str, ...] = ()
        self._tables: list[str] = []
        self._rows: dict[Path, RowPaths] = {}

    def run(self) -> None:
        self._named = tuple(self.folders)
        super().run()
        with_images = [
            folder
            for folder in self._named
            if self._tables and any(Path(each).is_relative_to(folder) for each in self.files.values())
        ]
        for table in sorted(self._tables):
            beside_images = any(Path(table).is_relative_to(folder) for folder in with_images)
            if beside_images or not self._take_rows(Path(table)):
                self.skipped.add(table, "other_file")

    def take_named(self, path: Path) -> None:
        if (row := row_of(path)) is not None:
            if row_place(row) is None:
                raise UsageError(
                    f"{short_path(row.file)} has no row {row.name!r}",
                    remedy="Give the file to take all its rows.",
                )
            known = self._rows.get(row.file, RowPaths(row.file, ()))
            names = known.names if row.name in known.names else (*known.names, row.name)
            self._rows[row.file] = RowPaths(row.file, names)
        elif path.suffix.lower() in ROW_SUFFIXES and path.is_file():
            self._rows[path] = row_paths(path, self._column)
        else:
            super().take_named(path)

    def found(self) -> tuple[Path | RowPaths, ...]:
        """Rows follow each other as they lie in their file, which is read from front to back."""
        files = [each for each in super().found() if isinstance(each, Path)]
        return tuple(self._rows.get(each, each) for each in sorted((*files, *self._rows), key=Path.as_posix))

    def _pass_over(self, path: str, suffix: str) -> None:
        if suffix in ROW_SUFFIXES:
            self._tables.append(path)
        else:
            super()._pass_over(path, suffix)

    def _take_rows(self, table: Path) -> bool:
        """Whether there were any."""
        if table.suffix.lower() == ".arrow" and (saved := saved_files(table.parent)) is not None:
            if table not in saved:
                return False
            if missing := [each for each in saved if not each.is_file()]:
                raise UsageError(
                    f"{short_path(table.parent)} is incomplete: {missing[0].name} is missing",
                    remedy="Save the data set again, or pass the files that exist.",
                )
        try:
            if not has_pictures(table, self._column):
                return False
        except UsageError:
            pyarrow("pyarrow")  # without it nothing is wrong with the file
            self.take(str(table.parent), table.name, str(table))
            return True
        self._rows.setdefault(table, row_paths(table, self._column))
        return True


def leads_to_folder(entry: os.DirEntry[str]) -> bool:
    """Whether an entry of a folder is one, or a link to one; a link that leads back to itself is none."""
    try:
        return entry.is_dir()
    except OSError:
        return False
