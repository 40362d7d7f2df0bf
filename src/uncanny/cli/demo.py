"""`uncanny demo`: the bundled images, annotated by the demo model into a run folder."""

from __future__ import annotations

from pathlib import Path

import click

from uncanny.cli.command import Command
from uncanny.cli.outputs import check_run_folder, force_option


@click.command("demo", cls=Command)
@click.option(
    "-o",
    "--run",
    default=Path("runs/demo"),
    show_default=True,
    type=click.Path(path_type=Path),
    help="The run folder.",
)
@force_option
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="No progress, no summary.")
def command(run: Path, force: bool, as_json: bool, quiet: bool) -> None:
    """Annotate the bundled sample images with the embedded demo model.

    No key, no GPU, no network. The demo model knows these images only, and makes a few documented mistakes
    on purpose, so that what it finds is neither perfect nor empty.
    """
    from uncanny.cli.annotate import AnnotateSummary
    from uncanny.cli.session import run_here, show_end
    from uncanny.demo.scenes import scenes
    from uncanny.eval.annotate.run import AnnotateTask
    from uncanny.models.registry import ModelId
    from uncanny.records.run_folder import RunFolder, copy_into
    from uncanny.runs.config import ModelOptions

    check_run_folder(run, force=force)
    images = copy_into(run / "images", (scene.image_path for scene in scenes()))
    task = AnnotateTask(folder=RunFolder(run), paths=[images], models=ModelOptions(ModelId("demo", "")))
    end = run_here(task, quiet=quiet)
    raise click.exceptions.Exit(
        show_end(AnnotateSummary(task, report=True), end, as_json=as_json, quiet=quiet)
    )
