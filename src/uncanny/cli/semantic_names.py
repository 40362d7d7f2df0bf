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

    Derived names that are the same become the paths. Raises UsageError for two files of one given name.
    """
    given = [_split(argument) for argument in arguments]
    derived = [name or _name(path) for name, path in given]
    counts = Counter(derived)
    found: dict[str, Path] = {}
    for (name, path), short in zip(given, derived, strict=True):
        key = short if name or counts[short] == 1 else str(path)
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
    folder = path if path.is_dir() else path.parent if path.name == RECORDS else None
    if folder is None:
        return path.stem
    manifest = RunFolder(folder).read_manifest() or {}
    model = manifest.get("model")
    return model if isinstance(model, str) and model else folder.resolve().name
