"""What commands are given as paths: words in their place, NAME=PATH, and what a shell completes them with."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from uncanny.demo.sets import BUNDLED
from uncanny.errors import UsageError
from uncanny.files import check_file

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# What begins a style of a bundled set, and what is on a service.
_NO_PATHS = ("scenes:", "server:")


class PathOnDisk(click.Path):
    """A path that names no device, and no pipe but those that a shell has opened for this process."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        check_file(Path(value))
        return super().convert(value, param, ctx)


class Place(click.ParamType[str]):
    """A path, or one of `words`, as it is written; with `named` also NAME=PATH; with `free` also a name."""

    name = "text"

    def __init__(self, *words: str, named: bool = False, free: bool = False) -> None:
        self.words, self.named, self.free = words, named, free

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002
        text = str(value)
        if text not in self.words:
            parts = text.split("=") if self.named else []
            for path in (text, *("=".join(parts[n:]) for n in range(1, len(parts)))):
                check_file(Path(path))
        return text

    def beside(self, value: str, folder: Path) -> str:
        """The same where paths start from `folder`."""
        if value in self.words or (self.free and not (folder / value).exists() and not value.startswith(".")):
            return value
        name, equals, path = value.partition("=") if self.named else ("", "", value)
        if equals and not (folder / value).exists():
            return f"{name}={beside(path, folder)}"
        return beside(value, folder)

    def shell_complete(
        self, _ctx: click.Context, _param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        words = [CompletionItem(word) for word in self.words if incomplete and word.startswith(incomplete)]
        name, equals, path = incomplete.partition("=") if self.named else ("", "", incomplete)
        if equals:
            return [CompletionItem(f"{name}={each}") for each in paths_from(path)]
        return words or [CompletionItem(incomplete, type="file")]


def beside(path: str, folder: Path) -> str:
    """`path` where relative ones start from `folder`; words that are no paths stay as they are."""
    if path == "-" or path.startswith(_NO_PATHS) or (path in BUNDLED and not (folder / path).exists()):
        return path
    return str(folder / path)


def name_and_path(argument: str) -> tuple[str | None, Path]:
    """From NAME=PATH, or a path alone, also one with an equals sign; a name may have one, too.

    What is there decides: the whole as a path, else what follows an equals sign, the first that fits. Raises
    UsageError.
    """
    if "=" not in argument or Path(argument).exists():
        return None, Path(argument)
    parts = argument.split("=")
    readings = [("=".join(parts[:end]).strip(), "=".join(parts[end:])) for end in range(1, len(parts))]
    readings = [(name, path) for name, path in readings if name and path]
    if not readings:
        raise UsageError(f"{argument!r} lacks a name or a path", remedy="Write NAME=PATH.")
    for name, path in readings:
        if Path(path).exists():
            return name, Path(path)
    name, path = readings[0]
    is_place = path in BUNDLED or path.startswith(_NO_PATHS)
    if "/" in name and len(parts) == 2 and not is_place and Path(name.rpartition("/")[0]).is_dir():
        # More likely a folder such as runs/t=0.3 that is not there than a name.
        raise UsageError(
            f"{argument} does not exist, and neither does {path} under the name {name!r}",
            remedy="Write PATH or NAME=PATH.",
        )
    return name, Path(path)


def names_and_paths(arguments: Sequence[str]) -> list[tuple[str | None, Path]]:
    """`name_and_path` of each. Raises UsageError, also where NAME PATH was written."""
    read = [name_and_path(argument) for argument in arguments]
    for (name, path), (no_name, after) in pairwise(read):
        bare = path.name == str(path) and not path.suffix and str(path) not in BUNDLED
        if name is None and no_name is None and bare and not path.exists() and after.exists():
            raise UsageError(f"{path} does not exist", remedy=f"To name {after} so, write {path}={after}.")
    return read


def named_files(arguments: Sequence[str], *, what: str) -> dict[str, Path] | list[Path]:
    """Files as they are where none has a name, else all by name: one that has none by what it derives from.

    Raises UsageError for two of one name; `what` they are says the error.
    """
    read = names_and_paths(arguments)
    if all(name is None for name, _ in read):
        return [path for _, path in read]
    from uncanny.eval.common.anomalies.load import name_paths

    return name_paths(read, what=what)


def paths_from(incomplete: str) -> list[str]:
    """Files and folders that begin so, as a shell would complete them."""
    folder, _, _ = incomplete.rpartition("/")
    try:
        entries = sorted(Path(folder or ("/" if incomplete.startswith("/") else ".")).iterdir())
    except OSError:
        return []
    prefix = f"{folder}/" if "/" in incomplete else ""
    named = [f"{prefix}{each.name}{'/' * each.is_dir()}" for each in entries]
    return [each for each in named if each.startswith(incomplete)]


def complete_model(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Providers, as they begin the name of a model; also behind ROLE=."""
    from click.shell_completion import CompletionItem

    from uncanny.models.custom import installed_providers
    from uncanny.models.presets import ALL

    role, equals, model = incomplete.rpartition("=")
    installed = (each.provider for each in installed_providers())
    names = [*(f"{name}/" for name in dict.fromkeys((*ALL, *installed))), "demo"]
    return [CompletionItem(f"{role}{equals}{name}") for name in names if name.startswith(model)]


def complete_folder(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="dir")]
