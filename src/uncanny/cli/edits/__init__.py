"""`uncanny edits`: how much edits of images changed, which are fit for use, and what detectors miss."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, NoReturn

import click

from uncanny.cli.common.command import Group
from uncanny.cli.common.files import Output, ScoreFiles, at_rest
from uncanny.cli.common.options import score_options
from uncanny.cli.common.parameters import given_parameters, parameter_options
from uncanny.cli.common.places import Place
from uncanny.cli.common.terminal import harmless
from uncanny.cli.edits.stress import compress_command, stress_command
from uncanny.cli.edits.writing import perturb_command, prompts_command
from uncanny.cli.serving.people import edits_people_command, people_score_command
from uncanny.eval.edits.parameters import GateParameters, MeasureParameters


@click.group("edits", cls=Group)
def command() -> None:
    """Measure how much edits changed, apply quality gates, and find the edits that detectors miss.

    PAIRS is a file with one original and its edit per line (JSON Lines, CSV, Parquet), a folder that contains
    original/, edited/ and optionally masks/, or the word `scenes` for the bundled pairs.

    \b
    Out of the box:
      uncanny edits measure scenes -o edits.jsonl
      uncanny edits gate edits.jsonl
      uncanny detect scenes -m demo -o runs/d
      uncanny edits stress runs/d --meta edits.jsonl
    """


command.add_command(perturb_command)
command.add_command(prompts_command)
command.add_command(stress_command)
command.add_command(edits_people_command)
command.add_command(people_score_command)
command.add_command(compress_command)


@command.command("measure", job="edits_measure")
@click.argument("pairs", required=False, type=Place("scenes"))
@parameter_options(MeasureParameters)
@score_options("beside -o, with the suffix .html")
def measure_command(pairs: str | None, **values: Any) -> None:
    """Measure how much each edit of PAIRS changed, and where. No model is called.

    FILE gets the mask ratio, SSIM, MSE, the post-edit mask with its components and clusters, the shape
    (localized or diffused), and a bin for each figure. LPIPS, DreamSim and text similarity are measured if
    you name their weights; uncanny downloads nothing. The same command resumes.

    Exit code 1 if some edits could not be measured, or only in part; FILE says why.
    """
    from uncanny.eval.edits.result import HEADS, PAGE
    from uncanny.eval.edits.score import measure

    out = values["out"]
    if out is None and values["report"] is None:
        values["no_report"] = True
    files = ScoreFiles.of(values, (out or Path(PAGE)).with_suffix(".html"))
    own = [] if out is None else [records_output(out)]
    files.check(("edits", "statuses", "cutoffs"), HEADS, [pairs, values["cutoffs"]], *own)
    given = given_parameters(MeasureParameters, values)
    edits = measure(_source(pairs), **given, progress=not files.quiet)
    files.write_scores(edits, after=_where(out))
    _end(failed=bool(edits.statuses["failed"] or edits.statuses["partial"]))


@command.command("gate")
@click.argument("pairs", required=False, type=Place("scenes"))
@parameter_options(GateParameters)
@score_options()
def gate_command(pairs: str | None, **values: Any) -> None:
    """Find the edits of PAIRS that pass the quality gates. PAIRS is best a file of `edits measure`.

    Gates: all-black edits, BRISQUE, CLIP similarity of the images, directional similarity, how well the
    caption fits the original, length and characters of the edited label and caption, and their similarity to
    the original's. FILE has `passed` and `failed_gates` for each edit. A gate that was measured for no edit
    is not applied. An edit is undecided if another gate was not measured for it, or if its images cannot be
    compared.

    Exit code 1 if some edits are undecided.
    """
    from uncanny.eval.edits.gate import HEADS, gate

    out = values["out"]
    files = ScoreFiles.of(values)
    own = [] if out is None else [records_output(out, "passed", "failed_gates")]
    files.check(("edits", "passed", "gates"), HEADS, [pairs, values["limits"]], *own)
    edits = gate(_source(pairs), **given_parameters(GateParameters, values), progress=not files.quiet)
    files.write_scores(edits, after=_where(out))
    _end(failed=any(each.passed is None for each in edits))


def _end(*, failed: bool) -> NoReturn:
    from uncanny.cli.common.session import RUN_CODES

    raise click.exceptions.Exit(RUN_CODES["failures"] if failed else 0)


def _where(out: Path | None) -> str:
    """Where the records of a command went, to stand below its tables."""
    return "" if out is None else f"\n\nRecords  {harmless(str(out))}"


def _source(pairs: str | None) -> str | Path | None:
    """PAIRS as `load` takes it; a pipe is read once and kept."""
    return None if pairs is None else pairs if not Path(pairs).exists() else at_rest(Path(pairs))


def records_output(path: Path, *keys: str) -> Output:
    """A file of records with these columns, unless they are given those of measured edits."""

    def ours(file: Path) -> bool:
        from uncanny.eval.common.inputs.table_files import columns
        from uncanny.eval.edits.columns import COLUMNS

        if file.suffix.lower() == ".csv":
            with file.open(encoding="utf-8", errors="replace", newline="") as lines:
                return set(keys or COLUMNS) <= set(next(csv.reader(lines), []))
        return set(keys or COLUMNS) <= columns(file)

    return Output(path, "a file of measured edits", ours)
