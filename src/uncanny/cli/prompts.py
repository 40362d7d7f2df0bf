"""`uncanny prompts`: which texts a protocol asks with, and a folder of them to begin one's own from."""

from __future__ import annotations

from pathlib import Path

import click

from uncanny.cli.common.command import Command
from uncanny.cli.common.options import PATH, force_option
from uncanny.cli.common.terminal import say
from uncanny.prompts import prompt_set
from uncanny.protocol import prompt_names
from uncanny.wording import layout


@click.command("prompts", cls=Command, config=False)
@click.argument("protocol", required=False, type=click.Choice(prompt_names()))
@click.option(
    "-o", "--out", "out", type=PATH, metavar="DIR", help="Write the prompts to this folder, as .md files."
)
@force_option
def command(protocol: str | None, out: Path | None, force: bool) -> None:
    """Show the prompts and their variables; with -o, write them to a folder.

    Change some of them and pass the folder with --prompts DIR; uncanny's own prompts replace missing files.
    Without PROTOCOL, all protocols are shown, or written to a folder each in DIR. `uncanny annotate` and
    `audit` use `packed`; with --schedule paper they use `annotate`, with --schedule single `single`.

    \b
    Your own wording of the multiple-choice questions:
      uncanny prompts mcq -o my-texts
      uncanny mcq run scenes --prompts my-texts --model openai/gpt-4o -o runs/m
    """
    from uncanny.prompts.folders import write_prompts

    protocols = prompt_names() if protocol is None else (protocol,)
    if out is None:
        say("\n\n".join(_shown(each) for each in protocols))
        return
    for each in protocols:
        folder = out if protocol is not None else out / each
        files = write_prompts(each, folder, force=force)
        say(layout([f"{each}: {len(files) - 1} texts and a table of their variables, {folder}"]))


def _shown(protocol: str) -> str:
    """The texts of a protocol as a table; variables in brackets may be left out."""
    from uncanny.prompts.folders import text_files

    files = text_files(protocol)
    width = max(len(file.file) for file in files)
    lines = [f"  {file.file:<{width}}  {file.variables}".rstrip() for file in files]
    return layout([prompt_set(protocol).id, *lines])
