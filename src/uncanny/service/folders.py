"""Folders of this machine that may be read: whether something lies in them, links followed, and what does."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from uncanny.errors import NotFoundError
from uncanny.images.discover import leads_to_folder
from uncanny.service.store.names import READ_SUFFIXES
from uncanny.service.store.uploads import FILE_SUFFIXES

_MOST: Final = 500
_LOOKED_AT: Final = 20_000


@dataclass(frozen=True, slots=True)
class Entry:
    """A folder or a file in it: `path` is how a job names it."""

    name: str
    path: str
    is_folder: bool


@dataclass(frozen=True, slots=True)
class Listing:
    """What is in a folder. `path` is None above the roots, `up` where nothing further up may be seen.

    `images` counts the pictures directly in it, `more` what is not listed.
    """

    path: str | None
    up: str | None
    entries: Sequence[Entry]
    images: int
    more: int


def real_below(path: Path, folders: Iterable[Path]) -> Path | None:
    """Where `path` really lies; None where nothing is there, or it lies in none of `folders`.

    `folders` are real paths themselves.
    """
    try:
        real = path.resolve(strict=True)
    except (OSError, ValueError, RuntimeError):  # a zero character, links in a circle
        return None
    return real if any(real.is_relative_to(folder) for folder in folders) else None


def listing(roots: Sequence[Path], path: str | None) -> Listing:
    """What is in the folder `path`, or which `roots` there are, those given by `--root`.

    Raises NotFoundError for what is not a folder under a root, links resolved: also for what is there and may
    not be seen, so that nobody learns what lies elsewhere.
    """
    if not path:
        if len(roots) == 1:
            return listing(roots, str(roots[0]))
        return Listing(None, None, [Entry(str(root), str(root), True) for root in roots], 0, 0)
    folder = _checked(roots, path)
    folders: list[str] = []
    files: list[str] = []
    images = 0
    try:
        with os.scandir(folder) as entries:
            for number, entry in enumerate(entries):
                if number >= _LOOKED_AT:
                    break
                if entry.name.startswith("."):
                    continue
                suffix = Path(entry.name).suffix.lower()
                if leads_to_folder(entry) and real_below(Path(entry.path), roots) is not None:
                    folders.append(entry.name)
                elif suffix in READ_SUFFIXES:
                    images += 1
                elif suffix in FILE_SUFFIXES:
                    files.append(entry.name)
    except OSError as error:
        raise NotFoundError(
            f"The folder cannot be read: {error.strerror or error}", remedy="Choose another one."
        ) from error
    up = None if folder in roots else str(folder.parent)
    if folder in roots and len(roots) > 1:
        up = ""
    shown = [Entry(name, str(folder / name), True) for name in sorted(folders)]
    shown += [Entry(name, str(folder / name), False) for name in sorted(files)]
    return Listing(str(folder), up, shown[:_MOST], images, max(0, len(shown) - _MOST))


def _checked(roots: Sequence[Path], path: str) -> Path:
    real = real_below(Path(path), roots) if Path(path).is_absolute() else None
    if real is None or not real.is_dir():
        raise NotFoundError("There is no such folder here", remedy="Choose one from the list.")
    return real


def without_paths(text: str, named: Mapping[Path, str]) -> str:
    """Words for people who are not to know where things lie on this machine.

    A path below one of the `named` folders becomes the folder's name and what follows it, any other absolute
    path its last part. Addresses on the network stay.
    """

    def shorter(found: re.Match[str]) -> str:
        path = found[0]
        for folder, name in sorted(named.items(), key=lambda each: -len(str(each[0]))):
            if path == str(folder) or path.startswith(f"{folder}/"):
                return (name + path.removeprefix(str(folder))).lstrip("/") or "."
        return path.rstrip("/").rpartition("/")[2] or path

    return _ABSOLUTE.sub(shorter, text)


# Not within a word or an address: `and/or`, `https://…`, `run/annotations.jsonl`.
_ABSOLUTE: Final = re.compile(r"(?<![\w.:/~*-])/(?:[\w.@%+,=~:#-]+/)+[\w.@%+,=~#-]*[\w@%+=~#-]")
