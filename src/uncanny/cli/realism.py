"""`uncanny realism`: which edited images would fool a viewer, by the two-order check."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uncanny.cli.common.asking import asking_options
from uncanny.cli.common.command import Group
from uncanny.cli.common.files import ScoreFiles, check_run_folder, in_folder_of, paths_of
from uncanny.cli.common.options import FOLDER, force_option, score_options
from uncanny.cli.common.parameters import given_parameters, parameter_options
from uncanny.cli.common.places import Place, named_files
from uncanny.cli.common.summary import (
    Summary,
    failure_lines,
)
from uncanny.cli.common.terminal import width
from uncanny.demo.sets import BUNDLED
from uncanny.eval.common.parameters import PairFolders
from uncanny.eval.realism.parameters import RealismParameters, RealismScoreParameters

if TYPE_CHECKING:
    from uncanny.cli.common.several import Scores
    from uncanny.eval.realism.data import PairSource
    from uncanny.eval.realism.run import RealismRun
    from uncanny.eval.realism.verdicts import Verdict


@click.group("realism", cls=Group)
def command() -> None:
    """Find out which edited images would fool a viewer, with a check in both orders (UGDA).

    PAIRS is a JSON Lines file with one pair of an original and its edit per line, a folder that contains
    original/ and edited/, or `scenes` or `large-scenes` for the bundled pairs.

    \b
    Out of the box:
      uncanny realism run scenes --model demo -o runs/r
      uncanny realism score runs/r
    """


@command.command("run", job="realism")
@click.argument("pairs", required=False, type=Place(*BUNDLED))
@asking_options(RealismParameters)
@parameter_options(PairFolders)
@force_option
def run_command(pairs: str | None, force: bool, **values: Any) -> None:
    """Judge each pair of PAIRS, with one call or three; the same command resumes the run.

    With several models, each gets its own run folder in RUN, and a table of all scores follows.
    """
    from uncanny.cli.common.several import Asking, ask_models
    from uncanny.eval.realism.data import load
    from uncanny.eval.realism.run import forecast, run_async

    folders = given_parameters(PairFolders, values)
    source: PairSource = pairs if pairs and not folders else load(pairs, **folders)
    inputs = [] if pairs is None else [Path(pairs)]
    check = partial(check_run_folder, inputs=inputs, report=False, force=force)
    asking = Asking(RealismParameters, source, run_async, forecast, check, RealismSummary, scores_of_runs)
    raise click.exceptions.Exit(ask_models(asking, values))


@command.command("score")
@click.argument("verdicts", nargs=-1, required=True, type=Place(named=True), metavar="[NAME=]VERDICTS…")
@parameter_options(RealismScoreParameters)
@click.option(
    "--root",
    type=FOLDER,
    help="Folder that image paths are relative to, for the page. [default: as the run says]",
)
@score_options("realism.html beside the first verdicts")
def score_command(verdicts: tuple[str, ...], root: Path | None, **values: Any) -> None:
    """Score VERDICTS, several side by side: labels, cases, groups, position bias, saved calls.

    VERDICTS are verdicts.jsonl files or run folders. NAME is the name of each in all output. Labels are
    derived again from the answers.
    """
    from uncanny.eval.realism.result import COLUMNS, PAGE
    from uncanny.eval.realism.score import score

    named = named_files(verdicts, what="sets of verdicts")
    paths = paths_of(named)
    given = given_parameters(RealismScoreParameters, values)
    files = ScoreFiles.of(values, in_folder_of(paths[0], PAGE))
    files.check(("labels", "cases", "position_bias"), COLUMNS, [*paths, *paths_of(given.get("people"))])
    files.write_scores(score(named, **given), root=root)


@dataclass(frozen=True, slots=True)
class RealismSummary(Summary["RealismRun"]):
    """Counts, pairs without a label, and what to do next. There is no page: it belongs to the scores."""

    label = "Pairs"

    def failures(self) -> list[str]:
        failures = [_why(verdict) for verdict in self.run.verdicts if verdict.outcome not in (None, "judged")]
        return failure_lines("Without a label:", failures)

    def found(self) -> list[str]:
        return ["Labels   " + ", ".join(f"{n:,} {label}" for label, n in self.run.labels().items())]

    def next_steps(self, file: Path) -> list[str]:
        return [f"Verdicts {file}", f"Score    uncanny realism score {self.run.path}"]


def _why(verdict: Verdict) -> str:
    first = verdict.errors[0]
    more = f" (and {len(verdict.errors) - 1} more)" if len(verdict.errors) > 1 else ""
    return f"{verdict.id} {verdict.outcome}, {first.asked}: {first.message}{more}"


def scores_of_runs(runs: Mapping[str, RealismRun]) -> Scores:
    """The table and the JSON of several runs; nothing where none has a verdict."""
    from uncanny.cli.common.several import Scores
    from uncanny.eval.common.tables.table import tables_text
    from uncanny.eval.realism.score import score

    files = [run.path / run.record_file for run in runs.values()]
    judged = [file for file in files if file.is_file() and file.stat().st_size]
    if not judged:
        return Scores((), None)
    scores = score(judged)
    command = shlex.join(["uncanny", "realism", "score", *(str(file.parent) for file in judged)])
    return Scores(
        [*tables_text(scores.tables(), width()).splitlines(), "", f"Score    {command}"], scores.to_json()
    )
