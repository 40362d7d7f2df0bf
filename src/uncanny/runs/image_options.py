"""What a run over images is started with, beside its models and limits: which images, and how they are sent.

Annotation and detection take it over in their public functions; see `runs.config` for the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import TypedDict, TypeVar

from pydantic import BaseModel

from uncanny.errors import UsageError
from uncanny.images.encode import PixelPolicy
from uncanny.parameters import refuse_table
from uncanny.prompts import PromptSet
from uncanny.prompts.folders import read_prompts
from uncanny.records.run_folder import RunFolder
from uncanny.runs.config import ModelOptions, RunOptions
from uncanny.runs.parameters import ImageParameters

C = TypeVar("C", bound=BaseModel)
Images = str | Path | Sequence[str | Path]


class ImageRun(TypedDict):
    """What every task over images is made of, beside its configuration."""

    folder: RunFolder
    paths: tuple[Path, ...]
    models: ModelOptions
    options: RunOptions
    policy: PixelPolicy
    root: Path | None
    prompts: PromptSet
    image_column: str | None
    columns: Sequence[str] | None


def task_parts(protocol: str, images: Images, parameters: ImageParameters) -> ImageRun:
    """What every task over images is made of, from the parameters of a public function. Raises UsageError."""
    return {
        "folder": parameters.folder,
        "paths": image_paths(images),
        "models": parameters.models,
        "options": parameters.limits,
        "policy": parameters.policy,
        "root": None if parameters.root is None else Path(parameters.root),
        "prompts": read_prompts(protocol, parameters.prompts),
        "image_column": parameters.image_column,
        "columns": parameters.columns,
    }


def image_paths(images: Images) -> tuple[Path, ...]:
    """One path or several, as paths. Raises UsageError for anything else, and where there are none."""
    if isinstance(images, str | PathLike):
        images = (images,)
    refuse_table(images, "Images of a run are paths of files and folders")
    paths = tuple(images) if isinstance(images, Iterable) and not isinstance(images, bytes) else (images,)
    for path in paths:
        if not isinstance(path, str | PathLike):
            raise UsageError(
                f"Images of a run are paths of files and folders, not {type(path).__name__}",
                remedy="Save it first, or give it to annotate_image.",
            )
        if not str(path) or "\0" in str(path):
            raise UsageError(
                f"No file or folder is called {str(path)!r}", remedy="Write `.` for the one here."
            )
    if not paths:
        raise UsageError("There are no images", remedy="Give one path at least.")
    return tuple(Path(path) for path in paths)
