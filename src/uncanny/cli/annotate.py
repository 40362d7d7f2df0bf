"""`uncanny annotate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from uncanny.cli.models import model_options, read_models, read_run_options

PLAN = ("repeats", "max_objects", "scene_scans", "temperature", "top_p", "max_output_tokens")


@click.command("annotate")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--run", "run", type=click.Path(path_type=Path), help="The run folder. Needed to run.")
@model_options
@click.option(
    "--root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Name images in records relative to this. [default: the run folder]",
)
@click.option("--repeats", default=3, show_default=True, help="Drafts of the object list.")
@click.option("--max-objects", default=12, show_default=True, help="Most objects examined in an image.")
@click.option("--scene-scans", default=0, show_default=True, help="Extra looks at the image as a whole.")
@click.option("--temperature", default=0.3, show_default=True, help="Sent where the model takes one.")
@click.option("--top-p", default=0.95, show_default=True, help="Sent where the model takes one.")
@click.option(
    "--max-output-tokens", default=2000, show_default=True, help="Doubled when an answer is cut off."
)
@click.option(
    "--formatter-output-tokens", default=5000, show_default=True, help="The same for the last step."
)
@click.option(
    "--max-side", type=int, help="Scale larger images down to this many pixels. [default: send as is]"
)
@click.option(
    "--image-format",
    type=click.Choice(["keep", "png", "jpeg"]),
    default="keep",
    show_default=True,
    help="Convert images; keep sends a file's own bytes where the model takes them.",
)
@click.option("--jpeg-quality", default=95, show_default=True, help="Where a JPEG has to be written.")
@click.option("--max-pixels", default=100_000_000, show_default=True, help="Larger images are not opened.")
@click.option(
    "--report/--no-report", default=True, help="Write RUN/report.html in the end. [default: report]"
)
def command(
    paths: tuple[Path, ...], run: Path | None, root: Path | None, report: bool, **options: Any
) -> None:
    """Annotate images: what is in them that cannot be, why, and how unreal it makes them.

    PATHS are image files and folders. Results go to RUN/annotations.jsonl as they come; the same command
    goes on where it stopped. Exit code: 0 all annotated, 1 some failed, 2 wrong use, 3 budget spent,
    130 interrupted.

    \b
    Keys: OPENAI_API_KEY, ANTHROPIC_API_KEY, VLLM_API_KEY, OPENAI_COMPATIBLE_API_KEY.
    Roles: perceiver, attributes, relations, integrator, formatter, scanner.
    """
    from uncanny.agents.plan import AnnotatePlan
    from uncanny.cli.checked import checked
    from uncanny.cli.session import annotate_and_show, dry_run
    from uncanny.errors import UsageError
    from uncanny.images import PixelPolicy
    from uncanny.records.run_folder import RunFolder
    from uncanny.runs.annotate_run import AnnotateJob

    if run is None and not options["dry_run"]:
        raise UsageError("No run folder is named", remedy="Say where results go with -o runs/NAME.")
    plan = checked(
        AnnotatePlan,
        {name: options[name] for name in (*PLAN, "formatter_output_tokens")},
    )
    policy = PixelPolicy(
        max_side=options["max_side"],
        format=options["image_format"],
        jpeg_quality=options["jpeg_quality"],
        max_pixels=options["max_pixels"],
    )
    job = AnnotateJob(
        RunFolder(run or Path("runs/unnamed")),
        paths,
        read_models(**options),
        plan,
        policy,
        read_run_options(**options),
        root,
    )
    if options["dry_run"]:
        dry_run(job, as_json=options["as_json"])
    else:
        code = annotate_and_show(job, as_json=options["as_json"], quiet=options["quiet"], report=report)
        raise click.exceptions.Exit(code)
