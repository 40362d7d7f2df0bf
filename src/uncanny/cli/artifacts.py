"""`uncanny artifacts`: where the artifacts of images are, of which kind, and how well they are found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uncanny.cli.annotate import place_of
from uncanny.cli.common.asking import (
    asking_options,
)
from uncanny.cli.common.command import Group, end
from uncanny.cli.common.files import ScoreFiles, at_rest, check_run_folder, in_folder_of
from uncanny.cli.common.options import PATH, force_option, score_options
from uncanny.cli.common.parameters import given_parameters, parameter_options
from uncanny.cli.common.places import Place, names_and_paths
from uncanny.cli.common.summary import (
    Summary,
    failure_line,
    failure_lines,
)
from uncanny.demo.sets import BUNDLED
from uncanny.eval.artifacts.parameters import ArtifactScoreParameters, ArtifactsParameters
from uncanny.schema import ARTIFACT_CATEGORIES

if TYPE_CHECKING:
    from uncanny.cli.common.several import Scores
    from uncanny.eval.artifacts.run import ArtifactsRun, LocatedArtifacts


@click.group("artifacts", cls=Group)
def command() -> None:
    """Locate artifacts of seven categories in images, and score predictions of them (X-AIGD).

    \b
    Out of the box:
      uncanny artifacts run scenes --model demo -o runs/x
      uncanny artifacts score runs/x --truth scenes
    """


@command.command("run", job="artifacts")
@click.argument("images", nargs=-1, required=True, type=PATH)
@asking_options(ArtifactsParameters)
@force_option
def run_command(images: tuple[Path, ...], force: bool, **values: Any) -> None:
    """Ask a model for boxes around the artifacts of each image, with one call per category.

    IMAGES are image files and folders, or `scenes` or `large-scenes` for the bundled images. Results go to
    RUN/artifacts.jsonl as they come; the same command resumes the run. With several models, each gets its own
    run folder in RUN, and a table of all follows. Exit code: 0 all answered, 1 some failed, 2 usage error, 3
    budget spent, 130 interrupted; with several models, the worst of them.

    Role: locator.
    """
    from uncanny.cli.common.several import Asking, ask_models
    from uncanny.eval.artifacts.run import forecast, run_async

    def summary(run: ArtifactsRun) -> ArtifactsSummary:
        # The bundled set brings its own.
        return ArtifactsSummary(run, values["root"], str(images[0]) if str(images[0]) in BUNDLED else "TRUTH")

    check = partial(check_run_folder, inputs=[], report=False, force=force)
    asking = Asking(ArtifactsParameters, images, run_async, forecast, check, summary, regions_of_runs)
    raise click.exceptions.Exit(ask_models(asking, values))


@dataclass(frozen=True, slots=True)
class ArtifactsSummary(Summary["ArtifactsRun"]):
    """Counts, images that failed, and what to do next. There is no page: it belongs to the scores.

    `truth` is what the scores are had with.
    """

    root: Path | None
    truth: str = "TRUTH"
    label = "Images"

    def failures(self) -> list[str]:
        failures = [
            failure_line(record, place_of(record, self.run, self.root) + _named(record))
            for record in self.run.artifacts
            if record.status != "ok"
        ]
        where = f", in {self.run.path / self.run.record_file}"
        return failure_lines("Without an answer, or without a whole one:", failures, where=where)

    def found(self) -> list[str]:
        if all(record.regions is None for record in self.run.records):
            return ["Found    no image was looked at for artifacts"]
        regions = self.run.regions()
        by_category = ", ".join(f"{number:,} {category}" for category, number in regions.items() if number)
        unnamed = sum(each.category is None for record in self.run.records for each in record.regions or ())
        if unnamed:
            by_category = f"{unnamed:,} without a category" + (f", {by_category}" if by_category else "")
        return [
            f"Found    {sum(regions.values()) + unnamed:,} artifacts"
            + (f": {by_category}" if by_category else "")
        ]

    def next_steps(self, file: Path) -> list[str]:
        return [f"Records  {file}", f"Score    uncanny artifacts score {self.run.path} --truth {self.truth}"]


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


@command.command("score")
@click.argument("predictions", nargs=-1, required=True, type=Place(named=True), metavar="[NAME=]PRED…")
@parameter_options(ArtifactScoreParameters)
@score_options("artifacts.html beside the first PRED")
def score_command(predictions: tuple[str, ...], **values: Any) -> None:
    """Score predicted artifacts against the ground truth: authenticity, pixels, instances, presence, bins.

    PRED and TRUTH are a run folder or its artifacts.jsonl, verdicts of a detector (JSON Lines or CSV),
    annotations with boxes, a labelme file or folder, COCO instances, or a folder of masks.

    Exit code 1 if some predictions failed; no figure counts them.
    """
    from uncanny.artifacts import score
    from uncanny.eval.artifacts.score.result import COLUMNS, PAGE
    from uncanny.eval.common.anomalies.load import name_paths
    from uncanny.runs.display import counting

    paths = {name: at_rest(path) for name, path in name_paths(names_and_paths(predictions)).items()}
    files = ScoreFiles.of(values, in_folder_of(next(iter(paths.values())), PAGE))
    files.check(("aj", "pad", "par"), COLUMNS, [*paths.values(), values["truth"]])
    with counting("images", enabled=not files.quiet) as counted:
        show = None if counted is None else counted.reach
        scores = score(paths, on_image=show, **given_parameters(ArtifactScoreParameters, values))
    files.write_scores(scores)
    end(failed=any(each.has_failures for each in scores.values()))
