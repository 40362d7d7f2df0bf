"""`uncanny mcq`: the Q1–Q4 multiple-choice protocol, a command for each function of `uncanny.mcq`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

import click

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
from uncanny.cli.outputs import Output, check_outputs, check_run_folder, force_option
from uncanny.cli.terminal import complain, harmless, layout, say
from uncanny.errors import UsageError

if TYPE_CHECKING:
    from uncanny.cli.several import Prepared, Scores
    from uncanny.runs.config import ModelOptions, RunOptions


PATH = click.Path(path_type=Path)
_ROOT = click.option(
    "--root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Where image paths start. [default: the item file's folder]",
)


class ScoreKeywords(TypedDict):
    """The options of `uncanny mcq score`."""

    human: tuple[Path, ...]
    report: Path | None
    no_report: bool
    json_file: Path | None
    published: bool
    force: bool
    parser: Literal["exact", "lenient"]
    resamples: int
    seed: int
    baselines: bool
    require_complete: bool


@click.group("mcq", cls=Group)
def command() -> None:
    """Benchmark models on four questions about an artifact: is there one, where, which box, what.

    ITEMS is a JSON Lines file, one item an image, or the word `scenes` for the bundled set.

    \b
    Out of the box:
      uncanny mcq run scenes --model demo -o runs/m
      uncanny mcq score scenes runs/m/answers.jsonl
    """


@command.command("run")
@click.argument("items")
@click.option("-o", "--run", "run", type=PATH, help="The run folder. Needed to run.")
@several_models_options
@_ROOT
@click.option(
    "--temperature", type=TEMPERATURE, default=0.0, show_default=True, help="Sent where the model takes one."
)
@click.option("--top-p", type=TOP_P, help="Sent where the model takes one. [default: the model's own]")
@click.option(
    "--max-output-tokens",
    type=OUTPUT_TOKENS,
    default=2000,
    show_default=True,
    help="Doubled when an answer is cut off.",
)
@force_option
@click.option("--control", is_flag=True, help="Ask Q4 again without the image.")
def run_command(
    items: str,
    run: Path | None,
    models: tuple[str, ...],
    root: Path | None,
    control: bool,
    force: bool,
    **options: Unpack[SampledKeywords],
) -> None:
    """Ask every question of ITEMS, each in a call of its own; the same command goes on where it stopped.

    With several models each has a run in a folder of its own in RUN, and a table of all scores follows.
    """
    from uncanny.cli.mcq_score import McqSummary, scores_of_runs
    from uncanny.cli.several import Prepared, ask_models
    from uncanny.eval.mcq.data.load import load
    from uncanny.eval.mcq.forecast import forecast_task
    from uncanny.eval.mcq.run import McqConfig, McqTask
    from uncanny.records.run_folder import RunFolder

    if run is None and not options["dry_run"]:
        raise UsageError("No run folder is named", remedy="Say where answers go with -o runs/NAME.")
    config = McqConfig(options["temperature"], options["top_p"], options["max_output_tokens"], control)

    def prepare(model: ModelOptions, folder: Path | None, limits: RunOptions) -> Prepared:
        # A dry run leaves nothing behind, so the bundled set goes to a temporary place.
        item_set = load(items, root=root, folder=None if options["dry_run"] else folder)
        task = McqTask(
            folder=RunFolder(folder or Path("runs/unnamed")),
            items=item_set,
            models=model,
            options=limits,
            config=config,
        )
        return Prepared(McqSummary(task, items), partial(forecast_task, task))

    def score(folders: Sequence[Path]) -> Scores:
        return scores_of_runs(load(items, root=root)[: options["limit"]], items, folders)

    check = partial(check_run_folder, inputs=[Path(items)], report=False, force=force)
    raise click.exceptions.Exit(ask_models(models, run, prepare, score, check=check, **options))


@command.command("score")
@click.argument("items")
@click.argument("answers", nargs=-1, required=True, type=PATH)
@click.option(
    "--json", "json_file", type=PATH, metavar="FILE", help="Write every figure; - for standard output."
)
@click.option(
    "--parser",
    type=click.Choice(["exact", "lenient"]),
    default="exact",
    show_default=True,
    help="How answers are read; exact is the protocol.",
)
@click.option(
    "--resamples",
    type=RESAMPLES,
    default=10_000,
    show_default=True,
    help="Bootstrap resamples over images.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Same seed, same intervals.")
@click.option(
    "--human", type=PATH, multiple=True, help="Answers of one person; all are averaged. Repeatable."
)
@click.option("--baselines", is_flag=True, help="Add random and always-E/no.")
@click.option("--published", is_flag=True, help="Show the published models beside yours.")
@click.option("--require-complete", is_flag=True, help="Missing answers are an error.")
@click.option("--report", type=PATH, help="Where the page goes. [default: mcq.html beside the first answers]")
@click.option("--no-report", is_flag=True, help="Write no page.")
@force_option
@_ROOT
def score_command(
    items: str, answers: tuple[Path, ...], root: Path | None, **options: Unpack[ScoreKeywords]
) -> None:
    """Score answers of any number of models against ITEMS, offline.

    ANSWERS are answers.jsonl files, predictions with one line an image, or run folders.
    """
    from uncanny.cli.mcq_score import score_and_show
    from uncanny.eval.mcq.data.load import load

    score_and_show(load(items, root=root), answers, **options)


@command.command("check")
@click.argument("items")
@_ROOT
@click.option("--images/--no-images", default=True, help="Open every image too. [default: images]")
def check_command(items: str, root: Path | None, images: bool) -> None:
    """Find everything that is wrong with an item file, all at once. Exit code 2 if there are errors."""
    from uncanny.eval.mcq.data.checks import check

    problems = check(items, root=root, images=images)
    if problems:
        say(layout(map(str, problems)))
    errors = sum(problem.severity == "error" for problem in problems)
    (complain if errors else say)(f"{errors} errors, {len(problems) - errors} warnings")
    raise click.exceptions.Exit(2 if errors else 0)


@command.command("overlay")
@click.argument("items")
@click.option("-o", "--out", "out", type=PATH, required=True, help="Folder for the images.")
@_ROOT
@force_option
def overlay_command(items: str, out: Path, root: Path | None, force: bool) -> None:
    """Draw the boxes of Q3 and write OUT/items.jsonl, which names the drawn images."""
    from uncanny.eval.mcq.data.load import ITEMS_FILE, load
    from uncanny.eval.mcq.data.overlay import drawn_before, overlay

    item_set = load(items, root=root, folder=out)

    def ours(file: Path) -> bool:
        return drawn_before(file, item_set)

    target = Output(out / ITEMS_FILE, "set drawn from these items", ours, makes_folder=True)
    check_outputs([target], [item_set.file], force=force)
    say(harmless(str(overlay(item_set, out).file)))


@command.command("import")
@click.argument("source", type=PATH)
@click.option("-o", "--out", "out", type=PATH, required=True, help="Folder for items.jsonl and the images.")
def import_command(source: Path, out: Path) -> None:
    """Import a released flat table (Parquet, CSV, or a folder of shards), embedded images included.

    Or raw annotation payloads as JSON Lines, each with `id`, `image` and `split` beside it.
    """
    from uncanny.eval.mcq.data.released import import_table

    say(harmless(str(import_table(source, out).file)))


@command.command("export")
@click.argument("items")
@click.option("-o", "--out", "out", type=PATH, required=True, help="The table, .parquet or .csv.")
@_ROOT
@force_option
def export_command(items: str, out: Path, root: Path | None, force: bool) -> None:
    """Write ITEMS as a flat table like the released one, option E added."""
    from uncanny.eval.mcq.data.export import export_table, exported_before
    from uncanny.eval.mcq.data.load import load

    item_set = load(items, root=root)
    check_outputs([Output(out, "table of these items", exported_before)], [item_set.file], force=force)
    say(harmless(str(export_table(item_set, out))))


@command.command("build")
@click.argument("run", type=PATH)
@click.option("-o", "--out", "out", type=PATH, required=True, help="The item file to write.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Same seed, same drafts.")
@force_option
def build_command(run: Path, out: Path, seed: int, force: bool) -> None:
    """Draft items from the annotations of RUN, reviewed ones where there are reviews.

    Each is marked `"draft": true` until a person has checked it. A file that differs from these drafts is not
    replaced: people may have worked on it.
    """
    from uncanny.eval.mcq.data.drafts import build

    # Whether these are the same drafts is for `build` to find out.
    place = Output(out, "file of just these drafts", lambda _: True, makes_folder=True)
    check_outputs([place], [run], force=force)
    drafts = build(run, out, seed=seed, force=force)
    records = (run / "annotations.jsonl").read_bytes().splitlines()
    annotations = sum(bool(line.strip()) for line in records)
    say(harmless(f"{out}: {len(drafts)} drafts from {annotations} annotations"))
