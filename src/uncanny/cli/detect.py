"""`uncanny detect`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uncanny.cli.annotate_options import pixel_options, read_policy
from uncanny.cli.command import Command
from uncanny.cli.models import several_models_options
from uncanny.cli.numbers import OUTPUT_TOKENS, TEMPERATURE, TOP_P
from uncanny.cli.outputs import check_run_folder, force_option
from uncanny.errors import UsageError

if TYPE_CHECKING:
    from uncanny.runs.config import ModelOptions, RunOptions

PLAN = ("temperature", "top_p", "max_output_tokens")


@click.command("detect", cls=Command)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--run", "run", type=click.Path(path_type=Path), help="The run folder. Needed to run.")
@several_models_options
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
    RUN/annotations.jsonl as they come; the same command goes on where it stopped. With several models each
    has a run in a folder of its own in RUN, and a table of all follows. Exit code, of several models the
    worst: 0 all judged, 1 some failed, 2 wrong use, 3 budget spent, 130 interrupted.

    \b
    Out of the box:
      uncanny detect scenes --model demo -o runs/d
      uncanny semantic runs/d --truth scenes --similarity chrf

    \b
    Keys: OPENAI_API_KEY, ANTHROPIC_API_KEY, VLLM_API_KEY, OPENAI_COMPATIBLE_API_KEY.
    Role: detector.
    """
    from uncanny.agents.detect_plan import DetectPlan
    from uncanny.cli.checked import checked
    from uncanny.cli.detect_images import named_images
    from uncanny.cli.detect_summary import DetectSummary, forecast_detect_text, scores_of_runs
    from uncanny.cli.several import Prepared, Scores, ask_models
    from uncanny.eval.detect.truth import find_truth
    from uncanny.records.run_folder import RunFolder
    from uncanny.runs.detect_forecast import forecast_detect
    from uncanny.runs.detect_run import DetectJob, detect

    dry = options["dry_run"]
    if run is None and not dry:
        raise UsageError("No run folder is named", remedy="Say where results go with -o runs/NAME.")
    plan = checked(DetectPlan, {name: options[name] for name in PLAN})
    policy = read_policy(**options)
    summaries: dict[Path, DetectSummary] = {}

    def prepare(model: ModelOptions, folder: Path | None, limits: RunOptions) -> Prepared:
        # A dry run leaves nothing behind, so the bundled images stay where they are.
        images = named_images(paths, folder, copy=not dry)
        target = RunFolder(folder or Path("runs/unnamed"))
        job = DetectJob(target, images.paths, model, plan, policy, limits, root)
        files = job.inputs().files
        # Before anything is asked: a truth that does not fit is found out for nothing.
        known = find_truth(truth or images.truth, files, job.paths)
        summary = DetectSummary(job, frozenset(file.image for file in files), known, report)
        summaries[target.path] = summary
        return Prepared(summary, partial(detect, job), partial(forecast_detect, job), forecast_detect_text)

    def score(folders: Sequence[Path]) -> Scores:
        return scores_of_runs([summaries[folder] for folder in folders])

    inputs = [] if truth is None else [Path(truth)]
    check = partial(check_run_folder, inputs=inputs, report=report, force=force)
    raise click.exceptions.Exit(
        ask_models(options.pop("models"), run, prepare, score, check=check, **options)
    )
