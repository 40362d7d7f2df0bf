"""`uncanny semantic`: options, progress and files around `uncanny.semantic.score`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uncanny.cli.common.command import Command, end
from uncanny.cli.common.files import ScoreFiles, at_rest, rows_jsonl
from uncanny.cli.common.options import PATH, score_options
from uncanny.cli.common.parameters import given_parameters, parameter_options
from uncanny.cli.common.places import Place, names_and_paths
from uncanny.eval.semantic.parameters import SemanticParameters

if TYPE_CHECKING:
    from uncanny.eval.common.anomalies.image import MatchedImage
    from uncanny.eval.semantic.parameters import OnImage, OnStart


@click.command("semantic", cls=Command, job="semantic")
@click.argument("predictions", nargs=-1, required=True, type=Place(named=True), metavar="[NAME=]PRED…")
@parameter_options(SemanticParameters)
@score_options("semantic.html beside PRED")
@click.option(
    "--per-image",
    type=PATH,
    metavar="FILE",
    help="Write one line per image, with every match, as JSON Lines.",
)
def command(predictions: tuple[str, ...], per_image: Path | None, **values: Any) -> None:
    """Score predicted anomalies against the ground truth by meaning: SemAP, SemF1, cSemAP, cSemF1.

    PRED is a run folder, records as JSON Lines, or one JSON object that maps images to their anomalies or to
    the plain text of a model. TRUTH takes the same forms. Both protocols are reported.

    \b
    Out of the box:
      uncanny demo -o runs/demo
      uncanny semantic runs/demo --truth scenes --similarity chrf

    Exit code 1 if some records failed; no score counts them.
    """
    from uncanny.eval.common.anomalies.load import name_paths
    from uncanny.eval.semantic.score.result import COLUMNS, page_beside
    from uncanny.semantic import score

    paths = {name: at_rest(path) for name, path in name_paths(names_and_paths(predictions)).items()}
    files = ScoreFiles.of(values, page_beside(next(iter(paths.values()))))
    rows = [] if per_image is None else [rows_jsonl(per_image, ("predictions", "n_pred", "n_true"))]
    files.check(("predictions", "signature"), COLUMNS, [*paths.values(), values["truth"]], *rows)
    with ExitStack() as stack:
        on_start, show = stack.enter_context(_progress(enabled=not files.quiet))
        write = None if per_image is None else stack.enter_context(_rows(per_image))

        def on_image(name: str, image: MatchedImage) -> None:
            show(name, image)
            if write is not None:
                write(name, image)

        given = given_parameters(SemanticParameters, values)
        scores = score(paths, on_start=on_start, on_image=on_image, **given)
    files.write_scores(scores)
    end(failed=any(each.has_failures for each in scores.predictions.values()))


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
    from uncanny.files import dump_json
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
