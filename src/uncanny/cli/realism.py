"""`uncanny realism`: which edited images would fool a viewer, by the two-order check."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import click
import orjson

from uncanny.cli.annotate import MOST_FAILURES, skipped_lines, spending_lines
from uncanny.cli.command import Group
from uncanny.cli.options import (
    OUTPUT_TOKENS,
    RESAMPLES,
    SEED,
    TEMPERATURE,
    TOP_P,
    SampledKeywords,
    several_models_options,
)
from uncanny.cli.outputs import (
    STANDARD_OUTPUT,
    check_outputs,
    check_run_folder,
    force_option,
    page,
    scores_json,
    table_csv,
)
from uncanny.cli.terminal import harmless, layout, say, say_json
from uncanny.errors import UsageError

if TYPE_CHECKING:
    from uncanny.cli.several import Prepared, Scores
    from uncanny.eval.realism.run import RealismTask
    from uncanny.eval.realism.verdicts import Verdict
    from uncanny.runs.config import ModelOptions, RunOptions
    from uncanny.runs.run import RunEnd

PATH = click.Path(path_type=Path)


@click.group("realism", cls=Group)
def command() -> None:
    """Find out which edited images would fool a viewer, by a check in both orders (UGDA).

    PAIRS is a JSON Lines file, one pair of an original and its edit a line, a folder with original/ and
    edited/ in it, or the word `scenes` for the bundled pairs.

    \b
    Out of the box:
      uncanny realism run scenes --model demo -o runs/r
      uncanny realism score runs/r
    """


@command.command("run")
@click.argument("pairs", required=False)
@click.option("-o", "--run", "run", type=PATH, help="The run folder. Needed to run.")
@several_models_options
@click.option("--original", type=PATH, help="In place of PAIRS: the folder of originals.")
@click.option("--edited", type=PATH, help="In place of PAIRS: the folder of edits, of the same names.")
@click.option(
    "--root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Where image paths start. [default: the pair file's folder]",
)
@force_option
@click.option(
    "--temperature", type=TEMPERATURE, default=0.1, show_default=True, help="Sent where the model takes one."
)
@click.option("--top-p", type=TOP_P, default=1.0, show_default=True, help="Sent where the model takes one.")
@click.option(
    "--max-output-tokens",
    type=OUTPUT_TOKENS,
    default=2048,
    show_default=True,
    help="Doubled when an answer is cut off.",
)
def run_command(
    pairs: str | None,
    run: Path | None,
    models: tuple[str, ...],
    original: Path | None,
    edited: Path | None,
    root: Path | None,
    force: bool,
    **options: Unpack[SampledKeywords],
) -> None:
    """Judge every pair of PAIRS, in one call or three each; the same command goes on where it stopped.

    With several models each has a run in a folder of its own in RUN, and a table of all scores follows.
    """
    from uncanny.cli.several import Prepared, ask_models
    from uncanny.eval.realism.data import load, pairs_of_run
    from uncanny.eval.realism.forecast import forecast_task
    from uncanny.eval.realism.run import RealismConfig, RealismTask
    from uncanny.records.run_folder import RunFolder

    dry = options["dry_run"]
    if run is None and not dry:
        raise UsageError("No run folder is named", remedy="Say where verdicts go with -o runs/NAME.")
    config = RealismConfig(options["temperature"], options["top_p"], options["max_output_tokens"])

    def prepare(model: ModelOptions, folder: Path | None, limits: RunOptions) -> Prepared:
        pair_set = load(pairs, original=original, edited=edited, root=root)
        if folder is not None:
            pair_set = pairs_of_run(pair_set, folder, store=not dry)
        task = RealismTask(
            folder=RunFolder(folder or Path("runs/unnamed")),
            pairs=pair_set,
            models=model,
            options=limits,
            root=root,
            config=config,
        )
        return Prepared(RealismSummary(task), partial(forecast_task, task))

    check = partial(
        check_run_folder, inputs=[] if pairs is None else [Path(pairs)], report=False, force=force
    )
    code = ask_models(models, run, prepare, scores_of_runs, check=check, **options)
    raise click.exceptions.Exit(code)


def scores_of_runs(folders: Sequence[Path]) -> Scores:
    """The table and the JSON of several runs; nothing where none has a verdict."""
    from uncanny.cli.several import Scores
    from uncanny.eval.realism.score import score
    from uncanny.eval.realism.verdicts import VERDICTS

    files = [folder / VERDICTS for folder in folders]
    judged = [file for file in files if file.is_file() and file.stat().st_size]
    if not judged:
        return Scores((), None)
    scores = score(judged)
    command = shlex.join(["uncanny", "realism", "score", *(str(file.parent) for file in judged)])
    return Scores([*str(scores).splitlines(), "", f"Score    {command}"], scores.to_json())


@command.command("score")
@click.argument("verdicts", nargs=-1, required=True, type=PATH)
@click.option(
    "--json", "json_file", type=PATH, metavar="FILE", help="Write every figure; - for standard output."
)
@click.option("--csv", "csv_file", type=PATH, metavar="FILE", help="Write a row a figure.")
@click.option(
    "--human",
    type=PATH,
    multiple=True,
    metavar="FILE",
    help="People's answers about the same images. Repeatable.",
)
@click.option("--published", is_flag=True, help="Show the published human figures too.")
@click.option(
    "--report", type=PATH, help="Where the page goes. [default: realism.html beside the first verdicts]"
)
@click.option("--no-report", is_flag=True, help="Write no page.")
@force_option
@click.option(
    "--root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Where image paths start, for the page. [default: as the run says]",
)
@click.option(
    "--resamples",
    type=RESAMPLES,
    default=10_000,
    show_default=True,
    help="Bootstrap resamples over pairs.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Same seed, same intervals.")
def score_command(
    verdicts: tuple[Path, ...],
    json_file: Path | None,
    csv_file: Path | None,
    human: tuple[Path, ...],
    published: bool,
    report: Path | None,
    no_report: bool,
    force: bool,
    root: Path | None,
    resamples: int,
    seed: int,
) -> None:
    """Score VERDICTS offline, several side by side: labels, cases, groups, position bias, calls saved.

    VERDICTS are verdicts.jsonl files or run folders. Labels are derived again from the answers.
    """
    from uncanny.eval.realism.result import COLUMNS, PAGE
    from uncanny.eval.realism.score import score
    from uncanny.records.jsonl import write_atomically

    piped = json_file == STANDARD_OUTPUT
    # Whoever pipes scores on wants no page unless one is named.
    wanted = not no_report and (report is not None or not piped)
    target = (report or _folder(verdicts[0]) / PAGE) if wanted else None
    known = ("labels", "cases", "position_bias")
    check_outputs(
        [
            None if json_file is None or piped else scores_json(json_file, known),
            None if csv_file is None else table_csv(csv_file, COLUMNS),
            None if target is None else page(target),
        ],
        [*verdicts, *human],
        force=force,
    )
    scores = score(verdicts, humans=human or None, published=published, resamples=resamples, seed=seed)
    if csv_file is not None:
        write_atomically(csv_file, [scores.to_csv().encode()])
    if piped:
        say_json(scores.to_json())
    elif json_file is not None:
        write_atomically(json_file, [orjson.dumps(scores.to_json(), option=orjson.OPT_INDENT_2)])
    if not piped:
        say(str(scores))
    if target is not None:
        scores.report(target, root=root)
        if not piped:
            say(harmless(f"Report   {target}"))


def _folder(verdicts: Path) -> Path:
    return verdicts if verdicts.is_dir() else verdicts.parent


@dataclass(frozen=True, slots=True)
class RealismSummary:
    """Counts, pairs without a label, and what to do next. There is no page: it belongs to the scores."""

    task: RealismTask

    def page(self) -> Path | None:
        return None

    def as_json(self, end: RunEnd, page: Path | None) -> dict[str, Any]:  # noqa: ARG002  there is none
        from uncanny.eval.realism.run import RealismRun

        return RealismRun(self.task.folder.path, end).to_json()

    def text(self, end: RunEnd, page: Path | None) -> str:  # noqa: ARG002
        from uncanny.eval.realism.run import RealismRun
        from uncanny.eval.realism.verdicts import VERDICTS

        run, progress = RealismRun(self.task.folder.path, end), end.progress
        left = progress.total - progress.done
        counts = ", ".join(
            f"{progress.statuses[kind]:,} {kind}" for kind in progress.kinds if progress.statuses[kind]
        )
        labels = ", ".join(f"{count:,} {label}" for label, count in run.labels().items())
        return layout(
            [
                *_without_label(run.verdicts),
                f"Pairs    {progress.total:,}: {counts or 'none done'}"
                + (f", {left:,} not done" if left else ""),
                *skipped_lines(end),
                f"Labels   {labels}",
                *spending_lines(end),
                "",
                f"Verdicts {run.path / VERDICTS}",
                f"Score    uncanny realism score {run.path}",
            ]
        )


def _without_label(verdicts: Iterable[Verdict]) -> list[str]:
    """The first of the pairs that have no label, with the reason."""
    lines = [_why(verdict) for verdict in verdicts if verdict.outcome not in (None, "judged")]
    more = [f"  … and {len(lines) - MOST_FAILURES:,} more"] if len(lines) > MOST_FAILURES else []
    return ["Without a label:", *lines[:MOST_FAILURES], *more, ""] if lines else []


def _why(verdict: Verdict) -> str:
    first = verdict.errors[0]
    more = f" (and {len(verdict.errors) - 1} more)" if len(verdict.errors) > 1 else ""
    return f"  {verdict.id} {verdict.outcome}, {first.asked}: {first.message}{more}"
