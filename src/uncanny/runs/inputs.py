"""The images of a run, and what each is called in its records."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from uncanny.errors import UsageError
from uncanny.images import Skipped, discover, display_path


@dataclass(frozen=True, slots=True)
class ImageFile:
    """One file: `image` is its name in records, relative to the run folder or to the root."""

    path: Path
    image: str


@dataclass(frozen=True, slots=True)
class Inputs:
    """All images of a run in order of their names, and what was passed over."""

    files: tuple[ImageFile, ...]
    skipped: tuple[Skipped, ...]


def find_inputs(
    paths: Sequence[Path], *, run: Path, root: Path | None = None, limit: int | None = None
) -> Inputs:
    """Names are relative to `root`, or else to the run folder, with `/` on every system.

    Raises UsageError when a path does not exist or no image is found.
    """
    found = discover(paths)
    if not found.files:
        raise UsageError(
            f"No images in {', '.join(display_path(path) for path in paths)}",
            remedy="Files with the usual image extensions are found; name other files one by one.",
        )
    base = os.path.abspath(root if root is not None else run)  # noqa: PTH100  links stay links
    named = (
        ImageFile(path, display_path(Path(os.path.relpath(os.path.abspath(path), base))))  # noqa: PTH100
        for path in found.files
    )
    files = sorted(named, key=lambda file: file.image)
    return Inputs(tuple(files[:limit]), found.skipped)
