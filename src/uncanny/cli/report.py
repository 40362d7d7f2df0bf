"""`uncanny report`."""

from __future__ import annotations

from pathlib import Path

import click

from uncanny.cli.command import Command
from uncanny.cli.numbers import Whole
from uncanny.cli.terminal import harmless, say
from uncanny.errors import UsageError


@click.command("report", cls=Command)
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--max-images",
    type=Whole(0, 1_000_000),
    default=300,
    show_default=True,
    help="Images shown; the page says so if not all.",
)
def command(run: Path, max_images: int) -> None:
    """Write RUN/report.html, one self-contained file, for a finished or unfinished run."""
    if not (run / "annotations.jsonl").is_file():
        raise UsageError(f"{run} is not a run: it has no annotations.jsonl", remedy="Name a run folder.")
    from uncanny.eval.report import write_report

    say(harmless(str(write_report(run, max_images=max_images))))
