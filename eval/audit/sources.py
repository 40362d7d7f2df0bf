"""`NAME=RUN_OR_FILE_OR_FOLDER`: what an audit is given, and what kind of thing it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from uncanny.errors import UsageError
from uncanny.eval.audit.result import SourceKind
from uncanny.images.discover import IMAGE_SUFFIXES

SCENES = "scenes"
STYLES = ("rendered", "drawn")
_FORM = "Write NAME=RUN, NAME=FILE.jsonl or NAME=FOLDER."


@dataclass(frozen=True, slots=True)
class Source:
    """One generator. `path` is a run folder, an annotation file, or images that are still to be annotated.

    `style` is set for bundled scenes: `rendered`, `drawn`, or `scenes` for both; `path` is then empty.
    """

    name: str
    path: Path
    kind: SourceKind
    style: str | None = None


def read_sources(arguments: Sequence[str]) -> tuple[Source, ...]:
    """In the order given. Raises UsageError: no such file, no such form, a name used twice."""
    sources = tuple(_source(argument) for argument in arguments)
    names = [source.name for source in sources]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{name!r} names two generators", remedy="Give each a name of its own.")
    return sources


def _source(argument: str) -> Source:
    name, equals, place = argument.partition("=")
    if not equals or not name.strip() or not place:
        raise UsageError(f"{argument!r} does not name a generator and its annotations", remedy=_FORM)
    name = name.strip()
    scenes, colon, style = place.partition(":")
    if scenes == SCENES and not Path(place).exists():
        if colon and style not in STYLES:
            raise UsageError(
                f"There are no bundled scenes {style!r}", remedy=f"Write scenes:{' or scenes:'.join(STYLES)}."
            )
        return Source(name, Path(), "images", style or SCENES)
    path = Path(place)
    return Source(name, *_of_path(name, path))


def _of_path(name: str, path: Path) -> tuple[Path, SourceKind]:
    if path.is_dir():
        made = any((path / file).is_file() for file in ("run.json", "annotations.jsonl"))
        return path, "run" if made else "images"
    if not path.exists():
        raise UsageError(f"{name}: {path} does not exist", remedy=_FORM)
    if path.suffix.lower() in IMAGE_SUFFIXES:
        raise UsageError(f"{name}: {path} is a single image", remedy="Give the folder it is in.")
    if path.name == "annotations.jsonl" and (path.parent / "run.json").is_file():
        return path.parent, "run"
    return path, "file"
