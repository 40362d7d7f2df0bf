"""`uncanny compare`: options and files around `uncanny.compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uncanny.cli.common.command import Command, end
from uncanny.cli.common.files import ScoreFiles, at_rest, gate_outputs, in_folder_of, pass_gate
from uncanny.cli.common.options import gate_options, score_options
from uncanny.cli.common.parameters import given_parameters, parameter_options
from uncanny.cli.common.places import Place, names_and_paths
from uncanny.eval.compare.parameters import CompareParameters

if TYPE_CHECKING:
    from uncanny.eval.common.inputs.sources import AnnotationSource


@click.command("compare", cls=Command, job="compare")
@click.argument("runs", nargs=-1, required=True, type=Place(named=True), metavar="[NAME=]RUN_OR_FILE…")
@parameter_options(CompareParameters)
@score_options("compare.html beside the first run")
@gate_options
def command(runs: tuple[str, ...], conditions: tuple[str, ...], junit: Path | None, **values: Any) -> None:
    """Show what changed between two runs over the same images. Each further run is compared with the first.

    RUN_OR_FILE is a run of `uncanny annotate` or `detect`, or a file of annotations. The result has the
    anomalies that both found and that only one found, counts by kind and realism, MAI, AF, CAP and cost. Each
    difference is the other run minus the first, with a 95 % interval. A difference is called one only if its
    interval excludes 0.

    \b
    Out of the box:
      uncanny demo -o runs/a
      uncanny detect scenes --model demo -o runs/b
      uncanny compare runs/a runs/b --truth scenes

    Exit code 1 if some records failed; they count only in the cost. Exit code 4 if a --fail-if condition
    holds.
    """
    from uncanny.cli.common.session import RUN_CODES
    from uncanny.eval.common.anomalies.load import name_paths
    from uncanny.eval.compare.score.gate import compare_conditions
    from uncanny.eval.compare.score.result import COLUMNS
    from uncanny.eval.compare.score.score import compare

    named = name_paths(names_and_paths(runs), what="runs")
    sources: dict[str, AnnotationSource] = {name: at_rest(path) for name, path in named.items()}
    files = ScoreFiles.of(values, in_folder_of(next(iter(named.values())), "compare.html"))
    compare_conditions(conditions)
    inputs = [path for path in (*sources.values(), values["truth"]) if isinstance(path, str | Path)]
    files.check(("runs", "per_image", "changed"), COLUMNS, inputs, *gate_outputs(conditions, junit))
    result = compare(sources, **given_parameters(CompareParameters, values))
    files.write_scores(result)
    if not pass_gate(result.gate, conditions, junit, quiet=files.quiet):
        raise click.exceptions.Exit(RUN_CODES["gate"])
    end(failed=result.has_failed)
