"""One command, one or several models: a run each, one after the other, and one table in the end.

A command brings the public functions it is about, with its own options filled in, as an `Asking`. With one
model the run is in the folder that is named, with several in folders in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from uncanny.cli.common.asking import asked, models_of
from uncanny.cli.common.session import INTERRUPTED, RUN_CODES, TerminalStop, show_end, show_forecast
from uncanny.cli.common.summary import Summary
from uncanny.cli.common.terminal import complain, say, say_json
from uncanny.errors import UncannyError, UsageError
from uncanny.eval.common.run_result import RunResult
from uncanny.models.registry import parse_model
from uncanny.runs.parameters import RunOptions, SpendLimits
from uncanny.runs.several import check_folders, limits_left, model_folders
from uncanny.wording import cost, harmless, layout, marked

if TYPE_CHECKING:
    from uncanny.parameters import Parameters
    from uncanny.runs.forecast import Forecast

R = TypeVar("R", bound=RunResult[Any])


@dataclass(frozen=True, slots=True)
class Scores:
    """What stands in the end under the runs of several models.

    `json` is None where nothing can be scored; `tests` between two models each stand beside it, where there
    are some.
    """

    lines: Sequence[str]
    json: Any
    tests: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Asking(Generic[R]):
    """What a command does with each of its models, and with their runs.

    `run` and `forecast` are the public functions, called with `inputs`, a model, a folder and what was given
    of the parameters `kind`. `check` raises UsageError for a folder that no run can be in. `score` gets the
    runs by model. `write` gets them too, also of one model, if files of their scores are wanted; `piped` says
    that one of these files is standard output, which then has nothing else.
    """

    kind: type[Parameters]
    inputs: Any
    run: Callable[..., Coroutine[Any, Any, R]]
    forecast: Callable[..., Forecast] | None
    check: Callable[[Path], None]
    summary: Callable[[R], Summary[R]]
    score: Callable[[Mapping[str, R]], Scores]
    write: Callable[[Mapping[str, R]], object] | None = None
    piped: bool = False


@dataclass(slots=True)
class _Result(Generic[R]):
    """One model of several, with what became of it; `run` is None where it could not be started."""

    name: str
    folder: Path
    code: int = RUN_CODES["usage"]
    run: R | None = None
    error: str | None = None
    content: dict[str, Any] = field(default_factory=dict)


def ask_models(asking: Asking[R], values: Mapping[str, Any]) -> int:
    """Make a run of each model, or forecast it. Returns the exit code, of several the worst.

    `values` are what click has parsed. If one model fails, the others still run; an interruption ends the
    command. Limits on cost and tokens hold for all models together. Raises UsageError before anything is
    asked.
    """
    names = models_of(values)
    out, quiet, as_json = (values[name] for name in ("out", "quiet", "as_json"))
    options = asked(asking.kind, values, names)
    options.pop("out", None)
    if out is None and not values["dry_run"]:
        raise UsageError("No run folder is given", remedy="Pass -o runs/NAME.")
    models = [parse_model(name) for name in names]
    names = [str(model) for model in models]
    folders = model_folders(models, out)
    if values["dry_run"]:
        targets = [None if out is None else folder for folder in folders]
        return _forecast(asking, names, targets, options, as_json=as_json)
    assert out is not None
    check_folders(out, models)
    for folder in folders:
        asking.check(folder)
    if len(names) == 1:
        run = asyncio.run(
            asking.run(asking.inputs, model=names[0], out=folders[0], stop=TerminalStop(), **options)
        )
        code = show_end(asking.summary(run), as_json=as_json, quiet=quiet or asking.piped)
        if asking.write is not None and run.end is not None and not run.end.lost:
            asking.write({names[0]: run})
        return code
    results = []
    for number, (name, folder) in enumerate(zip(names, folders, strict=True), 1):
        result: _Result[R] = _Result(name, folder)
        results.append(result)
        if not quiet:
            complain(harmless(f"Model {number} of {len(names)}: {name} · {folder}"))
        _run(result, asking, options, folders, as_json=as_json, quiet=quiet)
        if result.code == INTERRUPTED:
            break
    return _show_all(results, asking, as_json=as_json, quiet=quiet)


def _run(
    result: _Result[R],
    asking: Asking[R],
    options: dict[str, Any],
    folders: Sequence[Path],
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    try:
        shared = SpendLimits.model_fields
        given: dict[str, Any] = {name: options.get(name) for name in shared}
        left = limits_left(RunOptions(**given), result.folder, folders)
        limited = options | {name: getattr(left, name) for name in shared} | {"stop": TerminalStop()}
        run = asyncio.run(asking.run(asking.inputs, model=result.name, out=result.folder, **limited))
        result.run = run
        result.code = show_end(
            asking.summary(run),
            as_json=as_json,
            quiet=quiet or asking.piped,
            name=result.name,
            keep=result.content.update,
        )
        result.error = None if run.end is None or run.end.error is None else str(run.end.error)
    except (UncannyError, OSError) as error:
        result.error = str(error)
        lines = error.lines() if isinstance(error, UncannyError) else (str(error),)
        complain(layout([f"{result.name}: {marked(lines[0])}", *map(marked, lines[1:])]))


def _show_all(results: Sequence[_Result[R]], asking: Asking[R], *, as_json: bool, quiet: bool) -> int:
    code = max(result.code for result in results)
    runs = {result.name: result.run for result in results if result.run is not None}
    scores = Scores((), None)
    try:
        if runs:
            scores = asking.score(runs)
    except UncannyError as error:
        complain(layout(["The runs cannot be scored together:", *map(marked, error.lines())]))
        code = max(code, RUN_CODES["failures"])
    if as_json:
        models = {
            result.name: result.content or {"run": str(result.folder), "error": result.error}
            for result in results
        }
        tests = {"mcnemar": list(scores.tests)} if scores.tests else {}
        say_json({"models": models, "scores": scores.json, **tests})
    elif not quiet and not asking.piped:
        say(layout(["", *_overview(results), *(["", *scores.lines] if scores.lines else [])]))
    if asking.write is not None and runs:
        asking.write(runs)
    return code


def _overview(results: Sequence[_Result[R]]) -> list[str]:
    """A line a model: how far it is, what failed, what it cost, and where it is."""
    width = max(len(result.name) for result in results)
    lines = []
    for result in results:
        end = None if result.run is None else result.run.end
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
    asking: Asking[R],
    names: Sequence[str],
    folders: Sequence[Path | None],
    options: Mapping[str, Any],
    *,
    as_json: bool,
) -> int:
    if asking.forecast is None:
        raise UsageError("This command cannot forecast what it would cost", remedy="Try a few inputs first.")
    if len(names) == 1:
        forecast = asking.forecast(asking.inputs, model=names[0], out=folders[0], **options)
        return show_forecast(forecast, as_json=as_json)
    code = 0
    forecasts: dict[str, Forecast] = {}
    for name, folder in zip(names, folders, strict=True):
        forecasts[name] = asking.forecast(asking.inputs, model=name, out=folder, **options)
        if not as_json:
            code = max(code, show_forecast(forecasts[name], name=name))
    if as_json:
        models = {name: forecast.to_json() for name, forecast in forecasts.items()}
        say_json({"models": models, "total": _total_json(list(forecasts.values()))})
    else:
        say(layout(_total_lines(forecasts)))
    return code


def _total_json(forecasts: Sequence[Forecast]) -> dict[str, Any]:
    from uncanny.runs.forecast import total_usage

    usage = total_usage(forecast.usage for forecast in forecasts)
    return {
        "calls": usage.calls,
        "calls_least": sum(forecast.calls_least for forecast in forecasts),
        "calls_most": sum(forecast.calls_most for forecast in forecasts),
        **usage.input_json(),
        "output_tokens": usage.output_tokens,
        "cost_usd": usage.cost_usd,
    }


def _total_lines(forecasts: Mapping[str, Forecast]) -> list[str]:
    """All models together; where the cost of some is not known, that of the others, and which these are.

    What is not usual is counted as the most there can be.
    """
    from uncanny.runs.forecast import input_words, total_usage

    usage = total_usage(forecast.usage for forecast in forecasts.values())
    known = [each.cost_usd for each in forecasts.values() if each.cost_usd is not None]
    words = cost(usage.cost_usd)
    if known and usage.cost_usd is None:
        unknown = [harmless(name) for name, each in forecasts.items() if each.cost_usd is None]
        words = f"{cost(sum(known))}, and on top what {' and '.join(unknown)} cost{'s' * (len(unknown) == 1)}"
    most = "" if all(each.calls_usual is not None for each in forecasts.values()) else "up to "
    tokens = f"{input_words('{:,}'.format, usage)}, {usage.output_tokens:,} out without reasoning"
    return [
        f"All {len(forecasts):,} models together",
        f"Calls    {most}{usage.calls:,}",
        f"Tokens   {most or 'about '}{tokens}",
        f"Cost     {most if known else ''}{words}",
    ]
