"""`uncanny init`: a commented file of options for `--config`, with the defaults or with a run's settings.

What can be in it, its help and its defaults are read from the commands themselves.
"""

from __future__ import annotations

import os
import re
import textwrap
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import orjson

from uncanny import __version__
from uncanny.cli.common.command import Command
from uncanny.cli.common.config import commands, expected, key_of, parameters, takes_file
from uncanny.cli.common.files import STANDARD_OUTPUT, Output, check_outputs
from uncanny.cli.common.options import PATH, Real, Several, Whole, force_option, type_of
from uncanny.cli.common.places import Place
from uncanny.cli.common.terminal import say
from uncanny.demo.sets import BUNDLED, SCENES
from uncanny.errors import UsageError
from uncanny.protocol import protocols
from uncanny.wording import harmless, shown

if TYPE_CHECKING:
    from uncanny.records.run_manifest import RunManifest

Words = tuple[str, ...]
_ANY_CALL: Final = "uncanny COMMAND … --config FILE"
_WIDTH: Final = 100
_DEFAULT: Final = re.compile(r"\s*\[default: (.+)\]$")
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_INSIDE: Final = ("items/items.jsonl", "pairs/pairs.jsonl")
"""Copies of the bundled sets that runs keep in their folders."""


def _complete_words(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Commands, or those of the one that is there already."""
    from uncanny.cli import uncanny

    group: click.Command | None = uncanny
    for word in ctx.params.get("words") or ():
        group = group.get_command(ctx, word) if isinstance(group, click.Group) else None
    names = group.list_commands(ctx) if isinstance(group, click.Group) else []
    return [name for name in names if name.startswith(incomplete)]


@click.command("init", cls=Command, config=False)
@click.argument("words", nargs=-1, metavar="[COMMAND]", shell_complete=_complete_words)
@click.option(
    "--from",
    "source",
    type=PATH,
    metavar="RUN",
    help="Write the settings of this run, a folder or its run.json, to make it again.",
)
@click.option(
    "-o",
    "--out",
    type=PATH,
    metavar="FILE",
    default=Path("run.toml"),
    show_default=True,
    help="The file to write; - for standard output.",
)
@force_option
def command(words: tuple[str, ...], source: Path | None, out: Path, force: bool) -> None:
    """Write a TOML file with all options of COMMAND. Edit it, and pass it with --config.

    Each option has its help and its default, commented out. Without COMMAND, the file has all commands, and
    first the options they share. With --from, it has the settings of a run, so that anybody can repeat it;
    prompts that are not uncanny's own are written to a folder beside it.

    \b
      uncanny init annotate
      uncanny annotate photos/ --config run.toml
      uncanny init --from runs/published -o again.toml
    """
    if source is not None and words:
        raise UsageError(f"{source} already names its command", remedy=f"Remove {' '.join(words)}.")
    chosen = [] if source is not None else _chosen(words)
    if out != STANDARD_OUTPUT:
        # Options that somebody has changed are theirs: not even an earlier file of this command is replaced.
        place = Output(out, "an empty file", lambda _: False)
        check_outputs([place], [] if source is None else [source], force=force)
    if source is not None:
        text = _of_run(source, out, force=force)
    else:
        text = config_text(chosen, call=_call(*chosen[0], out) if len(chosen) == 1 else _ANY_CALL)
    if out == STANDARD_OUTPUT:
        say(text.removesuffix("\n"))
        return
    from uncanny.records.jsonl import write_named

    write_named(out, [text.encode()])
    say(harmless(str(out)))


@dataclass(frozen=True, slots=True)
class RunValues:
    """What a run was made with: values by the name of the parameter, and what no option says, in words."""

    values: dict[str, object] = field(default_factory=dict)
    unsaid: list[str] = field(default_factory=list)


def _chosen(words: Words) -> list[tuple[Words, click.Command]]:
    """The commands of `words`: one, those of a group, or all. Raises UsageError."""
    from uncanny.cli import uncanny

    group: click.Command = uncanny
    ctx = click.Context(uncanny, info_name="uncanny")
    for number, word in enumerate(words):
        if not isinstance(group, click.Group):
            raise UsageError(
                f"`{' '.join(words[:number])}` has no command {shown(word)}", remedy="Remove it."
            )
        if not number and _is_run(word) and group.get_command(ctx, word) is None:
            raise UsageError(f"{word} is a run, not a command", remedy=f"Write uncanny init --from {word}.")
        _, inner, _ = group.resolve_command(ctx, [word])
        assert inner is not None
        group = inner
    if isinstance(group, click.Group):
        return list(commands(group, words))
    if not takes_file(group):
        raise UsageError(
            f"`uncanny {' '.join(words)}` does not take options from a file", remedy="Pass another command."
        )
    return [(words, group)]


def _is_run(word: str) -> bool:
    try:
        return (Path(word) / "run.json").is_file()
    except OSError:  # no file can have such a name
        return False


def _call(words: Words, command: click.Command, file: Path, known: Sequence[str] = ()) -> str:
    """How the file is used, with the arguments that are not in it."""
    arguments = [
        param.make_metavar(click.Context(command))
        for param in command.params
        if isinstance(param, click.Argument) and param.name not in known
    ]
    return " ".join(
        ["uncanny", *words, *arguments, "--config", "run.toml" if file == STANDARD_OUTPUT else str(file)]
    )


def config_text(
    chosen: Sequence[tuple[Words, click.Command]],
    values: RunValues | None = None,
    *,
    call: str = _ANY_CALL,
) -> str:
    """The file of some commands: first what they share, then a table each.

    Where there is one, `values` of a run stand in its table, all else is commented out.
    """
    head = [
        f"Options for `{call}`, written by uncanny {__version__}.",
        "The command line goes before the environment, the environment before this file. "
        "Paths start from the folder it is in.",
        "Keys of providers stand in the environment only.",
        *(values.unsaid if values is not None else []),
    ]
    blocks = ["\n".join(line for text in head for line in _comment(text))]
    shared = _shared(chosen)
    if shared:
        blocks += [_block(param, None) for param in shared.values()]
    for words, each in chosen:
        own = [param for key, param in parameters(each).items() if key not in shared]
        if own:
            blocks.append(f"[{'.'.join(words)}]")
            blocks += [_block(param, values) for param in own]
    return "\n\n".join(blocks) + "\n"


def _shared(chosen: Sequence[tuple[Words, click.Command]]) -> dict[str, click.Parameter]:
    """Options that several of the commands have, and which are the same thing in all that have them."""
    first: dict[str, click.Parameter] = {}
    kinds: defaultdict[str, set[str]] = defaultdict(set)
    times: Counter[str] = Counter()
    for _, command in chosen:
        for key, param in parameters(command).items():
            if isinstance(param, click.Option):
                first.setdefault(key, param)
                kinds[key].add(_block(param, None))
            else:
                kinds[key] |= {"", key}  # means something else in each
            times[key] += 1
    return {key: param for key, param in first.items() if times[key] > 1 and len(kinds[key]) == 1}


def _block(param: click.Parameter, values: RunValues | None) -> str:
    """Help and value of one option: the run's, or its default, commented out."""
    ctx = click.Context(click.Command(None))
    help_text = getattr(param, "help", None) or f"{param.make_metavar(ctx)}, an argument."
    named = _DEFAULT.search(help_text)
    notes = [_DEFAULT.sub("", help_text)]
    value = _default(param, named[1] if named else None)
    if named is not None and value is None:
        notes.append(f"Default: {named[1]}.")
    kind = type_of(param)
    if isinstance(kind, click.Choice) and (names := ", ".join(kind.choices)) not in help_text:
        notes.append(f"One of {names}.")
    if param.required:
        notes.append("Required.")
    key, comment = key_of(param), "\n".join(_comment(" ".join(notes)))
    if values is not None and param.name in values.values:
        return f"{comment}\n{key} = {toml(values.values[param.name])}"
    return f"{comment}\n# {key} = {_kind_of(param) if value is None else value}"


def _default(param: click.Parameter, in_help: str | None) -> str | None:
    """The default as TOML has it, also one that only the help names; None where there is none to write."""
    default = param.default
    if isinstance(default, Path):
        return toml(str(default))
    if isinstance(default, bool | int | float | str):
        return toml(default)
    if isinstance(param, click.Option) and param.is_flag:
        return toml(f"--{in_help}" in param.opts)
    if in_help is None or param.multiple != isinstance(param.type, Several):
        return None
    if isinstance(param.type, Several):
        values = [_read(param, each) for each in in_help.split(",")]
        return None if None in values else f"[{', '.join(map(str, values))}]"
    return _read(param, in_help.replace(",", ""))


def _read(param: click.Parameter, text: str) -> str | None:
    """A value as TOML has it; None for what is none of the option's."""
    fits = expected(param)[1]
    if isinstance(type_of(param), click.Choice):
        return toml(text) if fits(text) else None
    for read in (int, float):
        try:
            value = read(text)
        except ValueError:
            continue
        if fits(value):
            return toml(value)
    return None


def _kind_of(param: click.Parameter) -> str:
    """What stands in the place of a value that has no default."""
    kind = type_of(param)
    if isinstance(kind, click.Choice):
        word = toml(kind.choices[0])
    elif isinstance(kind, Whole | Real):
        word = f"<{expected(param)[0].removeprefix('a ')}>"
    else:
        unnamed = "PATH" if isinstance(param.type, click.Path | Place) else "TEXT"
        word = toml((param.metavar or unnamed).removesuffix("…"))
    return f"[{word}]" if param.nargs == -1 or param.multiple else word


def _comment(text: str) -> list[str]:
    lines = textwrap.wrap(" ".join(text.split()), _WIDTH - 2, break_long_words=False, break_on_hyphens=False)
    return [f"# {harmless(line)}" for line in lines]


def toml(value: object) -> str:
    """A value as TOML has it: a text, number, truth value, a list of them, or a mapping to them."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, Mapping):
        pairs = (f"{each if _BARE.fullmatch(each) else toml(each)} = {toml(value[each])}" for each in value)
        return f"{{ {', '.join(pairs)} }}"
    # A text of JSON is one of TOML, but for this character.
    return orjson.dumps(str(value)).decode().replace("\x7f", "\\u007f")


# A run.


def _of_run(source: Path, out: Path, *, force: bool) -> str:
    """The file of a run, and beside it the texts it was asked with where they are not ours of now."""
    folder, manifest = _manifest(source)
    maker = protocols().get(manifest.task or "")
    words = None if maker is None or not maker.asks else maker.command
    if words is None:
        raise UsageError(f"{source} is a run of {manifest.task or 'no task'}, which no uncanny command makes")
    ((_, command),) = _chosen(words)
    here = Path() if out == STANDARD_OUTPUT else out.parent
    run = RunValues({"model": manifest.model, "models": [manifest.model]})
    by_name = {param.name: param for param in command.params}
    for name, value in _settings(manifest):
        param = by_name.get(name)
        if param is not None and value is not None:
            run.values[name] = value
        elif param is not None and isinstance(param.default, int | float | str):
            run.unsaid.append(f"The run has no {key_of(param)}, which no option says.")
    if manifest.root is not None:
        run.values["root"] = _from(here, Path(manifest.root))
    for name in ("items", "pairs", "texts"):
        recorded: str | None = getattr(manifest, name)
        if recorded is not None:
            _note_inputs(run, name, recorded, folder, here)
    texts = _texts_beside(manifest, out, run, force=force)
    if texts is not None:
        run.values["prompts"] = _from(here, texts)
    return config_text([(words, command)], run, call=_call(words, command, out, list(run.values)))


def _from(here: Path, path: Path) -> str:
    """`path` as it is called in a file in the folder `here`."""
    return os.path.relpath(path, here)


def _manifest(source: Path) -> tuple[Path, RunManifest]:
    from uncanny.records.run_folder import RunFolder

    if not source.is_dir() and source.name != "run.json":
        what = "is not a run" if source.exists() else "does not exist"
        raise UsageError(f"{source} {what}", remedy="Pass the folder of a run, or its run.json.")
    folder = source if source.is_dir() else source.parent
    manifest = RunFolder(folder).read_manifest()
    if manifest is None:
        inner = sorted(each.parent for each in folder.glob("*/run.json"))
        remedy = f"It contains runs: pass one, such as {inner[0]}." if inner else "Pass the folder of a run."
        raise UsageError(f"{folder} has no run.json", remedy=remedy)
    return folder, manifest


def _settings(manifest: RunManifest) -> Iterator[tuple[str, object]]:
    """What must be the same for a run to be that one, but for models, inputs and texts."""
    yield "roles", dict(manifest.roles) or None
    yield "fallback", manifest.fallback
    yield from manifest.plan.items()
    for name, value in manifest.pixels.policy.items():
        yield ("image_format" if name == "format" else name), value


def _note_inputs(run: RunValues, name: str, recorded: str, folder: Path, here: Path) -> None:
    """Where the items, pairs or texts came from, from the folder of the file."""
    if recorded in (*BUNDLED, *_INSIDE):
        run.values[name] = recorded if recorded in BUNDLED else SCENES
    elif recorded == "program":
        run.unsaid.append(f"The {name} of the run came from a program.")
    elif (folder / recorded).exists() or name != "pairs" or " " not in recorded:
        run.values[name] = _from(here, folder / recorded)
    else:
        # Two folders: one of them may have a space in its name.
        words = recorded.split(" ")
        ways = [(" ".join(words[:end]), " ".join(words[end:])) for end in range(1, len(words))]
        known = [way for way in ways if all((folder / each).is_dir() for each in way)]
        for key, path in zip(("original", "edited"), (known or ways)[0], strict=True):
            run.values[key] = _from(here, folder / path)


def _texts_beside(manifest: RunManifest, out: Path, run: RunValues, *, force: bool) -> Path | None:
    """The folder that the texts of a run are written to; None where this version asks with the same ones."""
    from uncanny.prompts import prompt_set
    from uncanny.runs.manifest import begun_with, lost_texts

    if manifest.prompts.id is None:
        return None
    try:
        ours = prompt_set(manifest.prompts.id.partition("@")[0])
    except LookupError:
        return None
    texts = begun_with(manifest, ours)
    if texts.id == ours.id:
        if manifest.prompts.id != ours.id:
            run.unsaid.append(f"The run cannot be made again just so: {lost_texts(manifest, ours)}.")
        return None
    if out == STANDARD_OUTPUT:
        run.unsaid.append(
            f"The run asked with texts of its own, {texts.id}: name a file with -o to have them."
        )
        return None
    folder = out.with_name(f"{out.stem}-texts")
    from uncanny.records.jsonl import write_named

    files = {folder / f"{name}.md": text for name, text in texts.texts().items()}
    check_outputs(
        [Output(file, "a text of this run", _says(text)) for file, text in files.items()],
        (),
        force=force,
    )
    for file, text in files.items():
        write_named(file, [f"{text}\n".encode()])
    return folder


def _says(text: str) -> Callable[[Path], bool]:
    return lambda file: file.read_text(encoding="utf-8").strip() == text
