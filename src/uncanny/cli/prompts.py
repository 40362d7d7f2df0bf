"""`uncanny prompts`: which texts a protocol asks with, and a folder of them to begin one's own from."""

from __future__ import annotations

from pathlib import Path

import click

from uncanny.cli.common.command import Command
from uncanny.cli.common.options import PATH, force_option
from uncanny.cli.common.terminal import layout, say
from uncanny.prompts import prompt_set
from uncanny.protocol import prompt_names


@click.command("prompts", cls=Command, config=False)
@click.argument("protocol", required=False, type=click.Choice(prompt_names()))
@click.option("-o", "--out", "out", type=PATH, metavar="DIR", help="Write the texts here, as .md files.")
@force_option
def command(protocol: str | None, out: Path | None, force: bool) -> None:
    """Show the texts that models are asked with, and their variables; with -o, write them out.

    Change some of them and ask with --prompts DIR: what DIR has not is taken from uncanny's. Without PROTOCOL
    all protocols are shown, or written to a folder each in DIR. `uncanny annotate` and `audit` ask with
    `packed`; with --schedule paper they ask with `annotate`, with --schedule single with `single`.

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
