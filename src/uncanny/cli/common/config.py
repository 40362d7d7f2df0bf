"""`--config FILE`: options and arguments of commands from a TOML file, as `uncanny init` writes one.

Keys are the long names of options, and the names of arguments in small letters. Keys at the top are for all
commands that have them, those under `[mcq]` for all commands of `mcq`, those under `[mcq.run]` for that one;
the nearest holds. The command line goes before the environment, the environment before the file. Paths start
from the file's folder. A file is taken as it is meant or refused: a name that no command has, a value of
another type, and a key of a provider are errors. No file is read unless it is named.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

import click

from uncanny.cli.common.options import Real, Whole, type_of
from uncanny.cli.common.places import Place, beside
from uncanny.errors import UsageError
from uncanny.files import open_file
from uncanny.wording import shown

_SECRET: Final = re.compile(r"(^|[-_.])(key|token|secret|password|passwd|credential)s?$", re.IGNORECASE)
# As services make them: a prefix, and in what follows a long run of digits and letters as chance has them,
# which `sk-` of a word in front of others, `hf-dataset-generated-v1`, does not have.
_PREFIXED: Final = re.compile(
    r"(?:AIza(?=[\w-]{30})|(?:c?sk|pk|gsk|xai|hf|nvapi)[-_](?=[\w-]{16}))([\w-]*)$", re.ASCII
)
_RUN: Final = re.compile(r"[A-Za-z0-9]{12,}")
_BY_CHANCE: Final = re.compile(r"\d|[a-z][A-Z]", re.ASCII)
_MOST_BYTES: Final = 1_000_000
# Of the environment, where what stands for these options is more than a default.
_INSTEAD: Final[Mapping[str, str]] = {
    "database": "UNCANNY_DATABASE",
    "server": "UNCANNY_SERVER_TOKEN",
}


# What click takes in the place of a word, and what stands for one in TOML.
Value: TypeAlias = str | bool | int | float


@dataclass(frozen=True, slots=True)
class Setting:
    """The value of one option or argument, as click takes it, and where it stands."""

    param: click.Parameter
    value: Value | list[Value]
    where: str


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """A file that has been read; `content` is what TOML makes of it."""

    path: Path
    lines: tuple[str, ...]
    content: Mapping[str, Any]

    def where(self, tables: Sequence[str], key: str) -> str:
        """`run.toml, line 3`; without the line where it is written in another way than most."""
        wanted: tuple[str, ...] = (*tables, key)
        current: tuple[str, ...] = ()
        for number, line in enumerate(self.lines, 1):
            text = line.strip()
            if text.startswith("["):
                current = names = _dotted(text[1:].partition("]")[0])
            else:
                name, equals, _ = text.partition("=")
                names = (*current, *_dotted(name)) if equals else ()
            if names[: len(wanted)] == wanted:
                return f"{self.path}, line {number}"
        return str(self.path)


def _dotted(text: str) -> tuple[str, ...]:
    """`("mcq", "run")` of `mcq.run`."""
    return tuple(part.strip(" \t\"'") for part in text.split("."))


def settings_of(ctx: click.Context, path: Path) -> dict[str, Setting]:
    """What the file says for the command of `ctx`, by the name of its parameter.

    Raises UsageError for a file that cannot be read, and for what is wrong anywhere in it but for values of
    other commands.
    """
    file = _read(path)
    words = _words(ctx)
    settings: dict[str, Setting] = {}
    for tables, table in _tables(file, words):
        for key, value in table.items():
            param = parameters(ctx.command).get(key)
            if param is not None:
                where = file.where(tables, key)
                content = _value(param, value, file.path.parent, where)
                settings[param.name or ""] = Setting(param, content, where)
    return settings


def parameters(command: click.Command) -> dict[str, click.Parameter]:
    """What a file can have of a command's options and arguments, by their keys, in the order of `--help`."""
    return {
        key_of(param): param
        for param in command.params
        if not (isinstance(param, click.Option) and (param.is_eager or not param.expose_value))
    }


def key_of(param: click.Parameter) -> str:
    """`max-cost-usd` for `--max-cost-usd`, `images` for IMAGES."""
    if isinstance(param, click.Argument):
        return (param.name or "").replace("_", "-")
    return max(param.opts, key=len).lstrip("-")


def takes_file(command: click.Command) -> bool:
    return any(param.name == "config" for param in command.params)


def commands(
    group: click.Group, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """The commands under `group` that have `--config`, each with the words that call it."""
    ctx = click.Context(group, info_name=words[-1] if words else "uncanny", **group.context_settings)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*words, name))
        elif command is not None and takes_file(command):
            yield (*words, name), command


def _words(ctx: click.Context) -> tuple[str, ...]:
    """`("mcq", "run")`."""
    words: list[str] = []
    while ctx.parent is not None:
        words.insert(0, ctx.info_name or "")
        ctx = ctx.parent
    return tuple(words)


def _read(path: Path) -> ConfigFile:
    try:
        with open_file(path, anywhere=True) as file:
            content = file.read(_MOST_BYTES + 1)  # of a device all would be the memory
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror or error}", remedy="`uncanny init` writes such a file."
        ) from error
    if len(content) > _MOST_BYTES:
        raise UsageError(f"{path} is too large for a config file", remedy="Pass another file with --config.")
    try:
        text = content.decode("utf-8-sig")  # some editors begin a file with a mark
        return ConfigFile(path, tuple(text.splitlines()), tomllib.loads(text))
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text", remedy="Save it as UTF-8.") from error
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(
            f"{path} is not valid TOML: {error}", remedy='Put text in quotes: model = "openai/gpt-4o".'
        ) from error


def _tables(file: ConfigFile, words: tuple[str, ...]) -> list[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """The tables that a command takes its options from, the nearest last, after a look at all of them."""
    from uncanny.cli import uncanny

    _check(file, (), file.content, uncanny)
    tables: list[tuple[tuple[str, ...], Mapping[str, Any]]] = []
    table: Mapping[str, Any] = file.content
    command: click.Command = uncanny
    for number in range(len(words) + 1):
        own = {key: value for key, value in table.items() if _table_of(command, key, value) is None}
        tables.append((words[:number], own))
        word = words[number] if number < len(words) else ""
        inner = _table_of(command, word, table.get(word))
        if inner is None:
            break
        table, command = table[word], inner
    return tables


def _table_of(group: click.Command, key: str, value: object) -> click.Command | None:
    """The command that a table is for; None for an option of that name, whose value may be a table too."""
    if not isinstance(group, click.Group) or not isinstance(value, dict):
        return None
    return group.get_command(click.Context(group, info_name="uncanny"), key)


def _check(
    file: ConfigFile, tables: tuple[str, ...], table: Mapping[str, Any], command: click.Command
) -> None:
    """Raises UsageError for a name in `table` that belongs to no command it is for, and for secrets."""
    for key, value in table.items():
        inner = _table_of(command, key, value)
        if inner is not None:
            takes = any(commands(inner)) if isinstance(inner, click.Group) else takes_file(inner)
            if not takes:
                name = " ".join(("uncanny", *tables, key))
                raise UsageError(
                    f"{file.where(tables, key)}: `{name}` does not take options from a file",
                    remedy="Remove this table.",
                )
            _check(file, (*tables, key), value, inner)
            continue
        several = [each for _, each in commands(command)] if isinstance(command, click.Group) else [command]
        params = [param for each in several if (param := parameters(each).get(key)) is not None]
        if not params:
            raise _unknown(file, tables, key, value, command)
        _refuse_secrets(file, tables, key, value, path=all(map(_is_path, params)))


def _unknown(
    file: ConfigFile, tables: tuple[str, ...], key: str, value: object, command: click.Command
) -> UsageError:
    where = file.where(tables, key)
    if _SECRET.search(key):
        return _secret(where, f"{shown(key)} is one", _key_variable(file, key))
    whose = f"`uncanny {' '.join(tables)}`" if tables else "No command"
    group = isinstance(command, click.Group)
    several = dict(commands(command, tables)) if isinstance(command, click.Group) else {tables: command}
    by_key = {name: param for each in several.values() for name, param in parameters(each).items()}
    what = f"{where}: {whose} has {'an' if not tables else 'no'} option {shown(key)}"
    if isinstance(value, dict) and group:
        what = f"{where}: [{'.'.join((*tables, key))}] is not a command"
        names = command.list_commands(click.Context(command)) if isinstance(command, click.Group) else []
        near = difflib.get_close_matches(key, [*names, *by_key], n=1)
        return UsageError(what, remedy=f"Did you mean {near[0]}?" if near else "Remove it.")
    for name, param in by_key.items():
        if key in (param.name, name.replace("-", "_")):
            return UsageError(what, remedy=f"Write {name}.")
        if isinstance(param, click.Option) and f"--{key.replace('_', '-')}" in param.secondary_opts:
            return UsageError(what, remedy=f"Write {name} = {'false' if value is True else 'true'}.")
    near = difflib.get_close_matches(key, by_key, n=2)
    if near:
        return UsageError(what, remedy=f"Did you mean {' or '.join(near)}?")
    hint = " ".join(("uncanny init", *tables))
    return UsageError(what, remedy=f"`{hint} -o -` shows those there are.")


def _is_path(param: click.Parameter) -> bool:
    return isinstance(param.type, click.Path | Place)


def _is_like_a_key(text: str) -> bool:
    prefixed = _PREFIXED.match(text)
    return prefixed is not None and any(map(_BY_CHANCE.search, _RUN.findall(prefixed[1])))


def _refuse_secrets(
    file: ConfigFile, tables: tuple[str, ...], key: str, value: object, *, path: bool
) -> None:
    """Raises UsageError for what looks like a key, which a name of files never does, or a password."""
    from uncanny.models.addresses import parse_address

    for text in _texts(value):
        if not path and _is_like_a_key(text):
            raise _secret(
                file.where(tables, key), f"the value of {key} looks like one", _key_variable(file, key)
            )
        name, _, url = text.partition("=") if "://" not in text.partition("=")[0] else ("", "", text)
        if "://" not in url:
            continue
        try:
            password = urlsplit(url).password is not None
            password = password or (key == "base-url" and bool(parse_address(url).secrets))
        except (ValueError, UsageError):
            continue  # said of the option itself, later
        if password:
            variable = _INSTEAD.get(key) or address_variable(name or _provider(file))
            raise _secret(file.where(tables, key), f"the address of {key} holds one", variable)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            for text in _texts(each):
                yield text if "://" not in text else f"{name}={text}"


def _secret(where: str, what: str, variable: str) -> UsageError:
    return UsageError(
        f"{where}: a config file must not contain keys or passwords, and {what}",
        remedy=f"Remove it, and set the environment variable {variable}.",
    )


def _key_variable(file: ConfigFile, key: str) -> str:
    from uncanny.models.presets import ALL

    name = key.upper().replace("-", "_").replace(".", "_")
    variables = {variable for preset in ALL.values() for variable in preset.key_variables}
    if name in variables:
        return name
    if "TOKEN" in name:
        return "UNCANNY_SERVER_TOKEN"
    named = next((each for each in ALL if _upper(each) in name), _provider(file))
    return ALL[named].key_variables[0] if named in ALL else f"{_upper(named)}_API_KEY"


def _provider(file: ConfigFile) -> str:
    """That of the first model in the file."""
    tables: list[Mapping[str, Any]] = [file.content]
    while tables:
        table = tables.pop(0)
        for text in _texts(table.get("model")):
            return text.partition("/")[0]
        tables += [each for each in table.values() if isinstance(each, dict)]
    return "openai"


def address_variable(provider: str) -> str:
    """The variable that says where a provider's server is; of others than uncanny's, what it might be."""
    from uncanny.models.presets import ALL

    return ALL[provider].url_variable if provider in ALL else f"{_upper(provider)}_BASE_URL"


def _upper(provider: str) -> str:
    return provider.upper().replace("-", "_")


def is_set(param: click.Parameter) -> bool:
    """Whether the environment has a value for an option, which goes before the file's."""
    name = param.name or ""
    if not os.environ.get(f"UNCANNY_{name.upper()}", "").strip():
        return False
    from uncanny.settings import Settings

    return name in Settings.model_fields


# Values.


def _value(param: click.Parameter, value: object, folder: Path, where: str) -> Value | list[Value]:
    """As click takes it from a command line. Raises UsageError for one of another type."""
    several = param.nargs == -1 or param.multiple
    if not several:
        return _single(param, value, folder, where)
    if isinstance(value, dict) and _names_values(param):
        texts = {name: _single(param, each, folder, where) for name, each in value.items()}
        return [f"{name}={text}" for name, text in texts.items()]
    return [_single(param, each, folder, where) for each in (value if isinstance(value, list) else [value])]


def _names_values(param: click.Parameter) -> bool:
    """Whether it is given as NAME=VALUE, which a table can say as well."""
    return "=" in (param.metavar or "")


def _single(param: click.Parameter, value: object, folder: Path, where: str) -> Value:
    words, fits = expected(param)
    if not fits(value):
        raise UsageError(f"{where}: {key_of(param)} must be {words}, not {shown(value)}")
    assert isinstance(value, Value)
    if isinstance(param.type, Place):
        return param.type.beside(str(value), folder)
    return beside(str(value), folder) if isinstance(param.type, click.Path) else value


def expected(param: click.Parameter) -> tuple[str, Callable[[object], bool]]:
    """What the value of an option is in words, and a test for it."""
    if isinstance(param, click.Option) and param.is_flag:
        return "true or false", lambda value: isinstance(value, bool)
    kind = type_of(param)
    if isinstance(kind, Whole):
        return "a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool)
    if isinstance(kind, Real):
        return "a number", lambda value: isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(kind, click.Choice):
        choices = ", ".join(f'"{each}"' for each in kind.choices)
        return f"one of {choices}", lambda value: value in kind.choices
    if _is_path(param):
        return "a path in quotes", lambda value: isinstance(value, str) and "\0" not in value
    return "a text in quotes", lambda value: isinstance(value, str) and "\0" not in value
