"""Runs of several models: a folder each, one after the other, under limits that hold for all together."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from uncanny.errors import UncannyError, UsageError
from uncanny.models.registry import ModelId
from uncanny.records.run_folder import RunFolder
from uncanny.runs.config import AskOptions, ModelOptions, RunOptions, read_limits, read_models
from uncanny.runs.progress import what_is_left
from uncanny.wording import option

T = TypeVar("T")
_LONGEST_NAME = 120


async def run_models(
    models: str | Iterable[str],
    out: Path,
    options: AskOptions,
    start: Callable[[ModelOptions, Path, RunOptions], Awaitable[T]],
) -> T | dict[str, T]:
    """The run of one model, or of each of several by its name, as `start` makes it from a model, its folder
    and its limits.

    A model that cannot be asked keeps the others from nothing; its error is raised when they are through. No
    further model is asked once the `stop` of the options is requested. Raises UsageError before anything is
    asked where models or folders do not go together.
    """
    if isinstance(models, str):
        one_model = read_models(models, options)
        check_folders(out, [one_model.model])
        return await start(one_model, out, read_limits(options))
    if models is not None and not isinstance(models, Iterable):
        raise UsageError(f"{option('model')} must be the name of a model or a list of names, not {models!r}")
    models = tuple(models or ())
    if not models:
        raise UsageError("No models are named", remedy="Give one at least.")
    chosen = [read_models(name, options) for name in models]
    limits, stop = read_limits(options), options.get("stop")
    folders = model_folders([each.model for each in chosen], out)
    check_folders(out, [each.model for each in chosen])
    providers = {each.model.provider for each in chosen}
    if isinstance(options.get("base_url"), str) and len(providers) > 1:
        raise UsageError(
            f"{option('base_url')} is for one provider, and {', '.join(sorted(providers))} are asked",
            remedy="Give a mapping from provider to server.",
        )
    runs: dict[str, T] = {}
    errors: list[UncannyError] = []
    for name, each, folder in zip(models, chosen, folders, strict=True):
        if stop is not None and stop.requested:
            break
        others = [RunFolder(other) for other in folders if other != folder]
        try:
            runs[name] = await start(each, folder, what_is_left(limits, others))
        except UncannyError as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return runs


def check_folders(out: Path, models: Sequence[ModelId]) -> None:
    """A folder is that of one run, or of one a model: the other kind would hide what is there.

    Raises UsageError.
    """
    if len(models) > 1 and (out / "run.json").exists():
        raise UsageError(
            f"{out} holds a run of one model",
            remedy=f"Name another folder with {option('out')} for several models.",
        )
    inner = out / folder_name(models[0])
    if len(models) == 1 and not (out / "run.json").exists() and (inner / "run.json").exists():
        raise UsageError(
            f"{out} holds runs of several models",
            remedy=f"Name {inner} with {option('out')} to go on with this one.",
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
                remedy="Name each model once, or ask each by itself, into a folder of its own.",
            )
    return [parent / name for name in names]


def folder_name(model: ModelId) -> str:
    """The name of a model as that of a folder."""
    name = re.sub(r"[^A-Za-z0-9.+-]+", "_", str(model)).strip("_")
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[:_LONGEST_NAME]}_{hashlib.sha256(str(model).encode()).hexdigest()[:8]}"
