"""The command of a protocol that asks models, from its entry in the table of protocols."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from uncanny.cli.common.asking import asking_options
from uncanny.cli.common.command import Command
from uncanny.cli.common.files import check_run_folder
from uncanny.cli.common.options import PATH, force_option
from uncanny.cli.common.parameters import parameter_options
from uncanny.cli.common.places import Place
from uncanny.protocol import Protocol, named

_HELP = """{summary}

Results go to RUN/{records} as they come; the same command resumes the run. With several models each has a run
in a folder of its own in RUN. Exit code, of several models the worst: 0 all done, 1 some failed, 2 usage
error,
3 budget spent, 130 interrupted."""


def run_command(protocol: Protocol) -> click.Command:
    """Asks models, or forecasts it, and says in the end how far the run is."""
    given = protocol.input
    several = given.kind == "images"
    kind: click.ParamType[Any] = PATH if several else Place(*(["scenes"] if given.bundled else []))

    @click.command(
        protocol.command[-1],
        cls=Command,
        job=protocol.name,
        help=_HELP.format(summary=protocol.summary, records=protocol.records),
    )
    @click.argument(given.name, nargs=-1 if several else 1, required=True, type=kind)
    @asking_options(protocol.parameters)
    @parameter_options(protocol.more)
    @force_option
    def command(force: bool, **values: Any) -> None:
        from uncanny.cli.common.several import Asking, Scores, ask_models
        from uncanny.cli.common.summary import Summary

        inputs = values[given.name]
        check = partial(check_run_folder, inputs=[] if several else [Path(inputs)], report=False, force=force)
        forecast = named(protocol.forecast) if protocol.forecast else None
        run = named(protocol.run)
        asking = Asking(
            protocol.parameters, inputs, run, forecast, check, Summary, lambda _: Scores((), None)
        )
        raise click.exceptions.Exit(ask_models(asking, values))

    return command
