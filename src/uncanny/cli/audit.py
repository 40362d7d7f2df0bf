"""`uncanny audit`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from uncanny.cli.annotate_options import annotate_options
from uncanny.cli.command import Command
from uncanny.cli.models import options_where_asked
from uncanny.cli.numbers import RESAMPLES, SEED, Whole
from uncanny.cli.outputs import force_option

PATH = click.Path(path_type=Path)


@click.command("audit", cls=Command)
@click.argument("generators", nargs=-1, required=True, metavar="NAME=RUN_OR_FILE_OR_FOLDER…")
@click.option(
    "--against",
    multiple=True,
    metavar="NAME=RUN_OR_FILE",
    help="The same generators as a second assessor sees them; repeatable. Shows how far the ranks agree.",
)
@click.option(
    "--pair-by",
    metavar="stem|COLUMN",
    help="What images of one prompt share: their file name, or a column of their records. "
    "They are resampled together. [default: images are independent]",
)
@click.option("--allow-mixed", is_flag=True, help="Compare annotations that were not made alike.")
@click.option("--published", is_flag=True, help="Show the published generators beside yours.")
@click.option(
    "--resamples",
    type=RESAMPLES,
    default=10_000,
    show_default=True,
    help="Bootstrap resamples for the intervals.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Same seed, same intervals.")
@click.option(
    "--json", "json_file", type=PATH, metavar="FILE", help="Write every figure; - for standard output."
)
@click.option("--csv", "csv_file", type=PATH, metavar="FILE", help="Write the table; - for standard output.")
@click.option(
    "--report", type=PATH, help="Where the page goes. [default: OUT/audit.html, without -o audit.html]"
)
@click.option("--no-report", is_flag=True, help="Write no page.")
@force_option
@click.option(
    "--worst", type=Whole(0, 10_000), default=12, show_default=True, help="Worst images kept, a generator."
)
@click.option(
    "--root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Where image paths of annotation files start. [default: the file's folder]",
)
@click.option(
    "-o", "--out", type=PATH, help="Folder for the runs of image folders. Needed where there are any."
)
@lambda command: options_where_asked(command, "where a generator is a folder of images")
@annotate_options
def command(generators: tuple[str, ...], **options: Any) -> None:
    """How plausible is what a generator makes? A leaderboard with MAI, AF and CAP; lower is better.

    Each generator is a run of `uncanny annotate`, a file of annotations, or a folder of images, which is
    annotated first, into OUT/NAME; the same command goes on where it stopped. `scenes:rendered` and
    `scenes:drawn` are the bundled images by style. Exit code: 0 all audited, 1 some images failed and are
    left out, 2 wrong use, 3 budget spent, 130 interrupted.

    \b
    Out of the box:
      uncanny audit rendered=scenes:rendered drawn=scenes:drawn --model demo -o runs/a
    """
    from uncanny.cli.audit_show import audit_and_show

    raise click.exceptions.Exit(audit_and_show(generators, **options))
