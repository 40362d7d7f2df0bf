"""`uncanny mcq`: the Q1–Q4 multiple-choice protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from uncanny.cli.models import model_options, read_models, read_run_options
from uncanny.errors import UsageError

PATH = click.Path(path_type=Path)
SCENES = "scenes"


@click.group("mcq")
def command() -> None:
    """Benchmark models on four questions about an artifact: is there one, where, which box, what.

    ITEMS is a JSON Lines file, one item an image, or the word `scenes` for the bundled set.

    \b
    Out of the box:
      uncanny mcq run scenes --model demo -o runs/m
      uncanny mcq score scenes runs/m/answers.jsonl
    """


@command.command("run")
@click.argument("items")
@click.option("-o", "--run", "run", type=PATH, help="The run folder. Needed to run.")
@model_options
@click.option(
    "--root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Where image paths start. [default: the item file's folder]",
)
@click.option("--temperature", default=0.0, show_default=True, help="Sent where the model takes one.")
@click.option("--top-p", type=float, help="[default: the model's own]")
@click.option(
    "--max-output-tokens", default=2000, show_default=True, help="Doubled when an answer is cut off."
)
@click.option("--control", is_flag=True, help="Ask Q4 again without the image.")
def run_command(items: str, run: Path | None, root: Path | None, **options: Any) -> None:
    """Ask every question of ITEMS, each in a call of its own; the same command goes on where it stopped."""
    from uncanny.cli.mcq_items import named_items
    from uncanny.cli.mcq_summary import McqSummary
    from uncanny.cli.session import run_and_show, write_json
    from uncanny.eval.mcq.forecast import forecast_mcq, forecast_mcq_text
    from uncanny.eval.mcq.run import McqJob, McqPlan, run_mcq
    from uncanny.records.run_folder import RunFolder

    if run is None and not options["dry_run"]:
        raise UsageError("No run folder is named", remedy="Say where answers go with -o runs/NAME.")
    folder = run or Path("runs/unnamed")
    loaded, items_file = named_items(items, folder, root)
    plan = McqPlan(options["temperature"], options["top_p"], options["max_output_tokens"], options["control"])
    job = McqJob(
        RunFolder(folder),
        loaded,
        items_file,
        read_models(**options),
        plan,
        options=read_run_options(**options),
        root=root,
    )
    if options["dry_run"]:
        found = forecast_mcq(job)
        write_json(found) if options["as_json"] else click.echo(forecast_mcq_text(found))
        return
    code = run_and_show(
        lambda started: run_mcq(job, started),
        McqSummary(job, items),
        as_json=options["as_json"],
        quiet=options["quiet"],
    )
    raise click.exceptions.Exit(code)
