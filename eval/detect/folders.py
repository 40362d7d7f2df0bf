"""The source of an image by the names of the folders it lies in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from uncanny.schema import Source

# `0_real` and `1_fake` are what the common collections of generated images are sorted into.
FOLDERS: Final[dict[str, Source]] = {
    "real": "real",
    "0_real": "real",
    "generated": "generated",
    "fake": "generated",
    "1_fake": "generated",
    "synthetic": "generated",
}


def folder_source(file: Path, paths: Sequence[Path]) -> Source | None:
    """What the folders between one of `paths`, itself included, and `file` say; None where they do not.

    Of a file given by itself its own folder counts. Names are taken in any case. Folders that say both, as
    in `real/old/fake`, say nothing.
    """
    names = [name.casefold() for name in _folders(file, paths)]
    said = {FOLDERS[name] for name in names if name in FOLDERS}
    return said.pop() if len(said) == 1 else None


def _folders(file: Path, paths: Sequence[Path]) -> tuple[str, ...]:
    for path in paths:
        if path != file and file.is_relative_to(path):
            return path.resolve().name, *file.relative_to(path).parent.parts
    return (file.resolve().parent.name,)
