"""What prediction files are called in a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from uncanny.errors import UsageError
from uncanny.records.run_folder import RunFolder

RECORDS = "annotations.jsonl"


def named_predictions(arguments: Sequence[str]) -> dict[str, Path]:
    """Paths by their names: the given one, else a run's model, else that of the file or folder.

    Derived names that are the same get the folder's name behind them, or else become the paths. Raises
    UsageError for two files of one name.
    """
    given = [_split(argument) for argument in arguments]
    derived = [name or _name(path) for name, path in given]
    for tell_apart in (_with_folder, _whole_path):
        counts = Counter(derived)
        derived = [
            name if own or counts[name] == 1 else tell_apart(name, path)
            for name, (own, path) in zip(derived, given, strict=True)
        ]
    found: dict[str, Path] = {}
    for key, (_, path) in zip(derived, given, strict=True):
        if key in found:
            raise UsageError(
                f"two predictions are called {key!r}: {found[key]} and {path}",
                remedy="Give names of their own: NAME=PATH.",
            )
        found[key] = path
    return found


def _split(argument: str) -> tuple[str | None, Path]:
    name, equals, path = argument.partition("=")
    if not equals or Path(argument).exists():
        return None, Path(argument)
    if not name.strip() or not path:
        raise UsageError(f"{argument!r} has no name or no path", remedy="Write NAME=PATH.")
    return name.strip(), Path(path)


def _name(path: Path) -> str:
    if not path.is_dir() and path.name != RECORDS:
        return path.stem
    folder = _folder(path)
    manifest = RunFolder(folder).read_manifest()
    return (manifest and manifest.model) or folder.name


def _with_folder(name: str, path: Path) -> str:
    return f"{name} ({_folder(path).name})"


def _whole_path(_name: str, path: Path) -> str:
    return str(path)


def _folder(path: Path) -> Path:
    return path.resolve() if path.is_dir() else path.resolve().parent
