"""Annotation files and run folders read as streams, or refused with everything that is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from uncanny.errors import ItemsError, Problem, UsageError
from uncanny.eval.audit.data.aggregate import MOST_WORST, Aggregate, pairing
from uncanny.eval.audit.data.alike import Provenance
from uncanny.eval.audit.data.sources import Source
from uncanny.eval.common.problems import of_validation
from uncanny.eval.common.runs import ReadRun, image_of, last_lines, open_run
from uncanny.records.run_folder import Unfinished, unfinished
from uncanny.schema import Annotation
from uncanny.wording import option

FINISHED = "finished"
_UTF8_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Generator:
    """One generator's annotations: what is kept of them, how they were made, and what to know about them."""

    source: Source
    aggregate: Aggregate
    provenance: Provenance
    notices: tuple[str, ...] = ()
    unfinished: Unfinished | None = None

    @property
    def name(self) -> str:
        return self.source.name


def load_generators(
    sources: Sequence[Source],
    *,
    root: Path | None = None,
    pair_by: str | None = None,
    worst: int = MOST_WORST,
) -> tuple[Generator, ...]:
    """Read all records of all generators. `root` is where the image paths of annotation files start.

    Raises ItemsError with every invalid line and every image that is there twice, of all files at once, and
    UsageError for a file that cannot be read or holds nothing, or an image folder.
    """
    generators: list[Generator] = []
    problems: list[Problem] = []
    places: list[str] = []
    for source in sources:
        records = _open(source, root)
        places.append(records.place)
        aggregate = Aggregate(records.locate, pairing(pair_by), worst, from_run=records.run is not None)
        own_problems = _read(records, aggregate, pair_by)
        problems += (
            [_of_source(each, records.place) for each in own_problems] if len(sources) > 1 else own_problems
        )
        if not own_problems and not aggregate.records:
            raise UsageError(
                f"{source.name}: {records.place} holds no annotations",
                remedy="Leave it out, or annotate first.",
            )
        left = None
        if records.run is not None:
            left = unfinished(records.run.folder.path, "images", aggregate.records)
        notices = (*_notices(source, records.run, left), *_blank(source, records.run, aggregate))
        generators.append(Generator(source, aggregate, _provenance(aggregate, records.run), notices, left))
    if problems:
        what = places[0] if len(places) == 1 else f"{len(places)} annotation files"
        raise ItemsError(what, problems, remedy="Correct these lines; nothing was audited.")
    return tuple(generators)


def provenances(generators: Iterable[Generator]) -> dict[str, Provenance]:
    """How each was made; one without images that count has nothing to compare."""
    return {each.name: each.provenance for each in generators if each.aggregate.images}


@dataclass(frozen=True, slots=True)
class _Records:
    """A source opened. `file` is None for annotations in memory, `run` unless the source is a run."""

    source: Source
    file: Path | None
    run: ReadRun | None
    root: Path

    @property
    def place(self) -> str:
        return self.source.place if self.file is None else str(self.file)

    def locate(self, image: str) -> Path:
        return self.run.picture(image) if self.run is not None else self.root / image

    @property
    def growing(self) -> bool:
        """Whether a run may still write: then a record may be there twice, and the last line in part."""
        return self.run is not None and self.run.info.state != FINISHED


def _open(source: Source, root: Path | None) -> _Records:
    if source.kind == "images":
        raise UsageError(
            f"{source.name}: {source.place} holds no annotations",
            remedy=f"Name a model with {option('model')} and a folder with {option('out')} to annotate its "
            "images first.",
        )
    if source.path is None:
        return _Records(source, None, None, root or Path())
    if source.kind == "file":
        return _Records(source, source.path, None, root or source.path.parent)
    run = open_run(source.path)
    return _Records(source, run.folder.annotations, run, source.path)


def _read(records: _Records, aggregate: Aggregate, pair_by: str | None) -> list[Problem]:
    """Add all valid records to `aggregate`; what is wrong with the others."""
    problems: list[Problem] = []
    first: dict[str, int | None] = {}
    for line, record in _annotations(records, problems):
        if record.image in first:
            place = "" if line is None else f", at line {first[record.image]}"
            message = f"the image was there before{place}; keep one of the two"
            problems.append(Problem(record.image, "image", message, line=line))
            continue
        first[record.image] = line
        try:
            aggregate.add(record)
        except ValueError as error:
            message = f"{error}; {option('pair_by')} needs it in every record"
            problems.append(Problem(record.image, pair_by, message, line=line))
    return problems


def _annotations(records: _Records, problems: list[Problem]) -> Iterator[tuple[int | None, Annotation]]:
    """Valid records with their lines, None in memory; what is wrong with other lines goes to `problems`."""
    if records.file is None:
        yield from ((None, record) for record in records.source.annotations)
        return
    last = last_lines(_lines(records.file)) if records.growing else {}
    for number, line in _lines(records.file):
        try:
            record = Annotation.model_validate_json(line)
        except ValidationError as error:
            if not (records.growing and not line.endswith(b"\n")):
                problems += of_validation(error, item=image_of(line), line=number)
            continue
        if last.get(record.image, number) == number:
            yield number, record


def _lines(file: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with file.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                content = line.removeprefix(_UTF8_MARK) if number == 1 else line
                if content.strip():
                    yield number, content
    except OSError as error:
        raise UsageError(
            f"{file} cannot be read: {error.strerror or error}",
            remedy="Name a run folder or a JSON Lines file with annotations.",
        ) from error


def _of_source(problem: Problem, place: str) -> Problem:
    return Problem(problem.item, problem.field, f"{place}: {problem.message}", line=problem.line)


def _provenance(aggregate: Aggregate, run: ReadRun | None) -> Provenance:
    models, prompts = tuple(sorted(aggregate.models)), tuple(sorted(aggregate.prompts))
    changes = None if aggregate.changes is None else tuple(sorted(aggregate.changes))
    if run is None or not run.written:
        return Provenance(models, prompts, changes)
    info = run.info
    served = {model: tuple(sorted(info.served_as[model])) for model in models if info.served_as.get(model)}
    served_known = aggregate.models <= served.keys() - set(info.served_unnamed)
    if info.model and info.roles and aggregate.models <= {info.model, *info.roles.values()}:
        models = (together(info.model, info.roles),)
    return Provenance(
        models,
        prompts,
        changes,
        as_texts(info.pixels.policy) or None,
        settings_of(info.plan, info.roles) or None,
        served,
        served_known,
    )


def together(model: str, roles: Mapping[str, str]) -> str:
    """Where roles have models of their own, all of them are one way of annotating."""
    return " + ".join(sorted({model, *roles.values()}))


def settings_of(plan: Mapping[str, object], roles: Mapping[str, str]) -> dict[str, str]:
    """What a run's records depend on beside model, prompts and pixels."""
    return as_texts(plan) | {f"role {role}": model for role, model in roles.items()}


def as_texts(table: Mapping[str, object]) -> dict[str, str]:
    """A table of settings with values that can be compared and shown."""
    return {name: "none" if value is None else str(value) for name, value in table.items()}


def _notices(source: Source, run: ReadRun | None, left: Unfinished | None) -> tuple[str, ...]:
    if left is not None:
        missing = f"{left.missing:,} {'image is' if left.missing == 1 else 'images are'} missing"
        return (f"{source.name}: its run is not finished ({left.state}), {missing}.",)
    if run is None or run.info.state in (None, FINISHED):
        return ()
    return (f"{source.name}: its run is not finished ({run.info.state}).",)


def _blank(source: Source, run: ReadRun | None, aggregate: Aggregate) -> tuple[str, ...]:
    """Where no object was named nothing was examined, unless the image was scanned as a whole."""
    blank = aggregate.without_objects
    if not blank or (run is not None and run.info.plan.get("scene_scans")):
        return ()
    return (
        f"{source.name}: no object is named in {blank:,} of {aggregate.images:,} images, so that nothing in "
        "them was examined; they count as flawless.",
    )
