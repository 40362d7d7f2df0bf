"""`uncanny merge`: options and printing around `uncanny.merge`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from uncanny.cli.common.command import Command, end
from uncanny.cli.common.files import at_rest
from uncanny.cli.common.options import json_option, quiet_option
from uncanny.cli.common.parameters import given_parameters, parameter_options
from uncanny.cli.common.places import Place, names_and_paths
from uncanny.cli.common.terminal import say, say_json
from uncanny.eval.merge.parameters import MergeParameters

if TYPE_CHECKING:
    from uncanny.eval.common.inputs.sources import AnnotationSource


@click.command("merge", cls=Command, job="merge")
@click.argument("runs", nargs=-1, required=True, type=Place(named=True), metavar="[NAME=]RUN_OR_FILE…")
@parameter_options(MergeParameters)
@json_option
@quiet_option
def command(runs: tuple[str, ...], as_json: bool, quiet: bool, **values: Any) -> None:
    """Merge runs of several models over the same images into one run of annotations.

    RUN_OR_FILE is a run of `uncanny annotate` or `detect`, or a file of annotations. Findings that `uncanny
    compare` would match become one finding, with the names of the runs that have it. Its confidence is the
    share of these runs, or is learned from the verdicts in the runs' reviews, which needs the extra `merge`.
    `audit`, `report`, `review`, `export` and `compare` read the merged run like any other.

    \b
    Out of the box:
      uncanny demo -o runs/a
      uncanny detect scenes --model demo -o runs/b
      uncanny merge a=runs/a b=runs/b -o runs/merged

    Exit code: 0 merged, 1 no run examined some of the images, 2 usage error. With 2, nothing is written.
    """
    from uncanny.eval.common.anomalies.load import name_paths
    from uncanny.eval.merge.run import merge

    named = name_paths(names_and_paths(runs), what="runs")
    sources: dict[str, AnnotationSource] = {name: at_rest(path) for name, path in named.items()}
    result = merge(sources, **given_parameters(MergeParameters, values))
    if as_json:
        say_json(result.to_json())
    elif not quiet:
        say(str(result))
    end(failed=result.not_examined > 0)
