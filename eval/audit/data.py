"""`NAME=RUN_OR_FILE_OR_FOLDER`: what an audit is given, and what kind of thing it is.

Annotation files and run folders, read as streams, or refused with everything that is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson
from pydantic import ValidationError

from uncanny.errors import UsageError
from uncanny.eval.audit.aggregate import MOST_WORST, Tally, pairing
from uncanny.eval.audit.result import Provenance, SourceKind
from uncanny.eval.common.problems import ItemsError, Problem, of_validation
from uncanny.eval.common.runs import ReadRun, open_run
from uncanny.images.discover import IMAGE_SUFFIXES
from uncanny.records.run_folder import Unfinished, unfinished
from uncanny.schema import Annotation

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


FINISHED = "finished"
_UTF8_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Loaded:
    """One generator's tally, with how it was made and what to know about it."""

    source: Source
    tally: Tally
    provenance: Provenance
    notices: tuple[str, ...] = ()
    unfinished: Unfinished | None = None


def load_generators(
    sources: Sequence[Source],
    *,
    root: Path | None = None,
    pair_by: str | None = None,
    worst: int = MOST_WORST,
) -> tuple[Loaded, ...]:
    """Read all records of all generators. `root` is where the image paths of annotation files start.

    Raises ItemsError with every invalid line and every image that is there twice, of all files at once, and
    UsageError for a file that cannot be read or holds nothing, or an image folder.
    """
    loaded: list[Loaded] = []
    problems: list[Problem] = []
    files = []
    for source in sources:
        one = _open(source, root)
        files.append(one.file)
        tally = Tally(one.place, pairing(pair_by), worst, of_run=one.run is not None)
        found = list(_read(one, tally, pair_by))
        problems += [_in_file(problem, one.file) for problem in found] if len(sources) > 1 else found
        if not found and not (len(tally.counts) or tally.left_out.total):
            raise UsageError(
                f"{source.name}: {one.file} holds no annotations", remedy="Leave it out, or annotate first."
            )
        left = unfinished(source.path, len(tally.counts) + tally.left_out.total) if one.run else None
        notices = _notices(source, one.run, left)
        loaded.append(Loaded(source, tally, _provenance(tally, one.run), notices, left))
    if problems:
        what = str(files[0]) if len(files) == 1 else f"{len(files)} annotation files"
        raise ItemsError(what, problems, remedy="Correct these lines; nothing was audited.")
    return tuple(loaded)


@dataclass(frozen=True, slots=True)
class _Opened:
    file: Path
    run: ReadRun | None
    root: Path

    def place(self, image: str) -> Path:
        return self.run.picture(image) if self.run is not None else self.root / image

    @property
    def growing(self) -> bool:
        """Whether a run may still write: then a record may be there twice, and the last line in part."""
        return self.run is not None and self.run.info.state != FINISHED


def _open(source: Source, root: Path | None) -> _Opened:
    if source.kind == "images":
        raise UsageError(
            f"{source.name}: {source.path} holds no annotations",
            remedy="Name a model with --model and a folder with -o to annotate its images first.",
        )
    if source.kind == "file":
        return _Opened(source.path, None, root or source.path.parent)
    run = open_run(source.path)
    return _Opened(run.folder.annotations, run, source.path)


def _read(opened: _Opened, tally: Tally, pair_by: str | None) -> Iterator[Problem]:
    """Add all valid records to `tally`; yields what is wrong with the others."""
    last = _last_lines(opened.file) if opened.growing else {}
    first: dict[str, int] = {}
    for number, line in _lines(opened.file):
        try:
            record = Annotation.model_validate_json(line)
        except ValidationError as error:
            if not (opened.growing and not line.endswith(b"\n")):
                yield from of_validation(error, item=_image_of(line), line=number)
            continue
        if last.get(record.image, number) != number:
            continue
        if record.image in first:
            message = f"the image was there before, at line {first[record.image]}; keep one of the two"
            yield Problem(record.image, "image", message, line=number)
            continue
        first[record.image] = number
        try:
            tally.add(record)
        except ValueError as error:
            yield Problem(record.image, pair_by, f"{error}; --pair-by needs it in every record", line=number)


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


def _last_lines(file: Path) -> dict[str, int]:
    """While a run goes on, an image that was asked again has a second line."""
    return {image: number for number, line in _lines(file) if (image := _image_of(line)) is not None}


def _image_of(line: bytes) -> str | None:
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    image = found.get("image") if isinstance(found, dict) else None
    return image if isinstance(image, str) else None


def _in_file(problem: Problem, file: Path) -> Problem:
    return Problem(problem.item, problem.field, f"{file}: {problem.message}", line=problem.line)


def _provenance(tally: Tally, run: ReadRun | None) -> Provenance:
    info = run.info if run is not None and run.written else None
    changes = None if tally.changes is None else tuple(sorted(tally.changes))
    if info is None:
        return Provenance(tuple(sorted(tally.models)), tuple(sorted(tally.prompts)), changes)
    models = tuple(sorted(tally.models))
    served = {model: tuple(sorted(info.served_as[model])) for model in models if info.served_as.get(model)}
    if info.model and info.roles and tally.models <= {info.model, *info.roles.values()}:
        models = (together(info.model, info.roles),)
    return Provenance(
        models,
        tuple(sorted(tally.prompts)),
        changes,
        as_texts(info.pixels.policy) or None,
        settings_of(info.plan, info.roles) or None,
        served,
        tally.models <= served.keys() - set(info.served_unnamed),
    )


def together(model: str, roles: Mapping[str, str]) -> str:
    """Where roles have models of their own, all of them are one way of annotating."""
    return " + ".join(sorted({model, *roles.values()}))


def settings_of(plan: Mapping[str, object], roles: Mapping[str, str]) -> dict[str, str]:
    """What a run's records depend on beside model, prompts and pixels."""
    return as_texts(plan) | {f"role {role}": model for role, model in roles.items()}


def as_texts(table: Mapping[str, object]) -> dict[str, str]:
    return {name: "none" if value is None else str(value) for name, value in table.items()}


def _notices(source: Source, run: ReadRun | None, left: Unfinished | None) -> tuple[str, ...]:
    if left is not None:
        missing = f"{left.missing:,} {'image is' if left.missing == 1 else 'images are'} missing"
        return (f"{source.name}: its run is not finished ({left.state}), {missing}.",)
    if run is None or run.info.state in (None, FINISHED):
        return ()
    return (f"{source.name}: its run is not finished ({run.info.state}).",)
