"""`uncanny realism`: which edited images would fool a viewer, by the two-order check.

PAIRS as `uncanny realism run` takes them.

What a realism run says of itself in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uncanny.cli.annotate import MOST_FAILURES, skipped_lines, spending_lines
from uncanny.cli.command import Group
from uncanny.cli.options import OUTPUT_TOKENS, RESAMPLES, SEED, TEMPERATURE, TOP_P, several_models_options
from uncanny.cli.outputs import check_run_folder, force_option
from uncanny.cli.terminal import layout
from uncanny.errors import UsageError
from uncanny.eval.realism.data import (
    PAIR_FILE,
    SCENES,
    PairSet,
    Verdict,
    folder_pairs,
    load_pairs,
    scene_pairs,
    store_scene_pairs,
)
from uncanny.eval.realism.run import RealismJob
from uncanny.graphs.ugda_cases import LABELS
from uncanny.records.jsonl import read_records
from uncanny.records.run_folder import check_no_links, check_within
from uncanny.runs.run import RunEnd

if TYPE_CHECKING:
    from uncanny.runs.config import ModelOptions, RunOptions


PATH = click.Path(path_type=Path)


@click.group("realism", cls=Group)
def command() -> None:
    """Find out which edited images would fool a viewer, by a check in both orders (UGDA).

    PAIRS is a JSON Lines file, one pair of an original and its edit a line, a folder with original/ and
    edited/ in it, or the word `scenes` for the bundled pairs.

    \b
    Out of the box:
      uncanny realism run scenes --model demo -o runs/r
      uncanny realism score runs/r
    """


@command.command("run")
@click.argument("pairs", required=False)
@click.option("-o", "--run", "run", type=PATH, help="The run folder. Needed to run.")
@several_models_options
@click.option("--original", type=PATH, help="In place of PAIRS: the folder of originals.")
@click.option("--edited", type=PATH, help="In place of PAIRS: the folder of edits, of the same names.")
@click.option(
    "--root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Where image paths start. [default: the pair file's folder]",
)
@force_option
@click.option(
    "--temperature", type=TEMPERATURE, default=0.1, show_default=True, help="Sent where the model takes one."
)
@click.option("--top-p", type=TOP_P, default=1.0, show_default=True, help="Sent where the model takes one.")
@click.option(
    "--max-output-tokens",
    type=OUTPUT_TOKENS,
    default=2048,
    show_default=True,
    help="Doubled when an answer is cut off.",
)
def run_command(
    pairs: str | None,
    run: Path | None,
    original: Path | None,
    edited: Path | None,
    root: Path | None,
    force: bool,
    **options: Any,
) -> None:
    """Judge every pair of PAIRS, in one call or three each; the same command goes on where it stopped.

    With several models each has a run in a folder of its own in RUN, and a table of all scores follows.
    """
    from uncanny.cli.realism_score import scores_of_runs
    from uncanny.cli.several import Prepared, ask_models
    from uncanny.eval.realism.run import (
        RealismConfig,
        RealismJob,
        forecast_realism,
        forecast_realism_text,
        run_realism,
    )
    from uncanny.records.run_folder import RunFolder

    dry = options["dry_run"]
    if run is None and not dry:
        raise UsageError("No run folder is named", remedy="Say where verdicts go with -o runs/NAME.")
    config = RealismConfig(options["temperature"], options["top_p"], options["max_output_tokens"])

    def prepare(model: ModelOptions, folder: Path | None, limits: RunOptions) -> Prepared:
        found = named_pairs(pairs, original, edited, root, folder, dry=dry)
        target = RunFolder(folder or Path("runs/unnamed"))
        job = RealismJob(target, found, model, config, options=limits, root=root)
        return Prepared(
            RealismSummary(job),
            partial(run_realism, job),
            partial(forecast_realism, job),
            forecast_realism_text,
        )

    check = partial(
        check_run_folder, inputs=[] if pairs is None else [Path(pairs)], report=False, force=force
    )
    code = ask_models(options.pop("models"), run, prepare, scores_of_runs, check=check, **options)
    raise click.exceptions.Exit(code)


@command.command("score")
@click.argument("verdicts", nargs=-1, required=True, type=PATH)
@click.option(
    "--json", "json_file", type=PATH, metavar="FILE", help="Write every figure; - for standard output."
)
@click.option("--csv", "csv_file", type=PATH, metavar="FILE", help="Write a row a figure.")
@click.option(
    "--human",
    type=PATH,
    multiple=True,
    metavar="FILE",
    help="People's answers about the same images. Repeatable.",
)
@click.option("--published", is_flag=True, help="Show the published human figures too.")
@click.option(
    "--report", type=PATH, help="Where the page goes. [default: realism.html beside the first verdicts]"
)
@click.option("--no-report", is_flag=True, help="Write no page.")
@force_option
@click.option(
    "--root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Where image paths start, for the page. [default: as the run says]",
)
@click.option(
    "--resamples",
    type=RESAMPLES,
    default=10_000,
    show_default=True,
    help="Bootstrap resamples over pairs.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Same seed, same intervals.")
def score_command(verdicts: tuple[Path, ...], **options: Any) -> None:
    """Score VERDICTS offline, several side by side: labels, cases, groups, position bias, calls saved.

    VERDICTS are verdicts.jsonl files or run folders. Labels are derived again from the answers.
    """
    from uncanny.cli.realism_score import score_and_show

    score_and_show(verdicts, **options)


STORED = "pairs"


def named_pairs(
    name: str | None,
    original: Path | None,
    edited: Path | None,
    root: Path | None,
    run: Path | None,
    *,
    dry: bool,
) -> PairSet:
    """The pairs; the bundled ones are copied into `run`, but not by a dry run. Raises UsageError."""
    if (original is None) != (edited is None):
        raise UsageError("--original and --edited go together", remedy="Name both folders.")
    if (name is None) == (original is None):
        raise UsageError(
            "Pairs are named twice" if name else "No pairs are named",
            remedy="Give either PAIRS or both --original and --edited.",
        )
    if original is not None and edited is not None:
        return folder_pairs(original, edited)
    assert name is not None
    if name != SCENES or Path(name).exists():
        return load_pairs(Path(name), root)
    if root is not None:
        raise UsageError("--root does not go with the bundled pairs", remedy="Leave it out.")
    if run is None or (dry and not (run / STORED / PAIR_FILE).is_file()):
        return scene_pairs()
    check_no_links(run / STORED)
    stored = store_scene_pairs(run / STORED)
    pairs = load_pairs(stored)
    remedy = f"It is not the bundled set: remove {stored.parent}, or name another run with -o."
    files = (file for pair in pairs.pairs for file in (pair.original, pair.edited))
    check_within(run, stored, files, remedy=remedy)
    return pairs


@dataclass(frozen=True, slots=True)
class RealismSummary:
    """Counts, pairs without a label, and what to do next. There is no page: it belongs to the scores."""

    job: RealismJob

    def page(self) -> Path | None:
        return None

    def as_json(self, end: RunEnd, page: Path | None) -> dict[str, Any]:
        verdicts = list(self._verdicts())
        return {
            "run": str(self.job.folder.path),
            "state": end.manifest.get("state"),
            "verdicts": str(self.job.verdicts),
            "report": None if page is None else str(page),
            "totals": end.manifest.get("totals"),
            "labels": _labels(verdicts),
            "failures": [
                {
                    "id": verdict.id,
                    "outcome": verdict.outcome,
                    "errors": [error.model_dump() for error in verdict.errors],
                }
                for verdict in verdicts
                if verdict.outcome in ("failed", "unusable")
            ],
            "skipped": dict(end.progress.skipped.counts) if end.progress.skipped else {},
            "warnings": end.progress.warnings,
            "error": None if end.error is None else str(end.error),
        }

    def text(self, end: RunEnd, page: Path | None) -> str:  # noqa: ARG002  one protocol for all runs
        progress = end.progress
        verdicts = list(self._verdicts())
        left = progress.total - progress.done
        counts = ", ".join(
            f"{progress.statuses[kind]:,} {kind}" for kind in progress.kinds if progress.statuses[kind]
        )
        labels = ", ".join(f"{count:,} {label}" for label, count in _labels(verdicts).items())
        lines = [
            f"Pairs    {progress.total:,}: {counts or 'none done'}"
            + (f", {left:,} not done" if left else ""),
            *skipped_lines(end),
            f"Labels   {labels}",
        ]
        odd = [_why(verdict) for verdict in verdicts if verdict.outcome not in (None, "judged")]
        if odd:
            more = [f"  … and {len(odd) - MOST_FAILURES:,} more"] if len(odd) > MOST_FAILURES else []
            lines = ["Without a label:", *odd[:MOST_FAILURES], *more, "", *lines]
        return layout(
            [
                *lines,
                *spending_lines(end),
                "",
                f"Verdicts {self.job.verdicts}",
                f"Score    uncanny realism score {self.job.folder.path}",
            ]
        )

    def _verdicts(self) -> Iterator[Verdict]:
        return read_records(self.job.verdicts, Verdict)


def _labels(verdicts: list[Verdict]) -> dict[str, int]:
    found = Counter(verdict.label for verdict in verdicts)
    return {label: found[label] for label in LABELS}


def _why(verdict: Verdict) -> str:
    first = verdict.errors[0]
    more = f" (and {len(verdict.errors) - 1} more)" if len(verdict.errors) > 1 else ""
    return f"  {verdict.id} {verdict.outcome}, {first.asked}: {first.message}{more}"
