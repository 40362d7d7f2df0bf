"""Where the runs of several models go."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from uncanny.errors import UsageError
from uncanny.models.registry import ModelId

_LONGEST_NAME = 120


def model_folders(models: Sequence[ModelId], out: Path | None) -> list[Path]:
    """Where the run of each model goes: `out` itself for one, for several a folder in it by the model's name.

    The name does not depend on the other models, so that the same command finds its runs again. Raises
    UsageError for two models that would share a folder.
    """
    parent = out or Path("runs/unnamed")
    if len(models) == 1:
        return [parent]
    names = [folder_name(model) for model in models]
    for number, name in enumerate(names):
        first = [other.casefold() for other in names].index(name.casefold())
        if first < number:
            raise UsageError(
                f"{models[first]} and {models[number]} would share the folder {parent / name}",
                remedy="Name each model once, or give them folders of their own in commands of their own.",
            )
    return [parent / name for name in names]


def folder_name(model: ModelId) -> str:
    """The name of a model as that of a folder."""
    name = re.sub(r"[^A-Za-z0-9.+-]+", "_", str(model)).strip("_")
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[:_LONGEST_NAME]}_{hashlib.sha256(str(model).encode()).hexdigest()[:8]}"
