"""Write `docs/commands.md` from the command line: `python docs/make_commands.py`.

A test fails if the page differs from what this script writes.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import click

from uncanny.cli import COMMANDS, uncanny

TARGET = Path(__file__).with_name("commands.md")
_HEAD = """\
# Commands

<!-- Written by docs/make_commands.py from the command line; do not edit. -->

`uncanny COMMAND --help` prints the same.

- [Runs](runs.md): files of a run, and exit codes
- [Providers](providers.md): models for `--model`, and `UNCANNY_…` variables that replace defaults
- [Options from a file](configuration.md): the file for `--config`
"""
_AS_IT_IS = "\b\n"
_DEFAULT = re.compile(r"\s*\[default: (.+)\]$")


def commands_page() -> str:
    """The page as Markdown: one section per command, in the order of `uncanny --help`."""
    parent = click.Context(uncanny, info_name="uncanny", **uncanny.context_settings)
    sections = [_HEAD]
    for name in COMMANDS:
        command = uncanny.get_command(parent, name)
        assert command is not None
        ctx = click.Context(command, parent=parent, info_name=name)
        sections.append(_section(name, command, ctx))
        if isinstance(command, click.Group):
            for part, inner in command.commands.items():
                within = click.Context(inner, parent=ctx, info_name=part)
                sections.append(_section(f"{name} {part}", inner, within))
    return "\n".join(sections)


def _section(name: str, command: click.Command, ctx: click.Context) -> str:
    usage = " ".join([ctx.command_path, *command.collect_usage_pieces(ctx)])
    options = [each for each in command.params if isinstance(each, click.Option)]
    rows = [_row(each, ctx) for each in options]
    if rows:
        rows = ["| Option | Meaning | Default |", "| --- | --- | --- |", *rows]
    return "\n".join([f"## {name}", "", f"`{usage}`", "", _prose(command.help or ""), "", *rows, ""])


def _prose(text: str) -> str:
    """Each paragraph on one line; a paragraph that click must not wrap becomes a code block."""
    done = []
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text)):
        if paragraph.startswith(_AS_IT_IS):
            done.append("```text\n" + paragraph.removeprefix(_AS_IT_IS) + "\n```")
        else:
            done.append(" ".join(paragraph.split()))
    return "\n\n".join(done)


def _row(option: click.Option, ctx: click.Context) -> str:
    names = ", ".join(f"`{name}`" for name in option.opts)
    if option.secondary_opts:
        names += " / " + ", ".join(f"`{name}`" for name in option.secondary_opts)
    if not option.is_flag:
        names += f" `{option.make_metavar(ctx)}`"
    meaning, default = option.help or "", ""
    if found := _DEFAULT.search(meaning):
        meaning, default = meaning[: found.start()], found[1]
    elif option.is_flag and option.secondary_opts:
        default = (option.opts if option.default else option.secondary_opts)[0].removeprefix("--")
    elif option.required:
        default = "required"
    elif option.show_default:
        default = f"`{option.default}`"
    # Otherwise a browser would take a placeholder for an HTML element and hide it.
    meaning = meaning.replace("<", "&lt;")
    return "| " + " | ".join(_cell(each) for each in (names, meaning, default)) + " |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    TARGET.write_text(commands_page(), encoding="utf-8")
