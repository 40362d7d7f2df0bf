"""`uncanny edits stress` and `compress`: options, progress and files around the functions of these names."""

from __future__ import annotations

from typing import Any

import click

from uncanny.cli.common.command import Command
from uncanny.cli.common.files import ScoreFiles, at_rest, in_folder_of
from uncanny.cli.common.options import json_option, quiet_option, score_options
from uncanny.cli.common.parameters import given_parameters, parameter_options
from uncanny.cli.common.places import Place, names_and_paths
from uncanny.cli.common.terminal import say, say_json
from uncanny.errors import UsageError
from uncanny.eval.edits.parameters import CompressParameters, StressParameters


@click.command("stress", cls=Command)
@click.argument("predictions", nargs=-1, required=True, type=Place(named=True), metavar="[NAME=]PREDICTIONS…")
@parameter_options(StressParameters)
@score_options("stress.html beside the first PREDICTIONS")
def stress_command(predictions: tuple[str, ...], **values: Any) -> None:
    """Show which edits a detector misses: recall by size, source, method, model and what became what.

    PREDICTIONS are a run folder of `uncanny detect`, or JSON Lines, CSV or Parquet with `image` and `source`
    (generated or real), `score`, or both. NAME is the name of the detector. NAME@jpeg-85 (with one detector,
    jpeg-85 alone) are its predictions on copies that `uncanny edits compress` made, or on any others. META is
    what `uncanny edits measure` writes, or any table with `edited` and `original`, or with `image` and its
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
    given = given_parameters(StressParameters, values)
    tables = [at_rest(path) for path in given.pop("meta")]
    files = ScoreFiles.of(values, in_folder_of(next(iter(named.values())), PAGE))
    files.check(KEYS, COLUMNS, [*paths.values(), *tables])
    files.write_scores(stress(paths, meta=tables, **given))


@click.command("compress", cls=Command)
@click.argument("images", nargs=-1, required=True, type=Place("scenes"))
@parameter_options(CompressParameters)
@json_option
@quiet_option
def compress_command(images: tuple[str, ...], as_json: bool, quiet: bool, **values: Any) -> None:
    """Write compressed copies of IMAGES, to test a detector on them.

    IMAGES are folders or files, or the word `scenes` for the bundled ones. The copy of IMAGES/a/cat.png is
    DIR/jpeg-85/a/cat.jpg. Existing copies are kept, so the same command resumes. Run the detector on
    DIR/jpeg-85, and pass its predictions to `uncanny edits stress` as jpeg-85=PREDICTIONS.

    Exit code 1 if some images could not be read.
    """
    from uncanny.cli.common.session import RUN_CODES
    from uncanny.edits import compress

    given = given_parameters(CompressParameters, values)
    if given["out"].exists() and not given["out"].is_dir():
        raise UsageError(f"{given['out']} is not a folder", remedy="Pass a folder for the copies.")
    result = compress(images, **given, progress=not quiet and not as_json)
    if as_json:
        say_json(result.to_json())
    elif not quiet:
        say(str(result))
    raise click.exceptions.Exit(RUN_CODES["failures"] if result.failed else 0)
