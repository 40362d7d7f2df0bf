"""Runs of several models: a folder each, one after the other, under limits that hold for all together."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from uncanny.errors import UncannyError, UsageError
from uncanny.models.registry import ModelId, ModelOptions
from uncanny.records.run_folder import RunFolder
from uncanny.runs.parameters import AskEachParameters, AskParameters, RunOptions
from uncanny.runs.progress import what_is_left
from uncanny.wording import option

T = TypeVar("T")
_LONGEST_NAME = 120


@dataclass(frozen=True, slots=True)
class Turn:
    """The run of one model: which models it asks, its folder, and its limits."""

    models: ModelOptions
    folder: Path
    options: RunOptions

    @classmethod
    def alone(cls, parameters: AskParameters) -> Turn:
        """The one run of `parameters`."""
        return cls(parameters.models, parameters.folder.path, parameters.options)

    def check(self) -> Turn:
        """Raises UsageError for a folder that is one of several models."""
        check_folders(self.folder, [self.models.model])
        return self


async def run_each_model(
    parameters: AskEachParameters, start: Callable[[Turn], Awaitable[T]]
) -> dict[str, T]:
    """The run of each model by its name, as `start` makes it.

    If a model cannot be asked, the others still run, and its error is raised at the end. No further model is
    asked once `stop` is requested. Raises UsageError before anything is asked if models or folders do not go
    together.
    """
    chosen = parameters.each_model()
    models = [each.model for each in chosen]
    out = parameters.folder.path
    folders = model_folders(models, out)
    check_folders(out, models)
    runs: dict[str, T] = {}
    errors: list[UncannyError] = []
    for name, each, folder in zip(parameters.models, chosen, folders, strict=True):
        if parameters.stop is not None and parameters.stop.requested:
            break
        try:
            runs[name] = await start(Turn(each, folder, limits_left(parameters.options, folder, folders)))
        except UncannyError as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return runs


def limits_left(options: RunOptions, folder: Path, folders: Iterable[Path]) -> RunOptions:
    """What the runs in the other `folders` leave the one in `folder` of limits that hold for all together."""
    return what_is_left(options, [RunFolder(other) for other in folders if other != folder])


def check_folders(out: Path, models: Sequence[ModelId]) -> None:
    """A folder is that of one run, or of one a model: the other kind would hide what is there.

    Raises UsageError.
    """
    if len(models) > 1 and (out / "run.json").exists():
        raise UsageError(
            f"{out} contains a run of one model",
            remedy=f"Pass another folder with {option('out')} for several models.",
        )
    inner = out / folder_name(models[0])
    if len(models) == 1 and not (out / "run.json").exists() and (inner / "run.json").exists():
        raise UsageError(
            f"{out} contains runs of several models",
            remedy=f"Pass {inner} with {option('out')} to resume this one.",
        )


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
                remedy="Pass each model once, or run each separately, into its own folder.",
            )
    return [parent / name for name in names]


def folder_name(model: ModelId) -> str:
    """The name of a model as that of a folder."""
    name = re.sub(r"[^A-Za-z0-9.+-]+", "_", str(model)).strip("_")
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[:_LONGEST_NAME]}_{hashlib.sha256(str(model).encode()).hexdigest()[:8]}"
