"""`uncanny report`: write the page of any run again; `eval.report` knows which one it is."""

from __future__ import annotations

from pathlib import Path

import click

from uncanny.cli.command import Command
from uncanny.cli.options import Whole
from uncanny.cli.outputs import check_outputs, force_option, page
from uncanny.cli.terminal import harmless, say


@click.command("report", cls=Command)
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--max-images",
    type=Whole(0, 1_000_000),
    default=300,
    show_default=True,
    help="Images shown; the page says so if not all.",
)
@force_option
def command(run: Path, max_images: int, force: bool) -> None:
    """Write RUN/report.html, one self-contained file, for a finished or unfinished run.

    Of a run of `mcq run` or `realism run` it is the page of its scores, as `uncanny mcq score` and
    `uncanny realism score` write it with their defaults. Of a file of annotations the page goes beside it.
    """
    from uncanny.eval.common.runs import page_of_run
    from uncanny.eval.report import report

    check_outputs([page(page_of_run(run))] if run.exists() else [], [run], force=force)
    say(harmless(str(report(run, max_images=max_images))))
