"""`uncanny semantic`: options, progress and files around `uncanny.semantic.score`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uncanny.cli.common.command import Command
from uncanny.cli.common.files import ScoreFiles, at_rest, check_outputs, rows_jsonl
from uncanny.cli.common.options import (
    PATH,
    force_option,
    json_file_option,
    no_page_option,
    page_option,
    pictures_option,
    table_options,
)
from uncanny.cli.common.parameters import given_parameters, parameter_options
from uncanny.cli.common.places import Place, names_and_paths
from uncanny.cli.server.run import on_server
from uncanny.eval.semantic.parameters import SemanticParameters

if TYPE_CHECKING:
    from uncanny.eval.common.anomalies.image import MatchedImage
    from uncanny.eval.common.pictures import PicturesMode
    from uncanny.eval.semantic.parameters import OnImage, OnStart


@click.command("semantic", cls=Command)
@on_server("semantic")
@click.argument("predictions", nargs=-1, required=True, type=Place(named=True), metavar="[NAME=]PRED…")
@parameter_options(SemanticParameters)
@json_file_option
@table_options
@click.option(
    "--per-image", type=PATH, metavar="FILE", help="Write an image a line, with every match, as JSON Lines."
)
@page_option("semantic.html beside PRED")
@no_page_option
@pictures_option
@force_option
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
def command(
    predictions: tuple[str, ...],
    json_file: Path | None,
    csv_file: Path | None,
    markdown_file: Path | None,
    latex_file: Path | None,
    per_image: Path | None,
    report: Path | None,
    no_report: bool,
    pictures: PicturesMode,
    force: bool,
    quiet: bool,
    **values: Any,
) -> None:
    """Score predicted anomalies against the true ones, by meaning: SemAP, SemF1, cSemAP, cSemF1.

    PRED is a run folder, records as JSON Lines, or one JSON object with images as keys and, as values, their
    anomalies or a model's plain text. TRUTH is the same. Both protocols are reported.

    \b
    Out of the box:
      uncanny demo -o runs/demo
      uncanny semantic runs/demo --truth scenes --similarity chrf

    Exit code 1 if there are records that failed; they are in no score.
    """
    from uncanny.cli.common.session import RUN_CODES
    from uncanny.eval.common.anomalies.load import name_paths
    from uncanny.eval.semantic.score.result import COLUMNS, page_beside
    from uncanny.semantic import score

    named = name_paths(names_and_paths(predictions))
    paths = {name: at_rest(path) for name, path in named.items()}
    default_page = page_beside(next(iter(paths.values())))
    files = ScoreFiles.chosen(
        default_page,
        json_file=json_file,
        csv_file=csv_file,
        markdown_file=markdown_file,
        latex_file=latex_file,
        report=report,
        no_report=no_report,
    )
    outputs = files.outputs(("predictions", "signature"), COLUMNS)
    if per_image is not None:
        outputs.append(rows_jsonl(per_image, ("predictions", "n_pred", "n_true")))
    check_outputs(outputs, [*paths.values(), Path(values["truth"])], force=force)
    with ExitStack() as stack:
        on_start, show = stack.enter_context(_progress(enabled=not quiet))
        write = None if per_image is None else stack.enter_context(_rows(per_image))

        def on_image(name: str, image: MatchedImage) -> None:
            show(name, image)
            if write is not None:
                write(name, image)

        given = given_parameters(SemanticParameters, values)
        scores = score(paths, on_start=on_start, on_image=on_image, **given)
    write_page = partial(scores.report, pictures=pictures)
    files.write(to_json=scores.to_json, to_csv=scores.to_csv, tables=scores.tables, report=write_page)
    failures = any(each.has_failures for each in scores.predictions.values())
    raise click.exceptions.Exit(RUN_CODES["failures"] if failures else 0)


@contextmanager
def _progress(*, enabled: bool) -> Iterator[tuple[OnStart | None, OnImage]]:
    """What is to be called at the start and after each image; silent where nobody watches."""
    from uncanny.runs.display import counting

    with counting("images", enabled=enabled) as counted:
        if counted is None:
            yield None, lambda _name, _image: None
        else:
            yield counted.begin, lambda name, _image: counted.one(name)


@contextmanager
def _rows(path: Path) -> Iterator[OnImage]:
    """A file that gets a line an image, and its name only when it is whole."""
    from uncanny.json_values import dump_json
    from uncanny.records.jsonl import make_folder_of

    temporary = path.with_name(f".{path.name}.tmp")
    try:
        make_folder_of(path)
        with temporary.open("wb") as file:

            def write(name: str, image: MatchedImage) -> None:
                file.write(dump_json(image.to_json(name)) + b"\n")

            yield write
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
