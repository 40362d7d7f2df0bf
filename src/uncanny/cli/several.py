"""One command, one or several models: a run each, one after the other, and one table in the end.

What a command asks is the same for all of them; it comes as a function from a model and its folder to a
`Prepared` run. With one model the run is in the folder that is named, with several in folders in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncanny.cli.options import read_models, read_run_options
from uncanny.cli.session import (
    INTERRUPTED,
    RUN_CODES,
    Summary,
    run_here,
    show_end,
    show_forecast,
)
from uncanny.cli.terminal import complain, cost, harmless, layout, say, say_json
from uncanny.errors import UncannyError, UsageError
from uncanny.models.registry import is_provider
from uncanny.records.run_folder import RunFolder
from uncanny.runs.config import ModelOptions, RunOptions
from uncanny.runs.progress import what_is_left
from uncanny.runs.run import RunEnd
from uncanny.runs.several import check_folders, model_folders

if TYPE_CHECKING:
    from uncanny.runs.forecast import Forecast


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run that can be started, forecast, and told about."""

    summary: Summary
    forecast: Callable[[], Forecast]


@dataclass(frozen=True, slots=True)
class Scores:
    """What stands in the end under the runs of several models; `json` is None where nothing can be scored."""

    lines: Sequence[str]
    json: Any


# From a model, its folder (None for a dry run without one) and the limits left for it.
Prepare = Callable[[ModelOptions, Path | None, RunOptions], Prepared]


@dataclass(slots=True)
class _Result:
    """One model of several, with what became of it; `end` is None where it could not be started."""

    name: str
    folder: Path
    code: int = RUN_CODES["usage"]
    end: RunEnd | None = None
    error: str | None = None
    content: dict[str, Any] = field(default_factory=dict)


def ask_models(
    names: Sequence[str],
    out: Path | None,
    prepare: Prepare,
    score: Callable[[Sequence[Path]], Scores],
    *,
    check: Callable[[Path], None],
    dry_run: bool,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Make a run of each model, or forecast it. Returns the exit code, of several the worst.

    `check` raises UsageError for a folder that is no place for a run; `score` is given the folders that have
    records. A model that fails keeps the others from nothing; an interruption ends the command. Limits on
    cost and tokens hold for all models together. Raises UsageError before anything is asked.
    """
    models = [read_models(model=name, **options) for name in names]
    limits: RunOptions = read_run_options(**options)
    folders = model_folders([each.model for each in models], out)
    _check_addresses(models, options["base_urls"])
    if out is not None and not dry_run:
        check_folders(out, [each.model for each in models])
        for folder in folders:
            check(folder)
    if dry_run:
        targets = [None if out is None else folder for folder in folders]
        return _forecast(models, targets, prepare, limits, as_json=as_json)
    if len(models) == 1:
        prepared = prepare(models[0], folders[0], limits)
        end = run_here(prepared.summary.task, quiet=quiet)
        return show_end(prepared.summary, end, as_json=as_json, quiet=quiet)
    results = []
    for number, (model, folder) in enumerate(zip(models, folders, strict=True), 1):
        result = _Result(str(model.model), folder)
        results.append(result)
        if not quiet:
            complain(harmless(f"Model {number} of {len(models)}: {model.model} · {folder}"))
        others = [RunFolder(other) for other in folders if other != folder]
        _run(result, model, prepare, limits, others, as_json=as_json, quiet=quiet)
        if result.code == INTERRUPTED:
            break
    return _tell(results, score, as_json=as_json, quiet=quiet)


def _check_addresses(models: Sequence[ModelOptions], base_urls: Sequence[str]) -> None:
    """An address without a provider would be that of several."""
    providers = {each.model.provider for each in models}
    bare = [url for url in base_urls if not is_provider(url.partition("=")[0])]
    if bare and len(providers) > 1:
        raise UsageError(
            f"--base-url {bare[0]} is for one provider, and {', '.join(sorted(providers))} are asked",
            remedy="Write --base-url PROVIDER=URL.",
        )


def _run(
    result: _Result,
    model: ModelOptions,
    prepare: Prepare,
    limits: RunOptions,
    others: Sequence[RunFolder],
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    try:
        prepared = prepare(model, result.folder, what_is_left(limits, others))
        result.end = run_here(prepared.summary.task, quiet=quiet)
        result.code = show_end(
            prepared.summary,
            result.end,
            as_json=as_json,
            quiet=quiet,
            name=result.name,
            keep=result.content.update,
        )
        result.error = None if result.end.error is None else str(result.end.error)
    except (UncannyError, OSError) as error:
        result.error = str(error)
        lines = error.lines() if isinstance(error, UncannyError) else (str(error),)
        complain(layout([f"{result.name}: {lines[0]}", *lines[1:]]))


def _tell(
    results: Sequence[_Result], score: Callable[[Sequence[Path]], Scores], *, as_json: bool, quiet: bool
) -> int:
    code = max(result.code for result in results)
    scores = Scores((), None)
    try:
        scores = score([result.folder for result in results if result.end is not None])
    except UncannyError as error:
        complain(layout(["The runs cannot be scored together:", *error.lines()]))
        code = max(code, RUN_CODES["failures"])
    if as_json:
        models = {
            result.name: result.content or {"run": str(result.folder), "error": result.error}
            for result in results
        }
        say_json({"models": models, "scores": scores.json})
    elif not quiet:
        say(layout(["", *_overview(results), *(["", *scores.lines] if scores.lines else [])]))
    return code


def _overview(results: Sequence[_Result]) -> list[str]:
    """A line a model: how far it is, what failed, what it cost, and where it is."""
    width = max(len(result.name) for result in results)
    lines = []
    for result in results:
        end = result.end
        if end is None:
            facts = f"{'not started':<50}"
        else:
            progress = end.progress
            done = f"{progress.done:,}/{progress.total:,} {progress.unit}"
            spent = cost(progress.spending.figure("cost_usd"))
            facts = f"{done:<24}{f'{progress.failures:,} failed':<14}{spent:<12}"
        lines.append(f"{result.name:<{width}}  {facts}  {result.folder}")
    return lines


def _forecast(
    models: Sequence[ModelOptions],
    folders: Sequence[Path | None],
    prepare: Prepare,
    limits: RunOptions,
    *,
    as_json: bool,
) -> int:
    if len(models) == 1:
        prepared = prepare(models[0], folders[0], limits)
        return show_forecast(prepared.forecast(), as_json=as_json)
    code = 0
    forecasts: dict[str, Forecast] = {}
    for model, folder in zip(models, folders, strict=True):
        name = str(model.model)
        forecasts[name] = prepare(model, folder, limits).forecast()
        if not as_json:
            code = max(code, show_forecast(forecasts[name], name=name))
    if as_json:
        say_json({"models": {name: forecast.to_json() for name, forecast in forecasts.items()}})
    return code
