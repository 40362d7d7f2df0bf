"""`uncanny mcq`: the Q1–Q4 multiple-choice protocol, a command for each function of `uncanny.mcq`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uncanny.cli.common.asking import asking_options
from uncanny.cli.common.command import Group
from uncanny.cli.common.files import (
    Output,
    ScoreFiles,
    all_at_rest,
    check_outputs,
    check_run_folder,
    in_folder_of,
    paths_of,
)
from uncanny.cli.common.options import PATH, force_option, score_options
from uncanny.cli.common.parameters import given_parameters, parameter_options
from uncanny.cli.common.places import Place, named_files
from uncanny.cli.common.summary import Summary, failure_lines
from uncanny.cli.common.terminal import complain, say, width
from uncanny.cli.serving.people import mcq_author_command, mcq_people_command, mcq_review_command
from uncanny.errors import UsageError, alike
from uncanny.eval.mcq.parameters import (
    BuildParameters,
    CheckParameters,
    ExportParameters,
    ImportParameters,
    KeepParameters,
    McqParameters,
    McqScoreParameters,
    OverlayParameters,
    PlanParameters,
)
from uncanny.wording import counted, harmless, layout

if TYPE_CHECKING:
    from uncanny.cli.common.several import Scores
    from uncanny.eval.mcq.data.items import ItemSet
    from uncanny.eval.mcq.run import McqRun


@click.group("mcq", cls=Group)
def command() -> None:
    """Benchmark models on four questions about an artifact: is there one, where, which box, what.

    ITEMS is a JSON Lines file, one item per image, or the word `scenes` for the bundled set.

    \b
    Out of the box:
      uncanny mcq run scenes --model demo -o runs/m
      uncanny mcq score scenes runs/m/answers.jsonl
    """


command.add_command(mcq_people_command)
command.add_command(mcq_review_command)
command.add_command(mcq_author_command)


@command.command("run", job="mcq")
@click.argument("items", type=Place("scenes"))
@asking_options(McqParameters)
@force_option
def run_command(items: str, force: bool, **values: Any) -> None:
    """Ask all questions of ITEMS, one call each; the same command resumes the run.

    With several models, each gets its own run folder in RUN, and a table of all scores follows.
    """
    from uncanny.cli.common.several import Asking, ask_models
    from uncanny.eval.mcq.data.load import load
    from uncanny.eval.mcq.run import forecast, run_async

    check = partial(check_run_folder, inputs=[Path(items)], report=False, force=force)

    def score(runs: Mapping[str, McqRun]) -> Scores:
        return scores_of_runs(load(items, root=values["root"])[: values["limit"]], items, list(runs.values()))

    summary = partial(McqSummary, items=items)
    asking = Asking(McqParameters, items, run_async, forecast, check, summary, score)
    raise click.exceptions.Exit(ask_models(asking, values))


@command.command("score")
@click.argument("items", type=Place("scenes"))
@click.argument("answers", nargs=-1, required=True, type=Place(named=True), metavar="[NAME=]ANSWERS…")
@parameter_options(McqScoreParameters)
@score_options("mcq.html beside the first answers")
def score_command(items: str, answers: tuple[str, ...], **values: Any) -> None:
    """Score answers of any number of models against ITEMS. No model is called.

    ANSWERS are run folders, answers.jsonl files, or predictions with one line per image. NAME is the name of
    the model in all output.
    """
    from uncanny.eval.mcq.data.load import load
    from uncanny.eval.mcq.data.overlay import OVERLAYS
    from uncanny.eval.mcq.score.result import COLUMNS
    from uncanny.eval.mcq.score.score import score

    given = given_parameters(McqScoreParameters, values)
    item_set = load(items, root=given.pop("root", None))
    named = named_files(answers, what="sets of answers")
    paths = paths_of(named)
    page = in_folder_of(paths[0], "mcq.html")
    files = ScoreFiles.of(values, page)
    read = [item_set.file, *paths, *paths_of(given.get("people"))]
    files.check(("n_images", "splits", "patterns"), COLUMNS, read)
    scores = score(item_set, all_at_rest(named), **given)
    drawn = page.parent / OVERLAYS
    files.write_scores(scores, overlays=drawn if drawn.is_dir() else None)


@command.command("plan")
@parameter_options(PlanParameters)
@score_options()
def plan_command(**values: Any) -> None:
    """Compute how many items you need to show a difference between two models, or what your items can show.

    The power is that of the exact McNemar test in `mcq score`. It depends most on the share of items that
    only one of the two models gets right: --scores takes this share from models that you have scored before.

    \b
    Out of the box:
      uncanny mcq plan --difference 0.03 --accuracy 0.6
      uncanny mcq plan --items 950 --models 5
    """
    from uncanny.eval.mcq.plan import plan, plan_heads

    files = ScoreFiles.of(values)
    files.check(("needed", "differences", "discordant"), plan_heads(values["items"]), [values["scores"]])
    files.write_scores(plan(**given_parameters(PlanParameters, values)))


@command.command("check")
@click.argument("items", type=Place("scenes"))
@parameter_options(CheckParameters)
@click.option(
    "--reviews",
    type=PATH,
    multiple=True,
    metavar="RUN",
    help="Folder in which reviewers checked ITEMS by `uncanny mcq review`. Repeatable.  [default: none]",
)
@parameter_options(KeepParameters)
@score_options()
def check_command(items: str, reviews: tuple[Path, ...], **values: Any) -> None:
    """Find everything that is wrong with an item file, all at once. Exit code 2 if there are errors.

    With --reviews it also shows what reviewers say of the items, and how far they agree, and writes the items
    that they agree on to -o. Nothing is written if there are errors.
    """
    from uncanny.eval.mcq.data.checks import check
    from uncanny.eval.mcq.data.kept import ITEM_REVIEWS, KEYS, KeptItems, keep, kept_before
    from uncanny.eval.mcq.data.load import load

    files, given = ScoreFiles.of(values), given_parameters(KeepParameters, values)
    out: Path | None = given.get("out")
    if reviews:
        item_set = load(items, root=values["root"])
        ours = partial(kept_before, items=item_set)
        own = [] if out is None else [Output(out, "a file of these items as they are now", ours)]
        files.check(KEYS, KeptItems.columns, [item_set.file, *(run / ITEM_REVIEWS for run in reviews)], *own)
    elif files.piped or files.outputs(()) or KeepParameters.model_validate(given) != KeepParameters():
        raise UsageError(
            "-o, --agree, --least-verdicts, --json, --csv and tables need --reviews",
            remedy="Pass the folder of the reviewers.",
        )
    problems = check(items, **given_parameters(CheckParameters, values))
    if problems:
        (complain if files.piped else say)(layout(text for text, _ in alike(problems)))
    errors = sum(problem.severity == "error" for problem in problems)
    warnings = counted(len(problems) - errors, "warning")
    if not files.quiet:
        (complain if errors or files.piped else say)(f"{counted(errors, 'error')}, {warnings}")
    if reviews and not errors:
        where = "" if out is None else f"\n\nItems    {harmless(str(out))}"
        files.write_scores(keep(item_set, reviews, **given), after=where)
    raise click.exceptions.Exit(2 if errors else 0)


@command.command("overlay")
@click.argument("items", type=Place("scenes"))
@parameter_options(OverlayParameters)
@force_option
def overlay_command(items: str, out: Path, root: Path | None, force: bool) -> None:
    """Draw the boxes of Q3 and write OUT/items.jsonl, which names the drawn images."""
    from uncanny.eval.mcq.data.load import ITEMS_FILE, load
    from uncanny.eval.mcq.data.overlay import drawn_before, overlay

    item_set = load(items, root=root, folder=out)

    def ours(file: Path) -> bool:
        return drawn_before(file, item_set)

    target = Output(out / ITEMS_FILE, "a set drawn from these items", ours)
    check_outputs([target], [item_set.file], force=force)
    say(harmless(str(overlay(item_set, out=out).file)))


@command.command("import")
@click.argument("source", type=PATH)
@parameter_options(ImportParameters)
def import_command(source: Path, out: Path) -> None:
    """Import a released flat table (Parquet, CSV, or a folder of shards) with its images.

    SOURCE may also be raw annotation payloads as JSON Lines, each with `id`, `image` and `split` beside it.
    """
    from uncanny.eval.mcq.data.released import import_table

    say(harmless(str(import_table(source, out=out).file)))


@command.command("export")
@click.argument("items", type=Place("scenes"))
@parameter_options(ExportParameters)
def export_command(items: str, **values: Any) -> None:
    """Publish ITEMS as a table like the released one, or as a dataset for the Hugging Face Hub.

    The output includes images, drawn boxes and prompts, so that `uncanny mcq run OUT` asks the same
    questions.
    """
    from uncanny.eval.mcq.data.export import export_form, export_table, exported_before
    from uncanny.eval.mcq.data.load import load

    given = given_parameters(ExportParameters, values)
    item_set = load(items, root=given.pop("root", None))
    form = export_form(given["out"], given.get("to"))
    if form != "hf":
        place = Output(given["out"], "a table of these items", exported_before)
        check_outputs([place], [item_set.file], force=values["force"])
    made = export_table(item_set, **given)
    say(harmless(str(made)))
    if form == "hf":
        if values["license"] is None:
            complain(
                harmless(f"No license is stated. Pass --license, or write it into {made / 'README.md'}.")
            )
        ask = ["uncanny", "mcq", "run", str(made), "--model", "demo", "-o", f"{made}-demo"]
        say(harmless(f"Try it: {shlex.join(ask)}"))


@command.command("build")
@click.argument("run", type=PATH)
@parameter_options(BuildParameters)
def build_command(run: Path, out: Path, **values: Any) -> None:
    """Draft items from the annotations of RUN. If RUN has reviews, only accepted anomalies are used.

    Each draft is marked `"draft": true` until a person has checked it. uncanny does not replace a file that
    differs from these drafts, because people may have edited it.
    """
    from uncanny.eval.mcq.data.drafts import build
    from uncanny.eval.mcq.data.items import OPTIONS
    from uncanny.records.annotation_table import restore_lines

    # Whether these are the same drafts is for `build` to find out.
    place = Output(out, "a file of just these drafts", lambda _: True)
    check_outputs([place], [run], force=bool(values["force"]))
    drafts = build(run, out=out, **given_parameters(BuildParameters, values))
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
class McqSummary(Summary["McqRun"]):
    """Counts, failures, and what to do next. There is no page: `uncanny mcq score` writes it."""

    items: str
    label = "Asked"
    zeros = True

    def failures(self) -> list[str]:
        failures = [
            f"{answer.id} {answer.question}: {answer.error}"
            for answer in self.run.answers
            if answer.outcome == "error"
        ]
        return failure_lines("Without an answer:", failures)

    def next_steps(self, file: Path) -> list[str]:
        return [f"Answers  {file}", f"Score    uncanny mcq score {self.items} {file}"]


def scores_of_runs(items: ItemSet, named: str, runs: Sequence[McqRun]) -> Scores:
    """The table and the JSON of several runs of the same items, which the command line calls `named`.

    Nothing where no run has an answer.
    """
    from uncanny.cli.common.several import Scores
    from uncanny.eval.common.tables.table import tables_text
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
