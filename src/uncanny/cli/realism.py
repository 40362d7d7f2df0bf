"""`uncanny realism`: which edited images would fool a viewer, by the two-order check."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uncanny.cli.command import Group
from uncanny.cli.models import several_models_options
from uncanny.cli.numbers import OUTPUT_TOKENS, RESAMPLES, SEED, TEMPERATURE, TOP_P
from uncanny.cli.outputs import check_run_folder, force_option
from uncanny.errors import UsageError

if TYPE_CHECKING:
    from uncanny.runs.config import ModelOptions, RunOptions

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
    original: Path | None,
    edited: Path | None,
    root: Path | None,
    force: bool,
    **options: Any,
) -> None:
    """Judge every pair of PAIRS, in one call or three each; the same command goes on where it stopped.

    With several models each has a run in a folder of its own in RUN, and a table of all scores follows.
    """
    from uncanny.cli.realism_pairs import named_pairs
    from uncanny.cli.realism_score import scores_of_runs
    from uncanny.cli.realism_summary import RealismSummary
    from uncanny.cli.several import Prepared, ask_models
    from uncanny.eval.realism.forecast import forecast_realism, forecast_realism_text
    from uncanny.eval.realism.run import RealismJob, RealismPlan, run_realism
    from uncanny.records.run_folder import RunFolder

    dry = options["dry_run"]
    if run is None and not dry:
        raise UsageError("No run folder is named", remedy="Say where verdicts go with -o runs/NAME.")
    plan = RealismPlan(options["temperature"], options["top_p"], options["max_output_tokens"])

    def prepare(model: ModelOptions, folder: Path | None, limits: RunOptions) -> Prepared:
        found = named_pairs(pairs, original, edited, root, folder, dry=dry)
        target = RunFolder(folder or Path("runs/unnamed"))
        job = RealismJob(target, found, model, plan, options=limits, root=root)
        return Prepared(
            RealismSummary(job),
            partial(run_realism, job),
            partial(forecast_realism, job),
            forecast_realism_text,
        )

    check = partial(
        check_run_folder, inputs=[] if pairs is None else [Path(pairs)], report=False, force=force
    )
    code = ask_models(options.pop("models"), run, prepare, scores_of_runs, check=check, **options)
    raise click.exceptions.Exit(code)


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
def score_command(verdicts: tuple[Path, ...], **options: Any) -> None:
    """Score VERDICTS offline, several side by side: labels, cases, groups, position bias, calls saved.

    VERDICTS are verdicts.jsonl files or run folders. Labels are derived again from the answers.
    """
    from uncanny.cli.realism_score import score_and_show

    score_and_show(verdicts, **options)
