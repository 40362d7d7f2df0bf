"""`uncanny artifacts`: where the artifacts of images are, of which kind, and how well they are found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

import click

from uncanny.cli.annotate import place_of
from uncanny.cli.common.asking import (
    asking_options,
)
from uncanny.cli.common.command import Group
from uncanny.cli.common.files import ScoreFiles, at_rest, check_outputs, check_run_folder
from uncanny.cli.common.options import (
    FOLDER,
    PATH,
    Real,
    Whole,
    force_option,
    group_by_option,
    json_file_option,
    no_page_option,
    page_option,
    pictures_option,
    quiet_option,
    resamples_option,
    seed_option,
    table_options,
)
from uncanny.cli.common.places import Place, names_and_paths
from uncanny.cli.common.summary import (
    failure_line,
    failure_lines,
    skipped_lines,
    spending_lines,
    status_line,
    texts_lines,
)
from uncanny.cli.common.terminal import layout
from uncanny.cli.server.run import on_server
from uncanny.eval.artifacts.parameters import ArtifactsParameters
from uncanny.schema import ARTIFACT_CATEGORIES

if TYPE_CHECKING:
    from uncanny.cli.common.several import Scores
    from uncanny.eval.artifacts.run import ArtifactsRun, LocatedArtifacts
    from uncanny.eval.artifacts.score.tally import OnImage
    from uncanny.eval.common.pictures import PicturesMode
    from uncanny.runs.run import RunEnd


@click.group("artifacts", cls=Group)
def command() -> None:
    """Locate the artifacts of images, each of one of seven categories, and score what locates them (X-AIGD).

    \b
    Out of the box:
      uncanny artifacts run scenes --model demo -o runs/x
      uncanny artifacts score runs/x --truth scenes
    """


@command.command("run")
@on_server("artifacts")
@click.argument("images", nargs=-1, required=True, type=PATH)
@asking_options(ArtifactsParameters)
@force_option
def run_command(images: tuple[Path, ...], force: bool, **values: Any) -> None:
    """Ask a model where the artifacts of each image are: boxes of seven categories, a call each.

    IMAGES are image files and folders, or the word `scenes` for the bundled images. Results go to
    RUN/artifacts.jsonl as they come; the same command resumes the run. With several models each has
    a run in a folder of its own in RUN, and a table of all follows. Exit code, of several models the worst:
    0 all answered, 1 some failed, 2 wrong use, 3 budget spent, 130 interrupted.

    Role: locator.
    """
    from uncanny.cli.common.several import Asking, ask_models
    from uncanny.eval.artifacts.forecast import forecast
    from uncanny.eval.artifacts.run import run_async

    def summary(run: ArtifactsRun) -> ArtifactsSummary:
        # The bundled set brings its own.
        return ArtifactsSummary(
            run, values["root"], "scenes" if [str(path) for path in images] == ["scenes"] else "TRUTH"
        )

    check = partial(check_run_folder, inputs=[], report=False, force=force)
    asking = Asking(ArtifactsParameters, images, run_async, forecast, check, summary, regions_of_runs)
    raise click.exceptions.Exit(ask_models(asking, values))


@dataclass(frozen=True, slots=True)
class ArtifactsSummary:
    """Counts, images that failed, and what to do next. There is no page: it belongs to the scores.

    `truth` is what the scores are had with.
    """

    run: ArtifactsRun
    root: Path | None
    truth: str = "TRUTH"

    def page(self) -> Path | None:
        return None

    def as_json(self, end: RunEnd, page: Path | None) -> dict[str, Any]:  # noqa: ARG002  there is none
        return self.run.to_json()

    def text(self, end: RunEnd, page: Path | None) -> str:  # noqa: ARG002
        file = self.run.path / self.run.record_file
        regions = self.run.regions()
        by_category = ", ".join(f"{number:,} {category}" for category, number in regions.items() if number)
        failures = [
            failure_line(record, place_of(record, self.run, self.root) + _named(record))
            for record in self.run.artifacts
            if record.status != "ok"
        ]
        return layout(
            [
                *failure_lines("Without an answer, or without a whole one:", failures, where=f", in {file}"),
                status_line("Images", end),
                *skipped_lines(end),
                *texts_lines(end),
                f"Found    {sum(regions.values()):,} artifacts" + (f": {by_category}" if by_category else ""),
                *spending_lines(end),
                "",
                f"Records  {file}",
                f"Score    uncanny artifacts score {self.run.path} --truth {self.truth}",
            ]
        )


def _named(record: LocatedArtifacts) -> str:
    """The categories that have no whole answer, unless they are all that there are."""
    failed = {error.object for error in record.errors} | {*record.incomplete}
    names = [category for category in ARTIFACT_CATEGORIES if category in failed]
    return f" ({', '.join(names)})" if 0 < len(names) < len(ARTIFACT_CATEGORIES) else ""


def regions_of_runs(runs: Mapping[str, ArtifactsRun]) -> Scores:
    """How many artifacts of each category every model found; what is right of it only a truth tells."""
    from uncanny.cli.common.several import Scores

    width = max(len("model"), *map(len, runs))
    lines = [f"{'model':<{width}}" + "".join(f"  {each:>12}" for each in ARTIFACT_CATEGORIES)]
    for name, run in runs.items():
        regions = run.regions()
        lines.append(f"{name:<{width}}" + "".join(f"  {regions[each]:>12,}" for each in ARTIFACT_CATEGORIES))
    return Scores(lines, {name: run.regions() for name, run in runs.items()})


class ScoreKeywords(TypedDict):
    """The options that are those of `uncanny.artifacts.score`."""

    protocol: Literal["paper", "release"]
    t: float
    min_confidence: float | None
    weight_confidence: bool
    bins: str
    n_bins: int
    real_images: bool
    gated: bool
    score_threshold: float
    heat_maps: bool
    heat_map_threshold: float
    root: Path | None
    group_by: str | None
    resamples: int
    seed: int
    published: bool


@command.command("score")
@click.argument("predictions", nargs=-1, required=True, type=Place(named=True), metavar="[NAME=]PRED…")
@click.option(
    "--truth",
    required=True,
    type=Place("scenes"),
    metavar="TRUTH",
    help="The truth; `scenes` is the bundled set's.",
)
@json_file_option
@table_options
@click.option(
    "--protocol",
    type=click.Choice(["paper", "release"]),
    default="paper",
    show_default=True,
    help="How instances are matched: as in the paper, or as in the authors' scorer.",
)
@click.option(
    "--t",
    type=Real(0, 1, above=True),
    default=0.5,
    show_default=True,
    help="The share of a predicted region that has to lie in a true one.",
)
@click.option(
    "--min-confidence",
    type=Real(0, 1),
    help="Leave true regions out whose annotators were less sure. [default: all]",
)
@click.option("--weight-confidence", is_flag=True, help="Weigh what is true by its annotators' confidence.")
@click.option(
    "--bins",
    default="par",
    show_default=True,
    metavar="COLUMN",
    help="What accuracy is binned by: par, or a key of the records with numbers, such as niqe.",
)
@click.option("--n-bins", type=Whole(1, 100), default=5, show_default=True, help="How many bins.")
@click.option("--real-images", is_flag=True, help="Have real images in figures about regions too.")
@click.option(
    "--gated",
    is_flag=True,
    help="Count predicted regions only in images that are predicted to be generated, as the paper does.",
)
@click.option(
    "--score-threshold",
    type=Real(0, 1),
    default=0.5,
    show_default=True,
    help="From which score on an image without a verdict is taken for generated.",
)
@click.option("--heat-maps", is_flag=True, help="Mask files of PRED are a detector's heat maps.")
@click.option(
    "--heat-map-threshold",
    type=Real(0, 1, above=True),
    default=0.5,
    show_default=True,
    help="From which share of white on a heat map is artifact.",
)
@click.option("--published", is_flag=True, help="Show the published rows too.")
@page_option("artifacts.html beside the first PRED")
@no_page_option
@pictures_option
@force_option
@quiet_option
@click.option(
    "--root", type=FOLDER, help="Where paths of images and masks start. [default: the folder of each file]"
)
@group_by_option()
@resamples_option("Bootstrap resamples over images.")
@seed_option
def score_command(
    predictions: tuple[str, ...],
    truth: str,
    json_file: Path | None,
    csv_file: Path | None,
    markdown_file: Path | None,
    latex_file: Path | None,
    report: Path | None,
    no_report: bool,
    pictures: PicturesMode,
    force: bool,
    quiet: bool,
    **options: Unpack[ScoreKeywords],
) -> None:
    """Score predicted artifacts against the true ones: authenticity, pixels, instances, presence, bins.

    PRED and TRUTH are each artifacts.jsonl or a run folder, a detector's verdicts as JSON Lines or CSV,
    annotations with boxes, a file or folder of labelme, COCO instances, or a folder of masks.

    Exit code 1 if there are predictions that failed; they are in no figure.
    """
    from uncanny.artifacts import score
    from uncanny.cli.common.session import RUN_CODES
    from uncanny.eval.artifacts.score.result import COLUMNS, PAGE
    from uncanny.eval.common.anomalies.load import name_paths

    named = name_paths(names_and_paths(predictions))
    paths = {name: at_rest(path) for name, path in named.items()}
    first = next(iter(paths.values()))
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
    outputs = files.outputs(("aj", "pad", "par"), COLUMNS)
    check_outputs(outputs, [*paths.values(), Path(truth)], force=force)
    with ExitStack() as stack:
        show = stack.enter_context(_progress(enabled=not quiet))
        scores = score(paths, truth=truth, on_image=show, **options)
    files.write(
        to_json=scores.to_json,
        to_csv=scores.to_csv,
        tables=scores.tables,
        report=partial(scores.report, pictures=pictures),
    )
    failures = any(each.has_failures for each in scores.values())
    raise click.exceptions.Exit(RUN_CODES["failures"] if failures else 0)


@contextmanager
def _progress(*, enabled: bool) -> Iterator[OnImage | None]:
    """What is to be called after each image; None where nobody watches."""
    from uncanny.runs.display import counting

    with counting("images", enabled=enabled) as counted:
        yield None if counted is None else counted.reach
