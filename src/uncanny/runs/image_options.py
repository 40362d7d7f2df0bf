"""What a run over images is started with, beside its models and limits: which images, and how they are sent.

Annotation and detection take it over in their public functions; see `runs.config` for the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Literal, TypedDict, TypeVar

from pydantic import BaseModel

from uncanny.errors import UsageError
from uncanny.images import PixelPolicy
from uncanny.parameters import refuse_table
from uncanny.prompts import PromptSet
from uncanny.prompts.folders import Protocol, read_prompts
from uncanny.records.run_folder import RunFolder
from uncanny.runs.config import (
    AskOptions,
    ModelOptions,
    RunOptions,
    check_options,
    chosen,
    read_limits,
    read_models,
)

C = TypeVar("C", bound=BaseModel)
Images = str | Path | Sequence[str | Path]


class PictureOptions(TypedDict, total=False):
    """How one image is asked about and sent: sampling and pixels, as keyword options."""

    temperature: float | None
    top_p: float | None
    max_output_tokens: int
    max_side: int | None
    image_format: Literal["keep", "png", "jpeg"]
    jpeg_quality: int
    max_pixels: int


class ImageOptions(AskOptions, PictureOptions, total=False):
    """How images are read and asked about: sampling, pixels and the column of tables, as keyword options."""

    image_column: str | None
    columns: Sequence[str] | None


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


def image_run(
    protocol: Protocol,
    images: Images,
    model: str,
    out: str | Path,
    root: str | Path | None,
    options: ImageOptions,
    known: type[ImageOptions],
) -> ImageRun:
    """A run of `protocol` over images from the parameters of a public function; `known` are its options.

    Raises UsageError.
    """
    check_options(options, known, out=out, root=root)
    return {
        "folder": RunFolder(Path(out)),
        "paths": image_paths(images),
        "models": read_models(model, options),
        "options": read_limits(options),
        "policy": read_policy(options),
        "root": None if root is None else Path(root),
        "prompts": read_prompts(protocol, options.get("prompts")),
        "image_column": options.get("image_column"),
        "columns": options.get("columns"),
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


def read_config(kind: type[C], options: PictureOptions) -> C:
    """What of `options` is in a configuration. Raises UsageError as `kind` does."""
    return kind(**chosen(options, kind.model_fields))


def read_policy(options: PictureOptions) -> PixelPolicy:
    """What of `options` is about pixels. Raises UsageError."""
    pixels = PixelPolicy()
    return PixelPolicy(
        options.get("max_side", pixels.max_side),
        options.get("image_format", pixels.format),
        options.get("jpeg_quality", pixels.jpeg_quality),
        options.get("max_pixels", pixels.max_pixels),
    )
