"""`uncanny export` and `uncanny import`: options and printing around the public functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from uncanny.cli.common.command import Command
from uncanny.cli.common.options import PATH, json_option, quiet_option
from uncanny.cli.common.parameters import given_parameters, parameter_options
from uncanny.cli.common.terminal import say, say_json
from uncanny.errors import UsageError
from uncanny.exports.parameters import (
    ExportParameters,
    ImportAnnotationsParameters,
    ImportReviewsParameters,
)


@click.command("export", cls=Command, job="export")
@click.argument("run", type=PATH)
@parameter_options(ExportParameters)
@json_option
@quiet_option
def command(run: Path, as_json: bool, quiet: bool, **values: Any) -> None:
    """Export the verified anomalies of RUN as datasets in formats that other tools read.

    An anomaly is verified if a majority of its reviewers accepted it, or with --agree all, if every one of
    them did. RUN is a run of `annotate` or `detect`, or a file of annotations. Exit code: 0 written, 2 usage
    error.

    \b
    Out of the box:
      uncanny demo -o runs/demo
      uncanny export runs/demo --all --to csv,coco,labelstudio -o data/demo
    """
    from uncanny.exports.run import export

    result = export(run, **given_parameters(ExportParameters, values))
    if as_json:
        say_json(result.to_json())
    elif not quiet:
        say(str(result))


@click.command("import", cls=Command)
@click.argument("files", type=PATH, nargs=-1, required=True, metavar="FILE…")
@parameter_options(ImportReviewsParameters, optional=["run"])
@parameter_options(ImportAnnotationsParameters, without=["format"], optional=["out"])
@json_option
@quiet_option
def import_command(files: tuple[Path, ...], as_json: bool, quiet: bool, **values: Any) -> None:
    """Import what people changed in an export with another tool, or the reviews of another copy of a run.

    With --run, verdicts and changed texts and boxes are added to the reviews of the run; importing the same
    file again changes nothing. With -o, boxes with their texts become a file of annotations. Exit code: 0
    imported, 2 usage error or a file with problems. In that case nothing is written.

    \b
      uncanny import project-1.json --run runs/a
      uncanny import anomalies.csv --run runs/a --reviewer ann
    """
    from uncanny.exports.reading import import_annotations, import_reviews

    if (values["run"] is None) == (values["out"] is None):
        raise UsageError(
            "Either --run or -o is needed, and not both",
            remedy="Pass --run to import reviews, or -o to import annotations.",
        )
    if values["run"] is not None:
        result = import_reviews(files, **given_parameters(ImportReviewsParameters, values))
    else:
        result = import_annotations(files, **given_parameters(ImportAnnotationsParameters, values))
    if as_json:
        say_json(result.to_json())
    elif not quiet:
        say(str(result))
