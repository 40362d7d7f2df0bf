"""What the options of a command do, in the words of its help: for forms that ask for the same."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import click

_REQUIRED = re.compile(r"\s*\[required\]")
_DEFAULT = re.compile(r"\s*\[default: ([^\]]*)\]")


def option_help(words: Sequence[str]) -> Mapping[str, str]:
    """By the long name of each option of the command `words`, such as `("mcq", "run")`, without dashes.

    Under "" is what the command does. Empty where there is no such command.
    """
    from uncanny.cli import uncanny

    command: click.Command | None = uncanny
    ctx = click.Context(uncanny, info_name="uncanny", **uncanny.context_settings)
    for word in words:
        command = command.get_command(ctx, word) if isinstance(command, click.Group) else None
        if command is None:
            return {}
        ctx = click.Context(command, parent=ctx, info_name=word)
    assert command is not None
    help_of = {"": command.get_short_help_str(limit=300)}
    for option in command.params:
        record = option.get_help_record(ctx) if isinstance(option, click.Option) else None
        if record is not None:
            for name in option.opts:
                if name.startswith("--"):
                    text = _REQUIRED.sub("", " ".join(record[1].split()))
                    help_of[name.removeprefix("--")] = _DEFAULT.sub(r" Default: \1.", text)
    return help_of
