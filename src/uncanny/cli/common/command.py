"""Commands as this program wants them, and what their help says.

Of two values none is dropped, and a mistyped word gets a suggestion.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import get_close_matches

import click

from uncanny.errors import UsageError

_REQUIRED = re.compile(r"\s*\[required\]")
_DEFAULT = re.compile(r"\s*\[default: ([^\]]*)\]")
_ADVICE = {"model": "This command asks one model; make a run for each."}


class Command(click.Command):
    """Refuses an option that is given twice and takes one value: nobody would know which one holds.

    And a path that is empty: it would be the current folder.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing:
            values, _, parameters = self.make_parser(ctx).parse_args(list(args))
            for parameter in self.get_params(ctx):
                if isinstance(parameter.type, click.Path) and _is_empty(values.get(parameter.name or "")):
                    raise UsageError(
                        f"{_shown(parameter)} is empty",
                        remedy="Is a variable unset? The folder here is called `.`.",
                    )
            for parameter, times in Counter(parameters).items():
                if times > 1 and isinstance(parameter, click.Option) and _takes_one_value(parameter):
                    advice = _ADVICE.get(parameter.name or "", "Give it once.")
                    raise UsageError(f"{parameter.opts[0]} is given {times} times", remedy=advice)
        return super().parse_args(ctx, args)


class Group(click.Group):
    """Commands of that kind; knows what a mistyped one was meant to be."""

    command_class = Command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            known = self.list_commands(ctx)
            close = get_close_matches(name, known, n=2, cutoff=0.5)
            advice = f"Did you mean {' or '.join(close)}?" if close else f"There are {', '.join(known)}."
            raise click.UsageError(f"No such command {name!r}. {advice}", ctx)
        return super().resolve_command(ctx, args)


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


def _is_empty(value: object) -> bool:
    # What is not given is None, or a mark of click's own.
    return value == "" or (isinstance(value, list | tuple) and "" in value)


def _shown(parameter: click.Parameter) -> str:
    return parameter.opts[0] if isinstance(parameter, click.Option) else (parameter.name or "").upper()


def _takes_one_value(option: click.Option) -> bool:
    return not (option.multiple or option.is_flag or option.count)
