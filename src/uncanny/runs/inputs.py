"""The image files of a run: which there are, what records call them, what was passed over, how large they
are."""

from __future__ import annotations

import os
import re
import time
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, overload

from uncanny.errors import UsageError
from uncanny.images.discover import SkippedInputs, SkipReason, discover
from uncanny.images.file_bytes import current_stamp
from uncanny.images.prepared import stored_size
from uncanny.images.row_files import RowPaths
from uncanny.images.row_names import RowNames
from uncanny.records.run_folder import check_apart
from uncanny.runs.progress import Progress
from uncanny.wording import display_path, short_path

_MOST_NAMED = 3
_IN_TABLE = re.compile(r"\.(?:parquet|arrow)/", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ImageFile:
    """One file: `image` is its name in records, relative to the run folder or to the root.

    `content` are its bytes where they did not come from the file `path`, `cells` the keys of its record that
    say what a table has of it, None where nobody has looked.
    """

    path: Path
    image: str
    content: bytes | None = field(default=None, repr=False)
    cells: Mapping[str, Any] | None = field(default=None, repr=False)

    @property
    def source(self) -> Path | bytes:
        """Where its pixels are."""
        return self.path if self.content is None else self.content


@dataclass(frozen=True, slots=True)
class _Rows:
    """The images of a table, whose name in records is `image`."""

    image: str
    paths: RowPaths
    rows: range

    def at(self, place: int) -> ImageFile:
        name = self.paths.names[self.rows[place]]
        return ImageFile(self.paths.file / name, f"{self.image}/{name}")

    def row_of(self, name: str) -> int | None:
        names = self.paths.names
        if isinstance(names, RowNames):
            return names.row_of(name)
        return names.index(name) if name in names else None

    def has(self, name: str) -> bool:
        row = self.row_of(name)
        return row is not None and row in self.rows

    def called(self, name: str) -> ImageFile | None:
        row = self.row_of(name)
        return None if row is None or row not in self.rows else self.at(self.rows.index(row))


class ImageFiles(Sequence[ImageFile]):
    """The images of a run in their order. Those in tables are made when they are asked for."""

    def __init__(self, parts: Iterable[ImageFile | _Rows]) -> None:
        self._parts = tuple(parts)
        sizes = (len(part.rows) if isinstance(part, _Rows) else 1 for part in self._parts)
        *self._starts, self._length = accumulate(sizes, initial=0)

    @cached_property
    def by_name(self) -> Mapping[str, ImageFile]:
        """The images by their names in records."""
        return _ByName(self)

    @cached_property
    def named(self) -> Mapping[str, ImageFile | _Rows]:
        """Files and tables by their names in records."""
        return {part.image: part for part in self._parts}

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, place: int) -> ImageFile: ...
    @overload
    def __getitem__(self, place: slice) -> ImageFiles: ...
    def __getitem__(self, place: int | slice) -> ImageFile | ImageFiles:
        if isinstance(place, slice):
            wanted = range(*place.indices(self._length))
            if wanted.step == 1:
                return ImageFiles(self._cut(wanted))
            return ImageFiles(self[each] for each in wanted)
        number = bisect_right(self._starts, range(self._length)[place]) - 1
        part = self._parts[number]
        return part.at(range(self._length)[place] - self._starts[number]) if isinstance(part, _Rows) else part

    def _cut(self, wanted: range) -> Iterator[ImageFile | _Rows]:
        for part, start in zip(self._parts, self._starts, strict=True):
            if isinstance(part, ImageFile):
                if start in wanted:
                    yield part
            else:
                rows = part.rows[max(0, wanted.start - start) : max(0, wanted.stop - start)]
                if rows:
                    yield replace(part, rows=rows)

    def stamp(self, name: str, is_alone: Callable[[Path], bool]) -> str | None:
        """The stamp that the file of an image has now, in a table that of the table.

        None where there is no such image, its table cannot be read, or the image is not `is_alone`: where
        metadata may say something else of it.
        """
        part = self.named.get(name)
        if part is None and (match := _IN_TABLE.search(name)):
            table = name[: match.end() - 1]
            part = self.named.get(table)
            if not isinstance(part, _Rows) or not part.has(name[match.end() :]):
                return None
            if table not in self._stamps:
                place = part.paths.file
                readable = is_alone(place / part.paths.names[0])
                self._stamps[table] = current_stamp(place) if readable else None
            return self._stamps[table]
        return current_stamp(part.path) if isinstance(part, ImageFile) and is_alone(part.path) else None

    @cached_property
    def _stamps(self) -> dict[str, str | None]:
        return {}

    def folders(self) -> set[Path]:
        """Where they lie: folders, and tables."""
        return {part.paths.file if isinstance(part, _Rows) else part.path.parent for part in self._parts}

    def names(self) -> Iterator[str]:
        """What records call them, in their order."""
        for part in self._parts:
            if isinstance(part, ImageFile):
                yield part.image
            else:
                yield from (f"{part.image}/{part.paths.names[row]}" for row in part.rows)


class _ByName(Mapping[str, ImageFile]):
    def __init__(self, files: ImageFiles) -> None:
        self._files = files

    def __getitem__(self, name: str) -> ImageFile:
        part = self._files.named.get(name)
        if part is None and (match := _IN_TABLE.search(name)):
            part = self._files.named.get(name[: match.end() - 1])
            part = part.called(name[match.end() :]) if isinstance(part, _Rows) else None
        if not isinstance(part, ImageFile):
            raise KeyError(name)
        return part

    def __iter__(self) -> Iterator[str]:
        return self._files.names()

    def __len__(self) -> int:
        return len(self._files)


class PickedFiles(Sequence[ImageFile]):
    """Some of the images, by their `places`."""

    def __init__(self, files: ImageFiles, places: Iterable[int]) -> None:
        self._files, self._places = files, array("Q", places)

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> ImageFile: ...
    @overload
    def __getitem__(self, place: slice) -> PickedFiles: ...
    def __getitem__(self, place: int | slice) -> ImageFile | PickedFiles:
        places = self._places[place]
        return self._files[places] if isinstance(places, int) else PickedFiles(self._files, places)


@dataclass(frozen=True)
class Inputs:
    """The images of a session in order of their names, rows in that of their table, and what was skipped.

    `beyond` are images that the session leaves out for its limit. `places` are what records call the inputs
    as they were given: files, tables and folders.
    """

    files: ImageFiles
    skipped: SkippedInputs
    beyond: ImageFiles = field(default_factory=lambda: ImageFiles(()))
    places: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()

    def __contains__(self, image: object) -> bool:
        """Whether what a record calls `image` is still there, as far as these inputs can tell.

        Images outside the `places` are: another session may have been given them. So are those in a folder
        or table that cannot be read now.
        """
        if not isinstance(image, str):
            return False
        if self._has(image) or not any(_is_below(image, place) for place in self.places):
            return True
        match = _IN_TABLE.search(image)
        table = None if match is None else image[: match.end() - 1]
        return self._has(table) or any(_is_below(image, folder) for folder in self.unreadable)

    def _has(self, image: str | None) -> bool:
        return image is not None and (image in self.files.by_name or image in self.beyond.by_name)


def _is_below(image: str, place: str) -> bool:
    if place == ".":
        return not image.startswith(("../", "/"))
    return image.startswith(f"{place}/")


def find_inputs(
    paths: Sequence[Path],
    *,
    run: Path,
    root: Path | None = None,
    limit: int | None = None,
    image_column: str | None = None,
) -> Inputs:
    """Names are relative to `root`, or else to the run folder, with `/` on every system.

    Pictures in rows of Parquet and Arrow files are images, too; `image_column` is where they are if a file
    has several such columns. Raises UsageError when a path does not exist, no image is found, or the run
    folder is one of the images'.
    """
    discovered = discover(paths, rows=True, image_column=image_column)
    if not discovered.parts:
        passed_over = skipped_words(discovered.skipped.counts)
        raise UsageError(
            f"No images in {', '.join(display_path(path) for path in paths)}"
            + (f", only {passed_over}" if passed_over else ""),
            remedy="uncanny looks for files with an image extension, such as .png; pass other files by name.",
        )
    names = Names(root if root is not None else run)
    parts = [
        ImageFile(part, names.of(part))
        if isinstance(part, Path)
        else _Rows(names.of(part.file), part, range(len(part)))
        for part in discovered.parts
    ]
    # Rows of a table stay in their order, in which it is read.
    files = ImageFiles(sorted(parts, key=lambda part: part.image))
    check_apart(run, (), (*files.folders(), *(path for path in paths if path.is_dir())))
    skipped = discovered.skipped
    unreadable = (each.path for each in skipped.listed if each.reason == "unreadable_folder")
    return Inputs(
        files[:limit],
        skipped,
        beyond=files[limit if limit is not None else len(files) :],
        places=tuple(names.of(path) for path in paths),
        unreadable=tuple(names.of(path) for path in unreadable),
    )


class Names:
    """What records call files: each by its path from the folder `base`, and no two alike."""

    def __init__(self, base: Path) -> None:
        self._real: dict[Path, str] = {}
        self._base = self._absolute(base)

    def of(self, path: Path) -> str:
        return display_path(Path(os.path.relpath(self._absolute(path), self._base)))

    def _absolute(self, path: Path) -> str:
        """Links stay links, but for those that `..` leads out of: `link/..` is not where the link lies."""
        parts = path.parts
        if ".." not in parts:
            return os.path.abspath(path)  # noqa: PTH100
        after = len(parts) - parts[::-1].index("..")
        start = Path(*parts[:after])
        if start not in self._real:
            self._real[start] = os.path.realpath(start)
        return os.path.join(self._real[start], *parts[after:])  # noqa: PTH118


_WORDS: dict[SkipReason, tuple[str, str]] = {
    "unreadable_folder": ("folder that cannot be read", "folders that cannot be read"),
    "same_folder": ("link to a folder that is there already", "links to folders that are there already"),
    "hidden": ("hidden one", "hidden ones"),
    "other_file": ("file that is not an image", "files that are not images"),
}


def skipped_words(counts: Mapping[SkipReason, int]) -> str:
    """What was passed over, by number; empty where nothing was."""
    return ", ".join(f"{number:,} {_WORDS[reason][number > 1]}" for reason, number in counts.items())


def skipped_line(counts: Mapping[SkipReason, int]) -> list[str]:
    """The line of a summary about it; none where nothing was passed over."""
    return [f"Skipped  {skipped_words(counts)}"] if counts else []


def unreadable_warning(skipped: SkippedInputs) -> str | None:
    """What to tell about folders whose images are missing; None where there are none."""
    number = skipped.unreadable_folders
    if not number:
        return None
    folders = [each for each in skipped.listed if each.reason == "unreadable_folder"][:_MOST_NAMED]
    named = ", ".join(f"{short_path(each.path)} ({each.detail or 'no reason given'})" for each in folders)
    more = f" and {number - len(folders):,} more" if number > len(folders) else ""
    what = _WORDS["unreadable_folder"][number > 1]
    return f"{number:,} {what}, so images in {'it' if number == 1 else 'them'} are missing: {named}{more}"


def note_skipped(progress: Progress, skipped: SkippedInputs) -> None:
    """Enter what was passed over, with a warning for folders whose images are missing."""
    progress.skipped = skipped
    warning = unreadable_warning(skipped)
    if warning is not None:
        progress.warnings.append(warning)


MOST_OPENED = 200
# Those behind URLs take their time, and some never answer.
OPENING_S = 10.0


def sample_sizes(files: Sequence[ImageFile]) -> tuple[list[tuple[int, int]], int]:
    """Sizes by the headers of evenly spread files, and how many of all do not open, by that sample.

    No further one is opened when `OPENING_S` seconds are over: then the sample is of the first ones.
    """
    step = max(1, len(files) // MOST_OPENED)
    until, opened = time.monotonic() + OPENING_S, 0
    sizes: list[tuple[int, int]] = []
    for file in files[::step]:
        size = stored_size(file.path)
        opened += 1
        if size is not None:
            sizes.append(size)
        if time.monotonic() >= until:
            break
    unreadable = round((opened - len(sizes)) * len(files) / opened) if opened else 0
    return sizes, unreadable


def mean_size(sizes: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Width and height in pixels; 1024 each where nothing is known."""
    if not sizes:
        return 1024, 1024
    return sum(w for w, _ in sizes) // len(sizes), sum(h for _, h in sizes) // len(sizes)
