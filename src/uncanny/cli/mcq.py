"""`uncanny mcq`: the Q1–Q4 multiple-choice protocol, a command for each function of `uncanny.mcq`."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

import click

from uncanny.cli.common.asking import asking_options
from uncanny.cli.common.command import Group
from uncanny.cli.common.files import Output, ScoreFiles, at_rest, check_outputs, check_run_folder
from uncanny.cli.common.options import (
    FOLDER,
    PATH,
    F,
    Real,
    Whole,
    force_option,
    group_by_option,
    json_file_option,
    no_page_option,
    page_option,
    pictures_option,
    resamples_option,
    seed_option,
    table_options,
)
from uncanny.cli.common.places import Place, named_files
from uncanny.cli.common.summary import failure_lines, spending_lines, status_line, texts_lines
from uncanny.cli.common.terminal import complain, harmless, layout, say, width
from uncanny.cli.people import mcq_author_command, mcq_people_command
from uncanny.cli.server.run import on_server
from uncanny.eval.mcq.parameters import McqParameters
from uncanny.wording import counted

if TYPE_CHECKING:
    from uncanny.cli.common.several import Scores
    from uncanny.eval.common.pictures import PicturesMode
    from uncanny.eval.mcq.data.export import ExportForm
    from uncanny.eval.mcq.data.items import ItemSet
    from uncanny.eval.mcq.plan import PlannedScore
    from uncanny.eval.mcq.run import McqRun
    from uncanny.runs.run import RunEnd


class PlanKeywords(TypedDict):
    """The options that are those of `uncanny.mcq.plan`."""

    difference: float
    accuracy: float
    discordant: float | None
    scores: Path | None
    question: PlannedScore
    power: float
    alpha: float
    models: int
    items: int | None


_ROOT = click.option("--root", type=FOLDER, help="Where image paths start. [default: the item file's folder]")


@click.group("mcq", cls=Group)
def command() -> None:
    """Benchmark models on four questions about an artifact: is there one, where, which box, what.

    ITEMS is a JSON Lines file, one item an image, or the word `scenes` for the bundled set.

    \b
    Out of the box:
      uncanny mcq run scenes --model demo -o runs/m
      uncanny mcq score scenes runs/m/answers.jsonl
    """


command.add_command(mcq_people_command)
command.add_command(mcq_author_command)


@command.command("run")
@on_server("mcq")
@click.argument("items", type=Place("scenes"))
@asking_options(McqParameters)
@force_option
def run_command(items: str, force: bool, **values: Any) -> None:
    """Ask every question of ITEMS, each in a call of its own; the same command goes on where it stopped.

    With several models each has a run in a folder of its own in RUN, and a table of all scores follows.
    """
    from uncanny.cli.common.several import Asking, ask_models
    from uncanny.eval.mcq.data.load import load
    from uncanny.eval.mcq.forecast import forecast
    from uncanny.eval.mcq.run import run_async

    check = partial(check_run_folder, inputs=[Path(items)], report=False, force=force)

    def score(runs: Mapping[str, McqRun]) -> Scores:
        return scores_of_runs(load(items, root=values["root"])[: values["limit"]], items, list(runs.values()))

    summary = partial(McqSummary, items=items)
    asking = Asking(McqParameters, items, run_async, forecast, check, summary, score)
    raise click.exceptions.Exit(ask_models(asking, values))


@command.command("score")
@click.argument("items", type=Place("scenes"))
@click.argument("answers", nargs=-1, required=True, type=Place(named=True), metavar="[NAME=]ANSWERS…")
@json_file_option
@table_options
@click.option(
    "--parser",
    type=click.Choice(["exact", "lenient"]),
    default="exact",
    show_default=True,
    help="How answers are read; exact is the protocol.",
)
@group_by_option("items")
@resamples_option("Bootstrap resamples over images.")
@seed_option
@click.option(
    "--human",
    type=Place(named=True),
    multiple=True,
    metavar="[NAME=]FILE",
    help="Answers of one person, NAME; all are averaged. Repeatable.",
)
@click.option("--baselines", is_flag=True, help="Add random and always-E/no.")
@click.option("--published", is_flag=True, help="Show the published models beside yours.")
@click.option("--require-complete", is_flag=True, help="Missing answers are an error.")
@page_option("mcq.html beside the first answers")
@no_page_option
@pictures_option
@force_option
@_ROOT
def score_command(
    items: str,
    answers: tuple[str, ...],
    json_file: Path | None,
    csv_file: Path | None,
    markdown_file: Path | None,
    latex_file: Path | None,
    parser: Literal["exact", "lenient"],
    group_by: str | None,
    resamples: int,
    seed: int,
    human: tuple[str, ...],
    baselines: bool,
    published: bool,
    require_complete: bool,
    report: Path | None,
    no_report: bool,
    pictures: PicturesMode,
    force: bool,
    root: Path | None,
) -> None:
    """Score answers of any number of models against ITEMS, offline.

    ANSWERS are answers.jsonl files, predictions with one line an image, or run folders. NAME stands for the
    model in them, everywhere: one run a name.
    """
    from uncanny.eval.mcq.data.load import load
    from uncanny.eval.mcq.data.overlay import OVERLAYS
    from uncanny.eval.mcq.score.result import COLUMNS
    from uncanny.eval.mcq.score.score import score

    item_set = load(items, root=root)
    named = named_files(answers, what="sets of answers")
    people = named_files(human, what="people")
    paths = [*named.values()] if isinstance(named, dict) else named
    humans = [*people.values()] if isinstance(people, dict) else people
    beside = paths[0] if paths[0].is_dir() else paths[0].parent
    files = ScoreFiles.chosen(
        beside / "mcq.html",
        json_file=json_file,
        csv_file=csv_file,
        markdown_file=markdown_file,
        latex_file=latex_file,
        report=report,
        no_report=no_report,
    )
    keys = ("n_images", "splits", "patterns")
    check_outputs(files.outputs(keys, COLUMNS), [item_set.file, *paths, *humans], force=force)
    scores = score(
        item_set,
        _at_rest(named),
        human=_at_rest(people),
        parser=parser,
        group_by=group_by,
        resamples=resamples,
        seed=seed,
        baselines=baselines,
        require_complete=require_complete,
    )
    drawn = beside / OVERLAYS
    files.write(
        to_json=partial(scores.to_json, published=published),
        to_csv=scores.to_csv,
        tables=lambda: scores.tables(published=published),
        report=partial(scores.report, overlays=drawn if drawn.is_dir() else None, pictures=pictures),
    )


def _at_rest(files: dict[str, Path] | list[Path]) -> dict[str, Path] | list[Path]:
    if isinstance(files, dict):
        return {name: at_rest(path) for name, path in files.items()}
    return [*map(at_rest, files)]


def _percent(name: str, default: float | None, meaning: str) -> Callable[[F], F]:
    kind = Real(0, 100, above=True)
    return click.option(
        f"--{name}", type=kind, default=default, show_default=default is not None, help=meaning
    )


@command.command("plan")
@_percent("difference", 3.0, "Points that the two models are apart.")
@_percent("accuracy", 60.0, "Percent of items that the worse one gets right.")
@_percent(
    "discordant",
    None,
    "Percent of items that only one of the two gets right. [default: as of models that err independently]",
)
@click.option(
    "--scores",
    type=PATH,
    metavar="FILE",
    help="Take --discordant from the JSON of `mcq score` on several models.",
)
@click.option(
    "--question",
    type=click.Choice(["q1", "q2", "q3", "q4", "all_q1_4"]),
    default="all_q1_4",
    show_default=True,
    help="Of which score in --scores.",
)
@_percent("power", 80.0, "Percent of cases in which the difference is to be found.")
@_percent("alpha", 5.0, "Level of the test in percent.")
@click.option(
    "--models",
    type=Whole(2, 1_000),
    default=2,
    show_default=True,
    help="How many models are compared, each with each: the level is divided by the number of pairs.",
)
@click.option("--items", type=Whole(1, 10_000_000), help="Say what so many items can tell.")
@json_file_option
@table_options
@force_option
def plan_command(
    json_file: Path | None,
    csv_file: Path | None,
    markdown_file: Path | None,
    latex_file: Path | None,
    force: bool,
    **options: Unpack[PlanKeywords],
) -> None:
    """Say how many items it takes to tell two models apart, and what the items you have can tell.

    The power is that of the exact McNemar test that `mcq score` makes. It depends most on the items that only
    one of the two models gets right: --scores takes them from models that you have scored before.

    \b
    Out of the box:
      uncanny mcq plan --difference 3 --accuracy 60
      uncanny mcq plan --items 950 --models 5
    """
    from uncanny.eval.mcq.plan import plan, plan_heads

    files = ScoreFiles.chosen(
        None,
        json_file=json_file,
        csv_file=csv_file,
        markdown_file=markdown_file,
        latex_file=latex_file,
    )
    heads = plan_heads(options["items"])
    scores = options["scores"]
    keys = ("needed", "differences", "discordant")
    check_outputs(files.outputs(keys, heads), [] if scores is None else [scores], force=force)
    planned = plan(**options)
    files.write(to_json=planned.to_json, to_csv=planned.tables()[0].to_csv, tables=planned.tables)


@command.command("check")
@click.argument("items", type=Place("scenes"))
@_ROOT
@click.option("--images/--no-images", default=True, help="Open every image too. [default: images]")
def check_command(items: str, root: Path | None, images: bool) -> None:
    """Find everything that is wrong with an item file, all at once. Exit code 2 if there are errors."""
    from uncanny.eval.mcq.data.checks import check

    problems = check(items, root=root, images=images)
    if problems:
        say(layout(map(str, problems)))
    errors = sum(problem.severity == "error" for problem in problems)
    warnings = counted(len(problems) - errors, "warning")
    (complain if errors else say)(f"{counted(errors, 'error')}, {warnings}")
    raise click.exceptions.Exit(2 if errors else 0)


@command.command("overlay")
@click.argument("items", type=Place("scenes"))
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

    target = Output(out / ITEMS_FILE, "set drawn from these items", ours)
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
@click.argument("items", type=Place("scenes"))
@click.option(
    "-o", "--out", "out", type=PATH, required=True, help="A .parquet or .csv file, or the folder of --to hf."
)
@click.option(
    "--to",
    type=click.Choice(["hf", "parquet", "csv"]),
    help="hf: a folder with a card, for the Hugging Face Hub. [default: what the file's suffix says]",
)
@click.option("--license", metavar="ID", help="License in the card, such as cc-by-4.0.")
@click.option("--title", metavar="TEXT", help="Title of the card. [default: the folder's name]")
@click.option(
    "--prompts",
    type=FOLDER,
    metavar="DIR",
    help="Prompts of yours for items without their own. [default: uncanny's]",
)
@click.option(
    "--overlays/--no-overlays",
    default=True,
    help="Draw the pictures of Q3 that are not stored. [default: overlays]",
)
@_ROOT
@force_option
def export_command(
    items: str,
    out: Path,
    to: ExportForm | None,
    license: str | None,
    title: str | None,
    prompts: Path | None,
    overlays: bool,
    root: Path | None,
    force: bool,
) -> None:
    """Publish ITEMS: a table like the released one, or a dataset for the Hugging Face Hub.

    Pictures, drawn boxes and prompts are in it, so that `uncanny mcq run OUT` asks the same questions.
    """
    from uncanny.eval.mcq.data.export import export_form, export_table, exported_before
    from uncanny.eval.mcq.data.load import load

    item_set = load(items, root=root)
    if export_form(out, to) != "hf":
        check_outputs([Output(out, "table of these items", exported_before)], [item_set.file], force=force)
    made = export_table(
        item_set,
        out,
        to=to,
        overlays=overlays,
        prompts=prompts,
        license=license,
        title=title,
        force=force,
    )
    say(harmless(str(made)))
    if export_form(out, to) == "hf":
        if license is None:
            complain(harmless(f"No license is stated. Name one with --license, or in {made / 'README.md'}."))
        ask = ["uncanny", "mcq", "run", str(made), "--model", "demo", "-o", f"{made}-demo"]
        say(harmless(f"Try it: {shlex.join(ask)}"))


@command.command("build")
@click.argument("run", type=PATH)
@click.option("-o", "--out", "out", type=PATH, required=True, help="The item file to write.")
@click.option(
    "--seed", type=Whole(0, 2**63 - 1), default=0, show_default=True, help="Same seed, same drafts."
)
@force_option
def build_command(run: Path, out: Path, seed: int, force: bool) -> None:
    """Draft items from the annotations of RUN, reviewed ones where there are reviews.

    Each is marked `"draft": true` until a person has checked it. A file that differs from these drafts is not
    replaced: people may have worked on it.
    """
    from uncanny.eval.mcq.data.drafts import build
    from uncanny.eval.mcq.data.items import OPTIONS
    from uncanny.records.annotation_table import restore_lines

    # Whether these are the same drafts is for `build` to find out.
    place = Output(out, "file of just these drafts", lambda _: True)
    check_outputs([place], [run], force=force)
    drafts = build(run, out, seed=seed, force=force)
    records = restore_lines(run).read_bytes().splitlines()
    annotations = sum(bool(line.strip()) for line in records)
    say(harmless(f"{out}: {counted(len(drafts), 'draft')} from {counted(annotations, 'annotation')}"))
    boxless = sum(draft.q3 is not None and len(draft.q3.boxes) < len(OPTIONS) for draft in drafts)
    if boxless:
        say(
            f"{boxless} of them lack boxes of Q3 that the annotations do not have. "
            f"Draw them: {shlex.join(['uncanny', 'mcq', 'author', str(out)])}"
        )


@dataclass(frozen=True, slots=True)
class McqSummary:
    """Counts, failures, and what to do next. There is no page: `uncanny mcq score` writes it."""

    run: McqRun
    items: str

    def page(self) -> Path | None:
        return None

    def as_json(self, end: RunEnd, page: Path | None) -> dict[str, Any]:  # noqa: ARG002  there is none
        return self.run.to_json()

    def text(self, end: RunEnd, page: Path | None) -> str:  # noqa: ARG002
        file = self.run.path / self.run.record_file
        failures = [
            f"{answer.id} {answer.question}: {answer.error}"
            for answer in self.run.answers
            if answer.outcome == "error"
        ]
        return layout(
            [
                *failure_lines("Without an answer:", failures),
                status_line("Asked", end, zeros=True),
                *texts_lines(end),
                *spending_lines(end),
                "",
                f"Answers  {file}",
                f"Score    uncanny mcq score {self.items} {file}",
            ]
        )


def scores_of_runs(items: ItemSet, named: str, runs: Sequence[McqRun]) -> Scores:
    """The table and the JSON of several runs of the same items, which the command line calls `named`.

    Nothing where no run has an answer.
    """
    from uncanny.cli.common.several import Scores
    from uncanny.eval.common.tables import tables_text
    from uncanny.eval.mcq.score.score import score

    files = [run.path / run.record_file for run in runs]
    if not any(file.is_file() and file.stat().st_size for file in files):
        return Scores((), None)
    scores = score(items, [file for file in files if file.is_file()])
    # A folder that holds just these runs stands for all of them.
    folder = runs[0].path.parent
    beside = {file.parent for file in folder.glob(f"*/{runs[0].record_file}")}
    paths = [folder] if len(runs) > 1 and {run.path for run in runs} == beside else [run.path for run in runs]
    command = shlex.join(["uncanny", "mcq", "score", named, *map(str, paths)])
    return Scores(
        [*tables_text(scores.tables(), width()).splitlines(), f"Score    {command}"], scores.to_json()
    )
