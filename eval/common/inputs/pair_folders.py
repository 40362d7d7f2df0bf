"""Originals and their edits in two folders, paired by their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final, Generic, TypeVar

from uncanny.errors import ItemsError, Problem, UsageError
from uncanny.images.discover import SkippedInputs, discover
from uncanny.wording import counted, display_path, harmless, option

PAIRS: Final = "pairs.jsonl"
"""The file of pairs in a folder of `uncanny pairs items`."""


def pairs_file(path: Path) -> Path:
    """The file of pairs in such a folder; `path` itself for anything else."""
    file = path / PAIRS
    return file if file.is_file() and not (path / "original").is_dir() else path


@dataclass(frozen=True, slots=True)
class PairedFiles:
    """One pair; either file may be missing.

    `key` is the path within the folder without its suffix, `folder` where in there it is, None for its top.
    """

    key: str
    original: Path
    edited: Path

    @property
    def folder(self) -> str | None:
        return self.key.rpartition("/")[0] or None


def paired_files(original: Path, edited: Path) -> tuple[list[PairedFiles], SkippedInputs]:
    """Images of the same name in both folders, in order of names, and what else lies there.

    Suffixes may differ. An original may also lie further up than its edits, so that it serves several folders
    of them. A name that only one side has is a pair with a missing file. Raises UsageError where a folder is
    missing or there is no image, ItemsError where two images of a folder share a name.
    """
    for folder in (original, edited):
        if not folder.is_dir():
            raise UsageError(
                f"{folder} is not a folder",
                remedy="Give a pair file, a folder with original/ and edited/ in it, or both with "
                f"{option('original')} and {option('edited')}.",
            )
    (originals, beside_originals), (edits, beside_edits) = images_by_name(original), images_by_name(edited)
    pairs: list[PairedFiles] = []
    used: set[str] = set()
    for key, file in edits.items():
        match = next((name for name in names_outward(key) if name in originals), None)
        used.add(match or key)
        source = original / f"{key}{file.suffix}" if match is None else originals[match]
        pairs.append(PairedFiles(key, source, file))
    for key, file in originals.items():
        if key not in used:
            pairs.append(PairedFiles(key, file, edited / f"{key}{file.suffix}"))
    if not pairs:
        raise UsageError(f"No images in {original} and {edited}")
    return sorted(pairs, key=lambda pair: pair.key), beside_originals + beside_edits


def images_by_name(folder: Path) -> tuple[Mapping[str, Path], SkippedInputs]:
    """Image files by their path within the folder, without suffix, and what else is there.

    Raises ItemsError where two share a name.
    """
    inputs = discover([folder])
    images: dict[str, Path] = {}
    problems: list[Problem] = []
    for file in inputs.files:
        key = display_path(file.relative_to(folder).with_suffix(""))
        if key in images:
            message = f"{images[key].name} and {file.name} have the same name; keep one of them"
            problems.append(Problem(key, None, message))
        images.setdefault(key, file)
    if problems:
        raise ItemsError(str(folder), problems)
    return images, inputs.skipped


def names_outward(key: str) -> Iterator[str]:
    """The name itself, then without one folder after the other: `a/b/c`, `b/c`, `c`."""
    yield key
    _, slash, rest = key.partition("/")
    while slash:
        yield rest
        _, slash, rest = rest.partition("/")


def check_named_once(source: object, original: object, edited: object) -> None:
    """Raises UsageError unless pairs are named by a source or by the folders of both sides, not by both."""
    if (original is None) != (edited is None):
        raise UsageError(
            f"{option('original')} and {option('edited')} must be given together", remedy="Pass both folders."
        )
    if (source is None) == (original is None):
        raise UsageError(
            "No pairs are given" if source is None else "Pairs are given both as a source and as two folders",
            remedy=f"Pass either a source, or both {option('original')} and {option('edited')}.",
        )


P = TypeVar("P")


@dataclass(frozen=True, slots=True, repr=False)
class SetOfPairs(Generic[P]):
    """Pairs, where they came from, and what else lay in the folders; `unit` is what one is called."""

    unit: ClassVar[str]

    pairs: tuple[P, ...]
    source: tuple[Path, ...] | str = "program"
    skipped: SkippedInputs | None = None

    def __repr__(self) -> str:
        names = {
            "scenes": "the bundled scenes",
            "large-scenes": "the bundled large scenes",
            "program": "a program",
        }
        words = names[self.source] if isinstance(self.source, str) else ", ".join(map(str, self.source))
        return f"<{counted(len(self.pairs), self.unit)} of {harmless(words)}>"

    def __len__(self) -> int:
        return len(self.pairs)

    def __iter__(self) -> Iterator[P]:
        return iter(self.pairs)
