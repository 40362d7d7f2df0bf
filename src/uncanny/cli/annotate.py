"""`uncanny annotate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from uncanny.cli.annotate_options import annotate_options, read_plan, read_policy
from uncanny.cli.command import Command
from uncanny.cli.models import model_options, read_models, read_run_options
from uncanny.cli.outputs import check_run_folder, force_option


@click.command("annotate", cls=Command)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--run", "run", type=click.Path(path_type=Path), help="The run folder. Needed to run.")
@model_options
@click.option(
    "--root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Name images in records relative to this. [default: the run folder]",
)
@annotate_options
@force_option
@click.option(
    "--report/--no-report", default=True, help="Write RUN/report.html in the end. [default: report]"
)
def command(
    paths: tuple[Path, ...], run: Path | None, root: Path | None, report: bool, force: bool, **options: Any
) -> None:
    """Annotate images: what is in them that cannot be, why, and how unreal it makes them.

    PATHS are image files and folders. Results go to RUN/annotations.jsonl as they come; the same command
    goes on where it stopped. Exit code: 0 all annotated, 1 some failed, 2 wrong use, 3 budget spent,
    130 interrupted.

    \b
    Keys: OPENAI_API_KEY, ANTHROPIC_API_KEY, VLLM_API_KEY, OPENAI_COMPATIBLE_API_KEY.
    Roles: perceiver, attributes, relations, integrator, formatter, scanner.
    """
    from uncanny.cli.session import annotate_and_show, dry_run
    from uncanny.errors import UsageError
    from uncanny.records.run_folder import RunFolder
    from uncanny.runs.annotate_run import AnnotateJob

    if run is None and not options["dry_run"]:
        raise UsageError("No run folder is named", remedy="Say where results go with -o runs/NAME.")
    if run is not None and not options["dry_run"]:
        check_run_folder(run, report=report, force=force)
    job = AnnotateJob(
        RunFolder(run or Path("runs/unnamed")),
        paths,
        read_models(**options),
        read_plan(**options),
        read_policy(**options),
        read_run_options(**options),
        root,
    )
    if options["dry_run"]:
        code = dry_run(job, as_json=options["as_json"])
    else:
        code = annotate_and_show(job, as_json=options["as_json"], quiet=options["quiet"], report=report)
    raise click.exceptions.Exit(code)
