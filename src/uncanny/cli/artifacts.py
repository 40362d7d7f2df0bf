"""`uncanny artifacts`: where the artifacts of images are, and of which kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import click

from uncanny.cli.annotate import place_of
from uncanny.cli.command import Group
from uncanny.cli.files import check_run_folder
from uncanny.cli.options import (
    PATH,
    ImageKeywords,
    box_format_option,
    force_option,
    images_root_option,
    models_options,
    pixel_options,
    read_image_options,
    run_option,
    sampling_options,
)
from uncanny.cli.summary import (
    failure_line,
    failure_lines,
    skipped_lines,
    spending_lines,
    status_line,
    texts_lines,
)
from uncanny.cli.terminal import layout

if TYPE_CHECKING:
    from uncanny.answers.boxes import BoxFormatName
    from uncanny.cli.several import Scores
    from uncanny.eval.artifacts.forecast import ArtifactsForecast
    from uncanny.eval.artifacts.run import ArtifactsOptions, ArtifactsRun
    from uncanny.runs.config import AskOptions
    from uncanny.runs.run import RunEnd
    from uncanny.schema import ArtifactCategory

# As in `uncanny.schema`, which takes long to import.
CATEGORIES: tuple[ArtifactCategory, ...] = (
    "textures",
    "edges_shapes",
    "symbols",
    "color",
    "semantics",
    "commonsense",
    "physics",
)


@click.group("artifacts", cls=Group)
def command() -> None:
    """Locate the artifacts of images, each of one of seven categories (X-AIGD).

    \b
    Out of the box:
      uncanny artifacts run scenes --model demo -o runs/x
    """


@command.command("run")
@click.argument("paths", nargs=-1, required=True, type=PATH)
@run_option
@models_options
@images_root_option
@click.option(
    "--category",
    "categories",
    type=click.Choice(CATEGORIES),
    multiple=True,
    help="Ask about this one only; repeatable. [default: all seven]",
)
@click.option("--joint", is_flag=True, help="Ask about all categories in one call, not in one each.")
@click.option("--likelihood", is_flag=True, help="Ask in one call more how likely each image is generated.")
@box_format_option
@sampling_options(temperature=0.0, top_p=None, max_output_tokens=2000)
@pixel_options
@force_option
def run_command(
    paths: tuple[Path, ...],
    run: Path | None,
    models: tuple[str, ...],
    root: Path | None,
    categories: tuple[ArtifactCategory, ...],
    joint: bool,
    likelihood: bool,
    box_format: BoxFormatName | None,
    force: bool,
    as_json: bool,
    **options: Unpack[ImageKeywords],
) -> None:
    """Ask a model where the artifacts of each image are: boxes of seven categories, a call each.

    PATHS are image files and folders, or the word `scenes` for the bundled images. Results go to
    RUN/artifacts.jsonl as they come; the same command goes on where it stopped. With several models each has
    a run in a folder of its own in RUN, and a table of all follows. Exit code, of several models the worst:
    0 all answered, 1 some failed, 2 wrong use, 3 budget spent, 130 interrupted.

    Role: locator.
    """
    from uncanny.cli.several import Asking, ask_models
    from uncanny.eval.artifacts.forecast import forecast
    from uncanny.eval.artifacts.run import run_async

    own: ArtifactsOptions = {
        **read_image_options(options, models),
        "categories": categories or CATEGORIES,
        "joint": joint,
        "likelihood": likelihood,
        "box_format": box_format,
    }

    async def locate(*, model: str, out: Path, **asking: Unpack[AskOptions]) -> ArtifactsRun:
        all_options: ArtifactsOptions = {**own, **asking}
        return await run_async(paths, model=model, out=out, root=root, **all_options)

    def foretell(*, model: str, out: Path | None, **asking: Unpack[AskOptions]) -> ArtifactsForecast:
        all_options: ArtifactsOptions = {**own, **asking}
        return forecast(paths, model=model, out=out, root=root, **all_options)

    def summary(run: ArtifactsRun) -> ArtifactsSummary:
        return ArtifactsSummary(run, root)

    check = partial(check_run_folder, inputs=[], report=False, force=force)
    asking = Asking(check, locate, foretell, summary, regions_of_runs)
    raise click.exceptions.Exit(ask_models(asking, models, run, options, as_json=as_json))


@dataclass(frozen=True, slots=True)
class ArtifactsSummary:
    """Counts, images that failed, and what to do next. There is no page: it belongs to the scores."""

    run: ArtifactsRun
    root: Path | None

    def page(self) -> Path | None:
        return None

    def as_json(self, end: RunEnd, page: Path | None) -> dict[str, Any]:  # noqa: ARG002  there is none
        return self.run.to_json()

    def text(self, end: RunEnd, page: Path | None) -> str:  # noqa: ARG002
        file = self.run.path / self.run.record_file
        regions = self.run.regions()
        by_category = ", ".join(f"{number:,} {category}" for category, number in regions.items() if number)
        failures = [
            failure_line(record, place_of(record, self.run, self.root))
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
                f"Score    uncanny artifacts score {self.run.path} --truth TRUTH",
            ]
        )


def regions_of_runs(runs: Mapping[str, ArtifactsRun]) -> Scores:
    """How many artifacts of each category every model found; what is right of it only a truth tells."""
    from uncanny.cli.several import Scores

    width = max(len("model"), *map(len, runs))
    lines = [f"{'model':<{width}}" + "".join(f"  {each:>12}" for each in CATEGORIES)]
    for name, run in runs.items():
        regions = run.regions()
        lines.append(f"{name:<{width}}" + "".join(f"  {regions[each]:>12,}" for each in CATEGORIES))
    return Scores(lines, {name: run.regions() for name, run in runs.items()})
