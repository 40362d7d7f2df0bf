"""`uncanny edits perturb` and `uncanny edits prompts`: the words that edits are made after, from a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from uncanny.cli.common.asking import asking_options
from uncanny.cli.common.command import Command
from uncanny.cli.common.files import check_run_folder
from uncanny.cli.common.options import force_option
from uncanny.cli.common.places import Place
from uncanny.cli.common.summary import Summary, failure_lines, spending_lines, status_line, texts_lines
from uncanny.eval.edits.run.parameters import PerturbParameters, PromptsParameters

if TYPE_CHECKING:
    from uncanny.parameters import Parameters
    from uncanny.runs.run import RunEnd


@click.command("perturb", cls=Command)
@click.argument("texts", type=Place("scenes"))
@asking_options(PerturbParameters)
@force_option
def perturb_command(texts: str, force: bool, **values: Any) -> None:
    """Ask a model to change captions and labels a little, more, or much.

    TEXTS is a JSON Lines file with `id` and `caption`, `label` or both per line, and optionally the image as
    `original`, such as an edits.jsonl; or the word `scenes` for the bundled set. Each text is changed once
    per magnitude; uncanny asks again for a text that fails the gates of `edits gate`. Results go to
    RUN/perturbations.jsonl as they come; the same command resumes the run. With several models, each gets its
    own run folder in RUN.

    Role: perturber.
    """
    from uncanny.eval.edits.run.forecast import perturb_forecast
    from uncanny.eval.edits.run.perturb import perturb_async

    _ask(PerturbParameters, texts, perturb_async, perturb_forecast, force, values)


@click.command("prompts", cls=Command)
@click.argument("texts", type=Place("scenes"))
@asking_options(PromptsParameters)
@force_option
def prompts_command(texts: str, force: bool, **values: Any) -> None:
    """Ask a model to choose an object to paint over, and to write the prompt for it (SAOR).

    TEXTS is a JSON Lines file with `id`, `caption` and a list of `objects` per line, or the word `scenes` for
    the bundled set. The object must be in the list; uncanny asks again for a prompt that fails the gates of a
    caption. Results go to RUN/prompts.jsonl as they come; the same command resumes the run. With several
    models, each gets its own run folder in RUN.

    Role: writer.
    """
    from uncanny.eval.edits.run.forecast import prompts_forecast
    from uncanny.eval.edits.run.prompts import prompts_async

    _ask(PromptsParameters, texts, prompts_async, prompts_forecast, force, values)


def _ask(
    kind: type[Parameters], texts: str, run: Any, forecast: Any, force: bool, values: Mapping[str, Any]
) -> NoReturn:
    """What a model writes has no scores of its own."""
    from uncanny.cli.common.several import Asking, Scores, ask_models

    check = partial(check_run_folder, inputs=[Path(texts)], report=False, force=force)
    asking = Asking(kind, texts, run, forecast, check, WritingSummary, lambda _: Scores((), None))
    raise click.exceptions.Exit(ask_models(asking, values))


@dataclass(frozen=True, slots=True)
class WritingSummary(Summary[Any]):
    """Counts and texts that are missing. There is no page."""

    def lines(self, end: RunEnd, page: Path | None) -> list[str]:  # noqa: ARG002
        file = self.run.path / self.run.record_file
        missing = [line for line in map(_why, self.run.records) if line is not None]
        return [
            *failure_lines("Without a text, or without a whole one:", missing, where=f", in {file}"),
            status_line("Texts", end),
            *texts_lines(end),
            *spending_lines(end),
            "",
            f"Records  {file}",
        ]


def _why(record: Any) -> str | None:
    """Why a record has no text; None where it has one."""
    if record.outcome == "ok":
        return None
    name = "/".join(
        str(getattr(record, each)) for each in ("id", "kind", "magnitude") if hasattr(record, each)
    )
    return f"{record.outcome:<9} {name}: {record.errors[0].message if record.errors else 'no reason given'}"
