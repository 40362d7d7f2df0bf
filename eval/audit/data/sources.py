"""What an audit is about: generators by name, and where each one's annotations are.

A generator is a run folder, a file of annotations, annotations in memory, or images that are annotated first:
a folder, or the bundled scenes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Literal, TypeAlias

from uncanny.demo.scenes import SCENES
from uncanny.errors import UsageError
from uncanny.images.discover import IMAGE_SUFFIXES
from uncanny.schema import Annotation

AnnotationSource: TypeAlias = str | PathLike[str] | Iterable[Annotation]
SourceKind = Literal["file", "run", "images", "annotations"]

STYLES = ("rendered", "drawn")
_REMEDY = "Name a run folder, a JSON Lines file of annotations, or a folder of images."


@dataclass(frozen=True, slots=True)
class Source:
    """One generator.

    `path` is a run folder, an annotation file, or images that are still to be annotated; None for bundled
    scenes and for `annotations` in memory. `style` is set for bundled scenes: `rendered`, `drawn`, or
    `scenes` for both.
    """

    name: str
    path: Path | None
    kind: SourceKind
    style: str | None = None
    annotations: tuple[Annotation, ...] = ()

    @property
    def place(self) -> str:
        """What the source is called in messages."""
        return self.style or (f"list {self.name!r}" if self.path is None else str(self.path))


def read_sources(sources: Mapping[str, AnnotationSource]) -> tuple[Source, ...]:
    """In the order given. Raises UsageError for what is not there or holds no annotations and no images."""
    if not isinstance(sources, Mapping):
        raise UsageError(
            f"The generators of an audit are a mapping from name to annotations, not {sources!r}",
            remedy='Write {"name": "runs/a"}.',
        )
    return tuple(_source(name, source) for name, source in sources.items())


def _source(name: str, source: AnnotationSource) -> Source:
    if not isinstance(source, str | PathLike):
        annotations = tuple(source) if isinstance(source, Iterable) else (source,)
        for annotation in annotations:
            if not isinstance(annotation, Annotation):
                raise UsageError(f"{name}: {type(annotation).__name__} is no Annotation", remedy=_REMEDY)
        return Source(name, None, "annotations", annotations=annotations)
    place = fspath(source)
    path = Path(place)
    scenes, colon, style = place.partition(":")
    if scenes == SCENES and not path.exists():
        if colon and style not in STYLES:
            raise UsageError(
                f"There are no bundled scenes {style!r}", remedy=f"Write scenes:{' or scenes:'.join(STYLES)}."
            )
        return Source(name, None, "images", style or SCENES)
    if path.is_dir():
        is_run = any((path / file).is_file() for file in ("run.json", "annotations.jsonl"))
        return Source(name, path, "run" if is_run else "images")
    if not path.exists():
        raise UsageError(f"{name}: {path} does not exist", remedy=_REMEDY)
    if path.suffix.lower() in IMAGE_SUFFIXES:
        raise UsageError(f"{name}: {path} is a single image", remedy="Give the folder it is in.")
    if path.name == "annotations.jsonl" and (path.parent / "run.json").is_file():
        return Source(name, path.parent, "run")
    return Source(name, path, "file")
