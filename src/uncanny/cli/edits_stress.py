"""`uncanny edits stress` and `compress`: options, progress and files around the functions of these names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

import click

from uncanny.cli.common.command import Command
from uncanny.cli.common.files import ScoreFiles, at_rest, check_outputs
from uncanny.cli.common.options import (
    FOLDER,
    PATH,
    Real,
    Whole,
    force_option,
    group_by_option,
    json_file_option,
    no_page_option,
    pictures_option,
    quiet_option,
    resamples_option,
    seed_option,
    table_options,
)
from uncanny.cli.common.places import Place, names_and_paths
from uncanny.cli.common.terminal import say, say_json
from uncanny.errors import UsageError

if TYPE_CHECKING:
    from uncanny.eval.common.pictures import PicturesMode


def _cutoffs(
    _ctx: click.Context, _option: click.Parameter, values: tuple[str, ...]
) -> dict[str, tuple[float, float]]:
    cutoffs = {}
    for value in values:
        name, _, ends = value.partition("=")
        low, _, high = ends.partition(",")
        try:
            cutoffs[name] = (float(low), float(high))
        except ValueError:
            raise click.BadParameter(f"{value!r} is not like mask_ratio=0.05,0.3") from None
    return cutoffs


class StressKeywords(TypedDict):
    """The options that are those of `uncanny.edits.stress`."""

    threshold: float | None
    by: tuple[str, ...]
    group_by: str | None
    cutoffs: dict[str, tuple[float, float]]
    min_edits: int
    root: Path | None
    map_threshold: float
    resize_maps: bool
    map_size: int | None
    published: bool
    resamples: int
    seed: int


@click.command("stress", cls=Command)
@click.argument("predictions", nargs=-1, required=True, type=Place(named=True), metavar="[NAME=]PREDICTIONS…")
@click.option(
    "--meta",
    type=PATH,
    multiple=True,
    required=True,
    metavar="META",
    help="What is known of the edits: CSV, Parquet or JSON Lines. Repeatable.",
)
@click.option(
    "--threshold",
    type=Real(0, 1),
    help="From which score on an image counts as generated, whatever the verdict beside it. "
    "[default: verdicts; of scores alone 0.5]",
)
@click.option(
    "--by", multiple=True, metavar="COLUMN", help="Show recall by a further column of META. Repeatable."
)
@group_by_option("edits")
@click.option(
    "--cutoffs",
    multiple=True,
    callback=_cutoffs,
    metavar="METRIC=LOW,HIGH",
    help="Ends of the medium bin. Repeatable. [default: percentiles 25 and 75]",
)
@click.option(
    "--min-edits",
    type=Whole(1, 10**9),
    default=20,
    show_default=True,
    help="A directional edit is shown from so many edits on.",
)
@click.option("--root", type=FOLDER, help="Where paths in tables start. [default: each table's folder]")
@click.option(
    "--map-threshold",
    type=Real(0, 1),
    default=0.5,
    show_default=True,
    help="From which value on a heat map is a mask.",
)
@click.option("--resize-maps", is_flag=True, help="Scale maps of another size to that of the mask.")
@click.option(
    "--map-size",
    type=Whole(1, 4096),
    metavar="SIDE",
    help="Pixel AUC of all maps and masks scaled to SIDE × SIDE, as SAGI does. [default: their own size]",
)
@click.option("--published", is_flag=True, help="Show the published detectors beside yours.")
@json_file_option
@table_options
@click.option(
    "-o",
    "--report",
    "report",
    type=PATH,
    metavar="PAGE",
    help="Where the page goes. [default: stress.html beside the first PREDICTIONS]",
)
@no_page_option
@pictures_option
@force_option
@quiet_option
@resamples_option("Bootstrap resamples over images.")
@seed_option
def stress_command(
    predictions: tuple[str, ...],
    meta: tuple[Path, ...],
    json_file: Path | None,
    csv_file: Path | None,
    markdown_file: Path | None,
    latex_file: Path | None,
    report: Path | None,
    no_report: bool,
    pictures: PicturesMode,
    force: bool,
    quiet: bool,
    **options: Unpack[StressKeywords],
) -> None:
    """Say where a detector is blind: recall of edits by size, source, method, model and what became what.

    PREDICTIONS are JSON Lines, CSV or Parquet with `image` and `source` (generated or real), or `score`, or
    both, or a run folder of `uncanny detect`. NAME is the detector's. NAME@jpeg-85, or jpeg-85 alone where
    there is one detector, are its predictions on copies that `uncanny edits compress` made, or on any others.
    META is what `uncanny edits measure` writes, or any table with `edited` and `original`, or `image` and its
    true `source`.

    \b
    Out of the box:
      uncanny edits measure scenes -o edits.jsonl
      uncanny detect scenes -m demo -o runs/d
      uncanny edits stress runs/d --meta edits.jsonl
    """
    from uncanny.edits import stress
    from uncanny.eval.common.anomalies.load import name_paths
    from uncanny.eval.edits.stress.result import COLUMNS, KEYS, PAGE

    named = name_paths(names_and_paths(predictions))
    paths = {name: at_rest(path) for name, path in named.items()}
    tables = [at_rest(path) for path in meta]
    first = next(iter(named.values()))
    files = ScoreFiles.chosen(
        (first if first.is_dir() else first.parent) / PAGE,
        json_file=json_file,
        csv_file=csv_file,
        markdown_file=markdown_file,
        latex_file=latex_file,
        report=report,
        no_report=no_report,
        quiet=quiet,
    )
    check_outputs(files.outputs(KEYS, COLUMNS), [*paths.values(), *tables], force=force)
    scores = stress(paths, meta=tables, **options)
    files.write(
        to_json=scores.to_json,
        to_csv=scores.to_csv,
        tables=scores.tables,
        report=partial(scores.report, pictures=pictures),
    )


@click.command("compress", cls=Command)
@click.argument("images", nargs=-1, required=True, type=Place("scenes"))
@click.option("-o", "--out", type=PATH, required=True, metavar="DIR", help="The folder of the copies.")
@click.option(
    "--condition",
    "conditions",
    multiple=True,
    metavar="NAME",
    help="Such as jpeg-85. Repeatable. [default: JPEG and WebP at 85, 70 and 50]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@quiet_option
def compress_command(
    images: tuple[str, ...], out: Path, conditions: tuple[str, ...], as_json: bool, quiet: bool
) -> None:
    """Write compressed copies of IMAGES, to see what a detector makes of them.

    A copy of IMAGES/a/cat.png is DIR/jpeg-85/a/cat.jpg. Copies that are there stay, so the same command goes
    on where it was interrupted. IMAGES are folders or files, or the word `scenes` for the bundled ones. Run
    the detector on DIR/jpeg-85, and give `uncanny edits stress` its predictions as jpeg-85=PREDICTIONS.

    Exit code 1 if there are images that could not be read.
    """
    from uncanny.cli.common.session import RUN_CODES
    from uncanny.edits import compress

    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is no folder", remedy="Name a folder for the copies.")
    with _progress(enabled=not quiet and not as_json) as on_image:
        result = compress(images, out, conditions=conditions or None, on_image=on_image)
    if as_json:
        say_json(result.to_json())
    elif not quiet:
        say(str(result))
    raise click.exceptions.Exit(RUN_CODES["failures"] if result.failed else 0)


@contextmanager
def _progress(*, enabled: bool) -> Iterator[Callable[[str], None] | None]:
    """What is to be called after each image; None where nobody watches."""
    from uncanny.runs.display import counting

    with counting("images", enabled=enabled) as counted:
        if counted is None:
            yield None
            return
        counted.begin(None)
        yield counted.one
