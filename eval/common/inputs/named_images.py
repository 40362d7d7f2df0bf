"""The images of a run by their name: paths, or a word for a bundled set: `scenes`, `large-scenes`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from uncanny.demo.scenes import SETS, bundled_set, scene_files
from uncanny.errors import UsageError
from uncanny.records.run_folder import copy_into


def name_images(
    paths: Sequence[Path], run: Path | None, *, copy: bool
) -> tuple[tuple[Path, ...], str | None]:
    """The paths, and the truth about them where their name says it.

    A bundled set, called by its word, is copied into `run`, unless `copy` is False.
    It is then that of an earlier copy in `run`, or else the package's own. Raises UsageError where it
    cannot be copied, or stands beside other paths.
    """
    bundled = [name for path in paths if (name := bundled_set(path)) is not None]
    if not bundled:
        return tuple(paths), None
    if len(bundled) < len(paths):
        raise UsageError(
            "The bundled scenes cannot be mixed with other images", remedy="Make a separate run for each."
        )
    folder = (run or Path()) / "images"
    if not copy or run is None:
        copied = run is not None and folder.is_dir()
        return (folder if copied else SETS[bundled[0]] / "images",), bundled[0]
    copy_into(folder, scene_files(bundled[0]))
    return (folder,), bundled[0]
