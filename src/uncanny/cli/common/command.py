"""Commands as this program wants them, and what their help says.

Of two values none is dropped, and a mistyped word gets a suggestion. Each takes `--config FILE`, a file of
options (`config.py`), unless it says `config=False`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from difflib import get_close_matches
from functools import partial, wraps
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from uncanny.cli.common.places import PathOnDisk
from uncanny.cli.common.terminal import Origin, note_command
from uncanny.errors import UsageError
from uncanny.extras import Extra, install_hint
from uncanny.wording import shown

if TYPE_CHECKING:
    from uncanny.cli.common.config import Setting

_ADVICE = {"model": "This command asks one model; make a run for each."}
# Names that people give such files: they are not read by themselves.
_USUAL_FILES = ("run.toml", "uncanny.toml")


def end(*, failed: bool) -> NoReturn:
    """End a command that asks no model: with exit code 1 where some of its inputs failed."""
    raise click.exceptions.Exit(1 if failed else 0)


class Command(click.Command):
    """Refuses an option that is given twice and takes one value: nobody would know which one holds.

    And a path that is empty: it would be the current folder. `config` says whether it has `--config`. `extra`
    is the extra whose packages the command imports: its help names it, and so does the error without them.
    `job` is the kind of job it is on a service: it has `--server`, and then runs there.
    """

    def __init__(
        self,
        name: str | None,
        *,
        config: bool = True,
        extra: Extra | None = None,
        job: str | None = None,
        **attributes: Any,
    ) -> None:
        if extra is not None:
            attributes["callback"] = _with_extra(extra, attributes["callback"])
        super().__init__(name, **attributes)
        if extra is not None:
            self.help = f"{cleandoc(self.help or '')}\n\nNeeds the extra `{extra}`. {install_hint(extra)}"
        self.job = job
        if job is not None:
            address = "Run the command on the service at this address (`uncanny serve`)."
            detach = "With --server: start the job, then exit."
            self.params.append(click.Option(["--server"], metavar="URL", help=address))
            self.params.append(click.Option(["--detach"], is_flag=True, help=detach))
        if config:
            option = click.Option(
                ["--config"],
                type=PathOnDisk(path_type=Path),
                metavar="FILE",
                is_eager=True,
                expose_value=False,
                help="Take options from this TOML file, which `uncanny init` writes.",
            )
            self.params.append(option)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                sections.setdefault(getattr(parameter, "section", ""), []).append(record)
        for name, records in sections.items():
            with formatter.section(name or "Options"):
                formatter.write_dl(records)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing:
            return super().parse_args(ctx, args)
        note_command(self)
        if ctx.obj is not None:
            return super().parse_args(ctx, [*args, *self._take_values(ctx, ctx.obj)])
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
                raise UsageError(f"{max(parameter.opts, key=len)} is given {times} times", remedy=advice)
        file = values.get("config")
        if isinstance(file, str) and values.get("help") is not True:
            args = [*args, *self._take_settings(ctx, Path(file), values, args)]
        try:
            return super().parse_args(ctx, args)
        except click.MissingParameter as error:
            there = next((name for name in _USUAL_FILES if Path(name).is_file()), None)
            if (
                there is None
                or isinstance(file, str)
                or not any(each.name == "config" for each in self.params)
            ):
                raise
            hint = f"{there} is here; it is read with --config {there}."
            raise click.UsageError(f"{error.format_message()} {hint}", ctx) from error

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        ctx = super().make_context(info_name, args, parent, **extra)
        if self.job is not None and not ctx.resilient_parsing:
            server, detach = ctx.params.pop("server"), ctx.params.pop("detach")
            if server is not None and not ctx.params.get("dry_run"):
                from uncanny.cli.server.run import run_on_server

                ctx.command = copy(self)
                ctx.command.callback = partial(run_on_server, self.job, ctx, server, detach=detach)
            if detach and server is None:
                raise UsageError("--detach works only with --server", remedy="Pass --server URL, too.")
        return ctx

    def _take_values(self, ctx: click.Context, values: Mapping[str, Any]) -> list[str]:
        """Make values of parameters defaults of this call; returns its arguments."""
        words = {
            name: [f"{key}={each}" for key, each in value.items()] if isinstance(value, Mapping) else value
            for name, value in values.items()
        }
        names = {param.name for param in self.params}
        if "models" in names and "model" in words:
            words["models"] = [words.pop("model")]
        if unknown := words.keys() - names:
            raise UsageError(f"`{ctx.command_path}` has no {', '.join(sorted(unknown))}")
        for param in self.params:
            value = words.get(param.name or "")
            if isinstance(param, click.Option) and not param.multiple and isinstance(value, list):
                words[param.name or ""] = ",".join(map(str, value))
        ctx.default_map = words
        arguments: list[str] = []
        for param in self.params:
            if isinstance(param, click.Argument) and param.name in words:
                value = words.pop(param.name)
                arguments += map(str, value if isinstance(value, list) else [value])
        return ["--", *arguments]

    def _take_settings(
        self, ctx: click.Context, file: Path, values: Mapping[str, Any], args: Sequence[str]
    ) -> list[str]:
        """Make options of a file defaults of this call; returns its arguments that are not given."""
        from uncanny.cli.common.config import is_set, settings_of

        settings = {
            name: setting
            for name, setting in settings_of(ctx, file).items()
            if not (isinstance(setting.param, click.Option) and is_set(setting.param))
        }
        ctx.default_map = {
            name: setting.value
            for name, setting in settings.items()
            if isinstance(setting.param, click.Option)
        }
        origins = [_origin(setting) for name, setting in settings.items() if not _is_given(values.get(name))]
        note_command(self, origins)
        arguments: list[str] = []
        for parameter in self.params:
            if isinstance(parameter, click.Argument) and not _is_given(values.get(parameter.name or "")):
                if parameter.name not in settings:
                    break  # what comes behind it would be taken for it
                value = settings[parameter.name].value
                arguments += map(str, value if isinstance(value, list) else [value])
        return ["--", *arguments] if arguments and "--" not in args else arguments


def _with_extra(extra: Extra, callback: Callable[..., None]) -> Callable[..., None]:
    """A command that raises UsageError where a package of its extra is not installed."""

    @wraps(callback)
    def command(*arguments: Any, **options: Any) -> None:
        try:
            callback(*arguments, **options)
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            if package == "uncanny":
                raise
            raise UsageError(
                f"`{click.get_current_context().command_path}` needs {package}, which is not installed",
                remedy=install_hint(extra),
            ) from error

    return command


class Group(click.Group):
    """Commands of that kind; knows what a mistyped one was meant to be."""

    command_class = Command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.possibilities:
                raise
            message = f"{error.format_message()} Those of a command stand behind it."
            raise click.UsageError(message, ctx) from error

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            known = self.list_commands(ctx)
            close = get_close_matches(name, known, n=2, cutoff=0.5)
            advice = (
                f"Did you mean {' or '.join(close)}?" if close else f"The commands are {', '.join(known)}."
            )
            raise click.UsageError(f"No such command {shown(name)}. {advice}", ctx)
        return super().resolve_command(ctx, args)


def _is_given(value: object) -> bool:
    # What is not given is a mark of click's own, of several values none.
    return isinstance(value, str | bool) or (isinstance(value, list | tuple) and bool(value))


def _origin(setting: Setting) -> Origin:
    from uncanny.cli.common.config import key_of

    parameter = setting.param
    flags: tuple[str, ...] = (_shown(parameter),)
    if isinstance(parameter, click.Option):
        flags = (f"--{key_of(parameter)}", *parameter.opts, *parameter.secondary_opts)
    texts = setting.value if isinstance(setting.value, list) else [setting.value]
    quoted = tuple(form for each in texts if isinstance(each, str) for form in (repr(each), shown(each)))
    return Origin(flags, quoted, setting.where)


def _is_empty(value: object) -> bool:
    # What is not given is None, or a mark of click's own.
    return value == "" or (isinstance(value, list | tuple) and "" in value)


def _shown(parameter: click.Parameter) -> str:
    return parameter.opts[0] if isinstance(parameter, click.Option) else (parameter.name or "").upper()


def _takes_one_value(option: click.Option) -> bool:
    return not (option.multiple or option.is_flag or option.count)
