"""`uncanny sample` and `uncanny trust`: options and printing around the public functions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from uncanny.cli.common.command import Command
from uncanny.cli.common.options import PATH, json_option, quiet_option
from uncanny.cli.common.parameters import given_parameters, parameter_options
from uncanny.cli.common.terminal import say, say_json
from uncanny.eval.common.parameters import ConfidenceParameters
from uncanny.eval.trust.parameters import SampleParameters


@click.command("sample", cls=Command)
@click.argument("runs", type=PATH, nargs=-1, required=True, metavar="RUN…")
@parameter_options(SampleParameters)
@json_option
@quiet_option
def sample_command(runs: tuple[Path, ...], as_json: bool, quiet: bool, **values: Any) -> None:
    """Draw images of RUN for people to judge whole, and write them to RUN/sample.json.

    What people say of a sample holds for all images, within an interval. The same command with a larger
    --size extends the sample and keeps what was judged. Images without a whole annotation are not drawn. No
    model is asked. Exit code: 0 drawn, 2 usage error.

    \b
    Out of the box:
      uncanny demo -o runs/demo
      uncanny sample runs/demo --size 10
    """
    from uncanny.eval.trust.draw import sample

    result = sample(runs, **given_parameters(SampleParameters, values))
    if as_json:
        say_json(result.to_json())
    elif not quiet:
        say(str(result))


@click.command("trust", cls=Command)
@click.argument("run", type=PATH)
@parameter_options(ConfidenceParameters)
@json_option
@quiet_option
def trust_command(run: Path, as_json: bool, quiet: bool, **values: Any) -> None:
    """Say how far the findings of RUN can be trusted, from a sample that people judged whole.

    It prints the share of images with a visible fault, AF, MAI and CAP of all images, corrected by what
    people found in the sample, with 95 % intervals; which findings are right, by kind, agent and confidence;
    and what the model missed. Fewer than 30 judged images have no interval. No model is asked.

    \b
    Draw a sample, judge it, and see:
      uncanny sample runs/a --size 200
      uncanny review runs/a --sample
      uncanny trust runs/a

    Exit code: 0 printed, 2 usage error.
    """
    from uncanny.eval.trust.score import trust

    result = trust(run, **given_parameters(ConfidenceParameters, values))
    if as_json:
        say_json(result.to_json())
    elif not quiet:
        say(str(result))
