"""`uncanny detect`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uncanny.cli.annotate_options import pixel_options, read_policy
from uncanny.cli.command import Command
from uncanny.cli.models import model_options, read_models, read_run_options
from uncanny.cli.numbers import OUTPUT_TOKENS, TEMPERATURE, TOP_P
from uncanny.cli.outputs import check_run_folder, force_option
from uncanny.errors import UsageError

if TYPE_CHECKING:
    from uncanny.runs.detect_run import DetectJob

PLAN = ("temperature", "top_p", "max_output_tokens")


@click.command("detect", cls=Command)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--run", "run", type=click.Path(path_type=Path), help="The run folder. Needed to run.")
@model_options
@click.option(
    "--root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Name images in records relative to this. [default: the run folder]",
)
@click.option(
    "--truth",
    metavar="FILE",
    help="Score against this: a line an image, or `scenes`. [default: by folders called real, generated, …]",
)
@click.option(
    "--temperature", type=TEMPERATURE, default=0.0, show_default=True, help="Sent where the model takes one."
)
@click.option("--top-p", type=TOP_P, help="Sent where the model takes one. [default: the model's own]")
@click.option(
    "--max-output-tokens",
    type=OUTPUT_TOKENS,
    default=2000,
    show_default=True,
    help="Doubled when an answer is cut off.",
)
@pixel_options
@force_option
@click.option(
    "--report/--no-report", default=True, help="Write RUN/report.html in the end. [default: report]"
)
def command(
    paths: tuple[Path, ...],
    run: Path | None,
    root: Path | None,
    truth: str | None,
    report: bool,
    force: bool,
    **options: Any,
) -> None:
    """Tell generated images from real ones: yes or no, then what gives them away.

    PATHS are image files and folders, or the word `scenes` for the bundled images. Results go to
    RUN/annotations.jsonl as they come; the same command goes on where it stopped. Exit code: 0 all judged,
    1 some failed, 2 wrong use, 3 budget spent, 130 interrupted.

    \b
    Out of the box:
      uncanny detect scenes --model demo -o runs/d
      uncanny semantic runs/d --truth scenes --similarity chrf

    \b
    Keys: OPENAI_API_KEY, ANTHROPIC_API_KEY, VLLM_API_KEY, OPENAI_COMPATIBLE_API_KEY.
    Role: detector.
    """
    from uncanny.cli.detect_images import named_images

    if run is None and not options["dry_run"]:
        raise UsageError("No run folder is named", remedy="Say where results go with -o runs/NAME.")
    if run is not None and not options["dry_run"]:
        check_run_folder(run, [] if truth is None else [Path(truth)], report=report, force=force)
    # A dry run leaves nothing behind, so the bundled images stay where they are.
    images = named_images(paths, run, copy=not options["dry_run"])
    job = _job(images.paths, run, root, **options)
    _run_or_forecast(job, truth or images.truth, report=report, **options)


def _job(paths: tuple[Path, ...], run: Path | None, root: Path | None, **options: Any) -> DetectJob:
    from uncanny.agents.detect_plan import DetectPlan
    from uncanny.cli.checked import checked
    from uncanny.records.run_folder import RunFolder
    from uncanny.runs.detect_run import DetectJob

    return DetectJob(
        RunFolder(run or Path("runs/unnamed")),
        paths,
        read_models(**options),
        checked(DetectPlan, {name: options[name] for name in PLAN}),
        read_policy(**options),
        read_run_options(**options),
        root,
    )


def _run_or_forecast(
    job: DetectJob, truth: str | None, *, report: bool, dry_run: bool, as_json: bool, quiet: bool, **_: object
) -> None:
    from uncanny.cli.detect_summary import DetectSummary, forecast_detect_text
    from uncanny.cli.session import run_and_show, show_forecast
    from uncanny.eval.detect.truth import find_truth
    from uncanny.runs.detect_forecast import forecast_detect
    from uncanny.runs.detect_run import detect

    files = job.inputs().files
    # Before anything is asked: a truth that does not fit is found out for nothing.
    known = find_truth(truth, files, job.paths)
    if dry_run:
        code = show_forecast(forecast_detect(job), forecast_detect_text, as_json=as_json)
        raise click.exceptions.Exit(code)
    summary = DetectSummary(job, frozenset(file.image for file in files), known, report)
    code = run_and_show(lambda started: detect(job, started), summary, as_json=as_json, quiet=quiet)
    raise click.exceptions.Exit(code)
