"""From files and folders to the image files in them, in one order whatever the file system says."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from uncanny.errors import UsageError
from uncanny.images.naming import short_path

IMAGE_SUFFIXES = frozenset(
    {
        *(".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".apng", ".webp"),
        *(".gif", ".bmp", ".dib", ".tif", ".tiff", ".avif"),
    }
)
UNREAD_SUFFIXES = frozenset(
    {".heic", ".heif", ".jxl", ".jp2", ".svg", ".psd", ".ico", ".eps", ".exr", ".dng"}
)

SkipReason = Literal["hidden", "other_file", "unsupported_format", "unreadable_folder", "same_folder"]


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something inside a folder that is not taken; a skipped folder stands for all it holds.

    `same_folder`: a link to a folder that is walked already. `unsupported_format`: an image, but of a format
    that is not read.
    """

    path: Path
    reason: SkipReason


@dataclass(frozen=True, slots=True)
class Found:
    """Image files in order of their posix paths, each once; both parts are empty where there is nothing."""

    files: tuple[Path, ...]
    skipped: tuple[Skipped, ...]


def discover(paths: Sequence[Path]) -> Found:
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
    skipped = sorted(walk.skipped.items())
    return Found(tuple(files), tuple(Skipped(Path(path), reason) for path, reason in skipped))


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


class _Walk:
    """Folders still to visit, and what was found. Linked folders come last, so that real paths win."""

    def __init__(self) -> None:
        self.folders: list[str] = []
        self.links: list[str] = []
        self.files: dict[tuple[str, str], str] = {}
        self.skipped: dict[str, SkipReason] = {}
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
                    self.skipped[folder] = "same_folder"
                return
            self._seen.add((status.st_dev, status.st_ino))
            with os.scandir(folder) as entries:
                for entry in entries:
                    self._sort_in(folder, entry)
        except OSError:
            self.skipped[folder] = "unreadable_folder"

    def _sort_in(self, folder: str, entry: os.DirEntry[str]) -> None:
        suffix = entry.name[entry.name.rfind(".") :].lower() if "." in entry.name else ""
        if entry.name.startswith("."):
            self.skipped[entry.path] = "hidden"
        elif _leads_to_folder(entry):
            (self.links if entry.is_symlink() else self.folders).append(entry.path)
        elif suffix in IMAGE_SUFFIXES:
            self.take(folder, entry.name, entry.path)
        else:
            self.skipped[entry.path] = "unsupported_format" if suffix in UNREAD_SUFFIXES else "other_file"


def _leads_to_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads back to itself
        return False
