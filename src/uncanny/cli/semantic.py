"""`uncanny semantic`: options, progress and files around `uncanny.semantic.score`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack

import click

from uncanny.cli.common.asking import backbone_options
from uncanny.cli.common.command import Command
from uncanny.cli.common.files import ScoreFiles, at_rest, check_outputs, rows_jsonl
from uncanny.cli.common.options import (
    PATH,
    Real,
    force_option,
    group_by_option,
    json_file_option,
    no_page_option,
    page_option,
    pictures_option,
    resamples_option,
    seed_option,
    table_options,
)
from uncanny.cli.common.places import Place, names_and_paths
from uncanny.cli.server.run import on_server

if TYPE_CHECKING:
    from uncanny.eval.common.anomalies.image import MatchedImage
    from uncanny.eval.common.pictures import PicturesMode
    from uncanny.eval.semantic.score.score import OnImage, OnStart


def _thresholds(_ctx: click.Context, _option: click.Parameter, value: str) -> tuple[float, ...]:
    try:
        thresholds = tuple(float(part) for part in value.split(","))
    except ValueError:
        thresholds = ()
    if not thresholds or not all(0 <= threshold <= 1 for threshold in thresholds):
        raise click.BadParameter(f"{value!r} is no list of numbers from 0 to 1 such as 0.7,0.8,0.9")
    return thresholds


class ScoreKeywords(TypedDict):
    """The options that are those of `uncanny.semantic.score`."""

    similarity: Literal["bertscore", "chrf"]
    backbone: str | None
    num_layers: int | None
    device: str | None
    batch_tokens: int | None
    keep_all: bool
    thresholds: tuple[float, ...]
    balance: float
    group_by: str | None
    resamples: int
    seed: int
    published: bool


@click.command("semantic", cls=Command)
@on_server("semantic")
@click.argument("predictions", nargs=-1, required=True, type=Place(named=True), metavar="[NAME=]PRED…")
@click.option(
    "--truth",
    required=True,
    type=Place("scenes"),
    metavar="TRUTH",
    help="The true anomalies; `scenes` is the bundled set's.",
)
@json_file_option
@table_options
@click.option(
    "--per-image", type=PATH, metavar="FILE", help="Write an image a line, with every match, as JSON Lines."
)
@click.option(
    "--similarity",
    type=click.Choice(["bertscore", "chrf"]),
    default="bertscore",
    show_default=True,
    help="How texts are compared. chrf needs no weights and compares with no published figure.",
)
@backbone_options
@click.option("--keep-all", is_flag=True, help="Keep embeddings of predicted texts on disk too.")
@click.option(
    "--thresholds",
    default="0.7,0.8,0.9",
    show_default=True,
    callback=_thresholds,
    help="From which similarity on a match counts.",
)
@click.option(
    "--lambda",
    "balance",
    type=Real(0, 1),
    default=0.5,
    show_default=True,
    help="The share of the phenomenon in the view full; the rest is the reasoning's.",
)
@group_by_option()
@resamples_option("Bootstrap resamples over images.")
@seed_option
@click.option("--published", is_flag=True, help="Show the published models beside yours.")
@page_option("semantic.html beside PRED")
@no_page_option
@pictures_option
@force_option
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
def command(
    predictions: tuple[str, ...],
    truth: str,
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
    **options: Unpack[ScoreKeywords],
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
    check_outputs(outputs, [*paths.values(), Path(truth)], force=force)
    with ExitStack() as stack:
        on_start, show = stack.enter_context(_progress(enabled=not quiet))
        write = None if per_image is None else stack.enter_context(_rows(per_image))

        def on_image(name: str, image: MatchedImage) -> None:
            show(name, image)
            if write is not None:
                write(name, image)

        scores = score(paths, truth=truth, on_start=on_start, on_image=on_image, **options)
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
