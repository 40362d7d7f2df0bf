"""Folders of this machine that may be read: what they are called, what lies in them, links followed.

Whoever uses the service names a folder given by `--root`, and what is in it, by the name that it has here,
and is not told where it lies. A link of that name leads to it, so that what jobs write says no more either.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Final

from uncanny.demo.sets import BUNDLED
from uncanny.errors import NotFoundError
from uncanny.images.discover import leads_to_folder
from uncanny.service.store.names import READ_SUFFIXES
from uncanny.service.store.uploads import FILE_SUFFIXES

# In the data folder, the links to roots.
ROOTS: Final = "roots"
_MOST: Final = 500
_LOOKED_AT: Final = 20_000


class Roots(Mapping[str, Path]):
    """The folders given by `--root`, real paths, by their names.

    Each keeps its name for good, also while it is not given: what jobs have written goes by it.
    """

    def __init__(self, links: Path, folders: Iterable[Path]) -> None:
        """`links` is the folder of the links, one for each name. Raises OSError."""
        self._links = links
        self._folders = {_name_for(folder, links): folder for folder in folders}

    def __getitem__(self, name: str) -> Path:
        return self._folders[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._folders)

    def __len__(self) -> int:
        return len(self._folders)

    def real(self, path: str) -> Path | None:
        """What `path` names, from a root's name on, from within a root, or absolute.

        None where nothing is there, or it lies in none of them.
        """
        name, _, rest = path.partition("/")
        places = [self._folders[name] / rest] if name in self._folders else []
        for place in (*places, *(folder / path for folder in self._folders.values())):
            found = real_below(place, self._folders.values())
            if found is not None:
                return found
        return None

    def name(self, real: Path) -> str:
        """What the real path of something in a root is called: from the root's name on."""
        root = max(
            (each for each, folder in self._folders.items() if real.is_relative_to(folder)),
            key=lambda each: len(self._folders[each].parts),
        )
        return Path(root, real.relative_to(self._folders[root])).as_posix()

    def place(self, path: str) -> Path | None:
        """The path that commands are given for `path`, and write down: it leads through the link of its root.

        None as of `real`.
        """
        real = self.real(path)
        if real is None:
            return None
        root = path.partition("/")[0]
        folder = self._folders.get(root)
        if folder is None or not real.is_relative_to(folder):
            return self._links / self.name(real)
        return self._links / root / real.relative_to(folder)


def _name_for(folder: Path, links: Path) -> str:
    """The name of the link to `folder`, which is made where there is none yet."""
    links.mkdir(exist_ok=True)
    plain = (
        "".join(char if char.isprintable() and char not in ":/" else "_" for char in folder.name) or "root"
    )
    for number in count(1):
        name = plain if number == 1 else f"{plain}-{number}"
        if name in _WORDS:
            continue
        with suppress(FileExistsError):
            (links / name).symlink_to(folder, target_is_directory=True)
        if (links / name).is_symlink() and (links / name).readlink() == folder:
            return name
    raise AssertionError("numbers do not end")


def link_to(link: Path, folder: Path) -> None:
    """Have `link` lead to `folder`, wherever it led before. Raises OSError."""
    link.parent.mkdir(exist_ok=True)
    if not link.is_symlink() or link.readlink() != folder:
        made = link.with_name(f".{link.name}-{os.getpid()}-{threading.get_ident()}")
        made.symlink_to(folder, target_is_directory=True)
        made.replace(link)


# What parameters of jobs mean by these is no folder.
_WORDS: Final = (*BUNDLED, "generated", "real")


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


def listing(roots: Roots, path: str | None) -> Listing:
    """What is in the folder `path`, or which `roots` there are.

    Raises NotFoundError for what is not a folder under a root, links resolved: also for what is there and may
    not be seen, so that nobody learns what lies elsewhere.
    """
    if not path:
        if len(roots) == 1:
            return listing(roots, next(iter(roots)))
        return Listing(None, None, [Entry(root, root, True) for root in roots], 0, 0)
    folder = roots.real(path)
    if folder is None or not folder.is_dir():
        raise NotFoundError("There is no such folder here", remedy="Choose one from the list.")
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
                if leads_to_folder(entry) and real_below(Path(entry.path), roots.values()) is not None:
                    folders.append(entry.name)
                elif suffix in READ_SUFFIXES:
                    images += 1
                elif suffix in FILE_SUFFIXES:
                    files.append(entry.name)
    except OSError as error:
        raise NotFoundError(
            f"The folder cannot be read: {error.strerror or error}", remedy="Choose another one."
        ) from error
    here = roots.name(folder)
    up = None if here in roots else here.rpartition("/")[0]
    if here in roots and len(roots) > 1:
        up = ""
    shown = [Entry(name, f"{here}/{name}", True) for name in sorted(folders)]
    shown += [Entry(name, f"{here}/{name}", False) for name in sorted(files)]
    return Listing(here, up, shown[:_MOST], images, max(0, len(shown) - _MOST))


def without_paths(text: str, named: Mapping[Path, str]) -> str:
    """Words for people who are not to know where things lie on this machine.

    A path below one of the `named` folders becomes the folder's name and what follows it, any other absolute
    path its last part, and one that leads to a root's link goes from its name on. Addresses on the network
    stay. A named folder is known whatever its path holds, spaces and line breaks for them too; of any other
    path with a space, only what stands before the space is known for one.
    """
    folders, paths = _paths_of(tuple(map(str, named)))

    def shorter(found: re.Match[str]) -> str:
        number = found.lastindex
        if number is None:
            return found[0].rstrip("/").rpartition("/")[2] or found[0]
        return (named[Path(folders[number - 1])] + found[0].removeprefix(found[number])).lstrip("/") or "."

    return paths.sub(shorter, _TO_ROOT.sub("", text))


@lru_cache(maxsize=64)
def _paths_of(named: Sequence[str]) -> tuple[Sequence[str], re.Pattern[str]]:
    """The folders but for the root of all, the longest first, and a group for each; other paths have none."""
    folders = sorted((folder for folder in named if folder != "/"), key=len, reverse=True)
    literal = "|".join(f"({_SPACES.sub(_ANY_SPACES, re.escape(folder))})" for folder in folders)
    below = rf"{_BEFORE}(?:{literal}){_AFTER_FOLDER}{_BELOW}|" if literal else ""
    return folders, re.compile(below + _ABSOLUTE)


_SPACES: Final = re.compile(r"(?:\\?\s)+")
_ANY_SPACES: Final = r"\\s+"
# Not within a word or an address: `and/or`, `https://…`, `run/annotations.jsonl`.
_BEFORE: Final = r"(?:(?<=file://)|(?<![\w./~*-]))"
_AFTER_FOLDER: Final = r"(?![\w@%+=~#-]|[.,:]+[\w@%+=~#-])"
# Of several paths with colons between them each is one.
_PART: Final = r"(?:[\w.@%+,=~#-]|:(?!/))"
_BELOW: Final = rf"(?:/(?:(?:{_PART}|/)*[\w@%+=~#-])?)?"
_ABSOLUTE: Final = rf"{_BEFORE}/(?:{_PART}+/)+[\w.@%+,=~#-]*[\w@%+=~#-]"
_TO_ROOT: Final = re.compile(rf"(?:\.\./)+{ROOTS}/")
