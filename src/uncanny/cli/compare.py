"""`uncanny compare`: options and files around `uncanny.compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

import click

from uncanny.cli.common.asking import backbone_options
from uncanny.cli.common.command import Command
from uncanny.cli.common.files import ScoreFiles, at_rest, check_outputs
from uncanny.cli.common.gates import gate_outputs, pass_gate
from uncanny.cli.common.options import (
    FOLDER,
    Real,
    force_option,
    gate_options,
    json_file_option,
    no_page_option,
    page_option,
    resamples_option,
    seed_option,
    table_options,
)
from uncanny.cli.common.places import Place, names_and_paths
from uncanny.cli.server.run import on_server

if TYPE_CHECKING:
    from uncanny.eval.common.sources import AnnotationSource


class CompareKeywords(TypedDict):
    """The options that are those of `uncanny.compare`."""

    by: Literal["image", "prompt"]
    truth: str | None
    similarity: Literal["bertscore", "chrf"]
    backbone: str | None
    num_layers: int | None
    device: str | None
    batch_tokens: int | None
    threshold: float | None
    iou: float
    balance: float
    resamples: int
    seed: int
    root: Path | None


@click.command("compare", cls=Command)
@on_server("compare")
@click.argument("runs", nargs=-1, required=True, type=Place(named=True), metavar="[NAME=]RUN_OR_FILE…")
@click.option(
    "--truth",
    type=Place("scenes"),
    metavar="TRUTH",
    help="What is really wrong; `scenes` is the bundled set's.",
)
@click.option(
    "--by",
    type=click.Choice(["image", "prompt"]),
    default="image",
    show_default=True,
    help="What is paired: the same images, or images of the same prompt (prompt_id, prompt, or file stem).",
)
@json_file_option
@table_options
@click.option(
    "--similarity",
    type=click.Choice(["chrf", "bertscore"]),
    default="chrf",
    show_default=True,
    help="How texts are compared. bertscore needs weights.",
)
@backbone_options
@click.option(
    "--threshold",
    type=Real(0, 1, above=True),
    help="From which similarity on two anomalies are one. [default: 0.4 for chrf, 0.8 for bertscore]",
)
@click.option(
    "--iou",
    type=Real(0, 1, above=True),
    default=0.5,
    show_default=True,
    help="From which overlap of their boxes on two of the same kind are one.",
)
@click.option(
    "--lambda",
    "balance",
    type=Real(0, 1),
    default=0.5,
    show_default=True,
    help="The share of the phenomenon in the similarity; the rest is the reasoning's.",
)
@resamples_option("Bootstrap resamples over images, or prompts.")
@seed_option
@page_option("compare.html beside the first run")
@no_page_option
@force_option
@gate_options
@click.option(
    "--root", type=FOLDER, help="Where image paths of annotation files start. [default: the file's folder]"
)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing.")
def command(
    runs: tuple[str, ...],
    json_file: Path | None,
    csv_file: Path | None,
    markdown_file: Path | None,
    latex_file: Path | None,
    report: Path | None,
    no_report: bool,
    force: bool,
    fail_if: tuple[str, ...],
    junit: Path | None,
    quiet: bool,
    **options: Unpack[CompareKeywords],
) -> None:
    """What changed between two runs over the same images? Each further run is compared with the first.

    RUN_OR_FILE is a run of `uncanny annotate` or `detect`, or a file of annotations. What both found, what
    only one did, counts by kind and severity, MAI, AF and CAP, cost; every difference is the other minus the
    first, with a 95 % interval. Nothing is called a difference whose interval holds zero.

    \b
    Out of the box:
      uncanny demo -o runs/a
      uncanny detect scenes --model demo -o runs/b
      uncanny compare runs/a runs/b --truth scenes

    Exit code 1 if there are records that failed; they are in no figure but cost. Exit code 4 if a --fail-if
    failed.
    """
    from uncanny.cli.common.session import RUN_CODES
    from uncanny.eval.common.anomalies.load import name_paths
    from uncanny.eval.compare.score.gate import compare_conditions
    from uncanny.eval.compare.score.result import COLUMNS
    from uncanny.eval.compare.score.score import compare

    named = name_paths(names_and_paths(runs), what="runs")
    sources: dict[str, AnnotationSource] = {name: at_rest(path) for name, path in named.items()}
    first = next(iter(named.values()))
    files = ScoreFiles.chosen(
        (first if first.is_dir() else first.parent) / "compare.html",
        json_file=json_file,
        csv_file=csv_file,
        markdown_file=markdown_file,
        latex_file=latex_file,
        report=report,
        no_report=no_report,
        quiet=quiet,
    )
    inputs = [Path(path) for path in sources.values() if isinstance(path, Path)]
    truth = options["truth"]
    if truth is not None:
        inputs.append(Path(truth))
    compare_conditions(fail_if)
    outputs = files.outputs(("runs", "per_image", "changed"), COLUMNS)
    check_outputs([*outputs, *gate_outputs(fail_if, junit)], inputs, force=force)
    result = compare(sources, **options)
    files.write(to_json=result.to_json, to_csv=result.to_csv, tables=result.tables, report=result.report)
    if not pass_gate(result.gate, fail_if, junit, quiet=quiet):
        raise click.exceptions.Exit(RUN_CODES["gate"])
    raise click.exceptions.Exit(RUN_CODES["failures"] if result.has_failed else 0)
