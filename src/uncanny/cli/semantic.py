"""`uncanny semantic`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from uncanny.cli.command import Command
from uncanny.cli.numbers import RESAMPLES, SEED, Real, Whole
from uncanny.cli.outputs import force_option

PATH = click.Path(path_type=Path)


def _thresholds(_ctx: click.Context, _option: click.Parameter, value: str) -> tuple[float, ...]:
    try:
        found = tuple(float(part) for part in value.split(","))
    except ValueError:
        found = ()
    if not found or not all(0 <= threshold <= 1 for threshold in found):
        raise click.BadParameter(f"{value!r} is no list of numbers from 0 to 1 such as 0.7,0.8,0.9")
    return found


@click.command("semantic", cls=Command)
@click.argument("predictions", nargs=-1, required=True, metavar="[NAME=]PRED…")
@click.option(
    "--truth", required=True, metavar="TRUTH", help="The true anomalies; `scenes` is the bundled set's."
)
@click.option(
    "--json", "json_file", type=PATH, metavar="FILE", help="Write every figure; - for standard output."
)
@click.option(
    "--per-image", type=PATH, metavar="FILE", help="Write an image a line, with every match, as JSON Lines."
)
@click.option(
    "--similarity",
    type=click.Choice(["bertscore", "chrf"]),
    default="bertscore",
    show_default=True,
    help="How texts are compared. chrf needs no weights and compares with no published figure.",
)
@click.option("--backbone", help="Name or folder of BERTScore's model. [default: distilbert-base-uncased]")
@click.option("--num-layers", type=Whole(1, 1_000), help="Layer of the backbone. [default: the usual one]")
@click.option("--device", help="cpu, cuda, cuda:1, mps. [default: the fastest there is]")
@click.option("--batch-tokens", type=Whole(1, 10**9), help="Tokens a forward pass. [default: by device]")
@click.option("--keep-all", is_flag=True, help="Keep embeddings of predicted texts on disk too.")
@click.option(
    "--thresholds",
    default="0.7,0.8,0.9",
    show_default=True,
    callback=_thresholds,
    help="From which similarity on a match counts.",
)
@click.option(
    "--lambda",
    "balance",
    type=Real(0, 1),
    default=0.5,
    show_default=True,
    help="The share of the phenomenon in the view full; the rest is the reasoning's.",
)
@click.option(
    "--resamples",
    type=RESAMPLES,
    default=10_000,
    show_default=True,
    help="Bootstrap resamples over images.",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Same seed, same intervals.")
@click.option("--published", is_flag=True, help="Show the published models beside yours.")
@click.option(
    "--report", type=PATH, metavar="FILE", help="Where the page goes. [default: semantic.html beside PRED]"
)
@click.option("--no-report", is_flag=True, help="Write no page.")
@force_option
@click.option("-q", "--quiet", is_flag=True, help="Show no progress.")
def command(predictions: tuple[str, ...], **options: Any) -> None:
    """Score predicted anomalies against the true ones, by meaning: SemAP, SemF1, cSemAP, cSemF1.

    PRED is a run folder, records as JSON Lines, or one JSON object with images as keys and, as values, their
    anomalies or a model's plain text. TRUTH is the same. Both protocols are reported.

    \b
    Out of the box:
      uncanny demo -o runs/demo
      uncanny semantic runs/demo --truth scenes --similarity chrf

    Exit code 1 if there are records that failed; they are in no score.
    """
    from uncanny.cli.semantic_score import score_and_show

    raise click.exceptions.Exit(score_and_show(predictions, **options))
