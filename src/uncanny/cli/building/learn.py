"""`uncanny learn`: options and printing around the functions of `uncanny.learn`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from uncanny.cli.common.command import Command, Group
from uncanny.cli.common.options import json_option, no_page_option, quiet_option
from uncanny.cli.common.parameters import given_parameters, parameter_options
from uncanny.cli.common.places import Place
from uncanny.cli.common.terminal import complain, say, say_json
from uncanny.protocol import Protocol, jobs, named
from uncanny.wording import harmless

_HELP = """{summary}

{input} Results go to RUN; the same command resumes a run that was interrupted or killed, from its last
checkpoint. The trained model is in RUN/model, with a model card.

Exit code: 0 trained, 2 usage error, 130 interrupted.
"""


@click.group("learn", cls=Group)
def command() -> None:
    """Train models on verified annotations and artifacts.

    \b
    From a reviewed run to a model:
      uncanny export runs/a --to sft --test-fraction 0.1 -o data/a
      uncanny learn reasoner data/a/sft --base models/qwen2.5-vl -o runs/reasoner
    """


def _command(protocol: Protocol) -> click.Command:
    """The command of a protocol that trains, made from its entry in the table."""
    given = protocol.input
    kind = Place(named=given.kind == "named")

    @click.command(
        protocol.command[-1],
        cls=Command,
        job=protocol.name,
        extra=protocol.extra,
        help=_HELP.format(summary=protocol.summary, input=given.help),
    )
    @click.argument(given.name, type=kind)
    @parameter_options(protocol.parameters)
    @json_option
    @no_page_option
    @quiet_option
    def command(as_json: bool, no_report: bool, quiet: bool, **values: Any) -> None:
        from uncanny.learn.common.machine import is_first_process

        data = values.pop(given.name)
        shown = given_parameters(protocol.parameters, values)
        run = named(protocol.run)(Path(data), **shown, progress=not quiet and is_first_process())
        if not is_first_process():
            return
        page = None if no_report else run.report()
        if as_json:
            say_json(run.to_json() | {"report": None if page is None else str(page)})
        elif not quiet:
            made = [f"Model    {harmless(str(run.model))}"] if run.state != "interrupted" else []
            say("\n".join([str(run), "", *made, *([f"Page     {page}"] if page else [])]))
        if run.state == "interrupted":
            complain("Interrupted. The same command resumes it from its last checkpoint.")
            raise click.exceptions.Exit(130)

    return command


for each in jobs().values():
    if each.command[0] == "learn":
        command.add_command(_command(each))
