"""The images of a run by their name: paths, or the word `scenes` for the bundled ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from uncanny.demo.scenes import SCENES, scene_files, scenes
from uncanny.errors import UsageError
from uncanny.records.run_folder import copy_into


def name_images(
    paths: Sequence[Path], run: Path | None, *, copy: bool
) -> tuple[tuple[Path, ...], str | None]:
    """The paths, and the truth about them where their name says it.

    The bundled scenes, called `scenes`, are copied into `run`, unless `copy` is False.
    They are then those of an earlier copy in `run`, or else the package's own. Raises UsageError where they
    cannot be copied, or stand beside other paths.
    """
    bundled = [path for path in paths if str(path) == SCENES and not path.exists()]
    if not bundled:
        return tuple(paths), None
    if len(bundled) < len(paths):
        raise UsageError(
            "The bundled scenes cannot be mixed with other images", remedy="Make a separate run for each."
        )
    folder = (run or Path()) / "images"
    if not copy or run is None:
        copied = run is not None and folder.is_dir()
        return (folder if copied else scenes()[0].image_path.parent,), SCENES
    copy_into(folder, scene_files())
    return (folder,), SCENES
