"""Annotations by name, wherever they are, and their records: what audits and comparisons are about.

A source is a run folder, a file of annotations, annotations in memory, or, for audits, images that are
annotated first: a folder, or the bundled scenes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import ValidationError

from uncanny.demo.scenes import bundled_set
from uncanny.demo.sets import SCENES
from uncanny.errors import Problem, UsageError
from uncanny.eval.common.inputs.problems import first_line, of_validation, repeated
from uncanny.eval.common.inputs.runs import ReadRun, check_findings, check_found, last_lines, open_run
from uncanny.eval.common.inputs.table_records import open_lines
from uncanny.images.discover import IMAGE_SUFFIXES
from uncanny.images.row_files import ROW_SUFFIXES, has_pictures
from uncanny.parameters import refuse_table
from uncanny.records.annotation_table import LINES, TABLE
from uncanny.records.record_file import image_of
from uncanny.records.run_folder import check_recorded
from uncanny.schema import Annotation
from uncanny.wording import option

AnnotationSource: TypeAlias = str | PathLike[str] | Iterable[Annotation]
SourceKind = Literal["file", "run", "images", "annotations"]

LeftOutBy = Literal["failed", "partial", "unreadable", "unclear"]

STYLES = ("rendered", "drawn")
FINISHED = "finished"
_NEEDED = frozenset({"sha256", "width", "height"})
_REMEDY = "Pass a run folder, a JSON Lines file of annotations, or a folder of images."


@dataclass(frozen=True, slots=True)
class Source:
    """Annotations under a name.

    `path` is a run folder, an annotation file, or images that are still to be annotated; None for bundled
    scenes and for `annotations` in memory. `style` is set for bundled scenes: `rendered`, `drawn`,
    `scenes` for both, or `large-scenes`.
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
            f"The generators of an audit must be a mapping from name to annotations, not {sources!r}",
            remedy='Write {"name": "runs/a"}.',
        )
    return tuple(_source(name, source) for name, source in sources.items())


def _source(name: str, source: AnnotationSource) -> Source:
    if not isinstance(source, str | PathLike):
        refuse_table(source, f"{name}: annotations are a run, a file or `Annotation` records", paths=False)
        annotations = tuple(source) if isinstance(source, Iterable) else (source,)
        for annotation in annotations:
            if not isinstance(annotation, Annotation):
                raise UsageError(f"{name}: {type(annotation).__name__} is not an Annotation", remedy=_REMEDY)
        return Source(name, None, "annotations", annotations=annotations)
    place = fspath(source)
    path = Path(place)
    if (bundled := bundled_set(place)) is not None:
        return Source(name, None, "images", bundled)
    scenes, colon, style = place.partition(":")
    if colon and scenes == SCENES and not path.exists():
        if style not in STYLES:
            raise UsageError(
                f"There is no bundled set {style!r}", remedy=f"Write scenes:{' or scenes:'.join(STYLES)}."
            )
        return Source(name, None, "images", style)
    if path.is_dir():
        is_run = any((path / file).is_file() for file in ("run.json", LINES, TABLE))
        return Source(name, path, "run" if is_run else "images")
    if not path.exists():
        raise UsageError(f"{name}: {path} does not exist", remedy=_REMEDY)
    if path.suffix.lower() in IMAGE_SUFFIXES:
        raise UsageError(f"{name}: {path} is a single image", remedy="Give the folder it is in.")
    if path.name in (LINES, TABLE) and (path.parent / "run.json").is_file():
        return Source(name, path.parent, "run")
    has_images = path.suffix.lower() in ROW_SUFFIXES and has_pictures(path)
    return Source(name, path, "images" if has_images else "file")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Records that are in no score, by status: a failed annotation is not a flawless image.

    `unclear` are those of a detection run that gave no clear verdict, and so were asked for no anomalies.
    """

    failed: int = 0
    partial: int = 0
    unreadable: int = 0
    unclear: int = 0

    @property
    def total(self) -> int:
        return self.not_done + self.unclear

    @property
    def not_done(self) -> int:
        """Those that failed, in whole or in part; a verdict that is unclear is an answer, and no failure."""
        return self.failed + self.partial + self.unreadable


def left_out_by(record: Annotation) -> LeftOutBy | None:
    """Why a record counts in no score; None where it counts: `ok`, with a verdict where one was asked for."""
    if record.status != "ok":
        return record.status
    return "unclear" if (record.model_extra or {}).get("source", "not asked") is None else None


@dataclass(frozen=True, slots=True)
class OpenSource:
    """A source whose records can be read. `file` is None for annotations in memory, `run` unless it is a run.

    `root` is where image paths start.
    """

    source: Source
    file: Path | None
    run: ReadRun | None
    root: Path

    @property
    def place(self) -> str:
        return self.source.place if self.file is None else str(self.file)

    def locate(self, image: str) -> Path:
        return self.run.picture(image) if self.run is not None else self.root / image

    def digest(self, record: Annotation) -> str | None:
        """What the image file must have to be shown: "" where it may not, None where that is not known."""
        return record.sha256 or ("" if self.run is not None else None)

    @property
    def growing(self) -> bool:
        """Whether a run may still write: then a record may be there twice, and the last line in part."""
        return self.run is not None and self.run.info.state != FINISHED

    def records(self, problems: list[Problem]) -> Iterator[tuple[int | None, Annotation]]:
        """Valid records with their lines, None in memory, each image once; the rest goes to `problems`.

        Raises UsageError where the file cannot be read.
        """
        first: dict[str, int | None] = {}
        for line, image, record in self._parsed(problems):
            if image in first:
                problems += repeated([(first[image], image), (line, image)], "image", "keep one of the two")
                continue
            first[image] = line
            if record is not None:
                yield line, record

    def records_at(self, places: Set[int]) -> dict[int, Annotation]:
        """Single records by their line, or their number from 0 in memory; those no longer there are left out.

        Raises UsageError where the file cannot be read.
        """
        if self.file is None:
            return {number: self.source.annotations[number] for number in places}
        records: dict[int, Annotation] = {}
        for number, line in _lines(self.file):
            if number in places:
                with suppress(ValidationError):  # written over since
                    records[number] = Annotation.model_validate_json(line)
        return records

    def _parsed(self, problems: list[Problem]) -> Iterator[tuple[int | None, str, Annotation | None]]:
        """Lines with their images, and their records, None where that does not validate."""
        if self.file is None:
            yield from ((None, record.image, record) for record in self.source.annotations)
            return
        last = last_lines(_lines(self.file)) if self.growing else {}
        for number, line in _lines(self.file):
            try:
                record = Annotation.model_validate_json(line)
            except ValidationError as error:
                if not (self.growing and not line.endswith(b"\n")):
                    image = image_of(line)
                    problems += of_validation(error, item=image, line=number)
                    if image is not None and last.get(image, number) == number:
                        yield number, image, None
                continue
            if last.get(record.image, number) == number:
                yield number, record.image, record


def open_source(source: Source, root: Path | None) -> OpenSource:
    """Raises UsageError for images without annotations, for what is not a run, and for a run of people.

    `root` is where the image paths of annotation files start, their folder unless given.
    """
    if source.kind == "images":
        raise UsageError(
            f"{source.name}: {source.place} contains no annotations",
            remedy=f"Pass a model with {option('model')} and a folder with {option('out')} to annotate its "
            "images first.",
        )
    if source.path is None:
        check_found(source.place, map(dict, source.annotations))
        return OpenSource(source, None, None, root or Path())
    if source.kind == "file":
        check_findings(source.path)
        return OpenSource(source, source.path, None, root or source.path.parent)
    run = open_run(source.path)
    if not run.folder.annotations.is_file():
        check_recorded(source.path, LINES)
    check_findings(run.folder.annotations)
    return OpenSource(source, run.folder.annotations, run, source.path)


def of_place(problem: Problem, place: str) -> Problem:
    """The same problem where several files are read: it says which one it is in."""
    return Problem(problem.item, problem.field, f"{place}: {problem.message}", line=problem.line)


def _lines(file: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with open_lines(file, needed=_NEEDED) as lines:
            for number, line in enumerate(lines, 1):
                content = first_line(line, file) if number == 1 else line
                if content.strip():
                    yield number, content
    except OSError as error:
        raise UsageError(
            f"{file} cannot be read: {error.strerror or error}",
            remedy="Pass a run folder or a JSON Lines file with annotations.",
        ) from error
