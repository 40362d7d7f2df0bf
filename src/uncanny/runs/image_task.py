"""Runs over images: read, sent once however many copies there are, and resumed by what the files hold."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import Counter
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from pathlib import Path
from sys import intern
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypedDict, TypeVar, cast
from weakref import WeakValueDictionary

from pydantic import BaseModel

from uncanny.client.calls import usage
from uncanny.detectors.parameters import DetectorParameters
from uncanny.detectors.provider import AskedDetector
from uncanny.errors import ImageError, UsageError
from uncanny.extras import pyarrow
from uncanny.images.columns import ImageColumns
from uncanny.images.encode import PixelPolicy
from uncanny.images.file_bytes import RecordedFile
from uncanny.images.prepared import PreparedImage, prepare
from uncanny.models.registry import DETECTOR, ModelOptions
from uncanny.parameters import refuse_table
from uncanny.prompts import UNASKED, PromptSet, make_set
from uncanny.prompts.folders import read_prompts
from uncanny.records.annotation_table import RecordFormat, is_own_table, write_table
from uncanny.records.record_file import RecordFile
from uncanny.records.run_folder import RunFolder
from uncanny.records.run_manifest import RunSettings
from uncanny.runs.inputs import ImageFile, ImageFiles, Inputs, PickedFiles, find_inputs, note_skipped
from uncanny.runs.parameters import ImageParameters, RunOptions, TableParameters
from uncanny.runs.progress import Progress
from uncanny.runs.task import CELL_KEYS, Stock, Task, cells_of
from uncanny.schema import (
    STATUSES,
    Annotation,
    Pixels,
    SentPixels,
    Status,
    StepError,
    names_nothing,
)
from uncanny.wording import option

if TYPE_CHECKING:
    from uncanny.client.calls import CallRecord
    from uncanny.runs.engine import Engine

A = TypeVar("A", bound=BaseModel)
Images = str | Path | Sequence[str | Path]
MOST_IMAGES_AT_ONCE = 128
# Of so many images an error says which columns there are.
MOST_LOOKED_AT = 100
_WITHOUT_COLUMNS = "New records lack its columns, and earlier records keep theirs"


class ImageRecord(Protocol):
    """What the record of any run over images has, as `Annotation` has it; pydantic models all of them."""

    @property
    def image(self) -> str: ...
    @property
    def sha256(self) -> str | None: ...
    @property
    def status(self) -> Status: ...
    @property
    def pixels(self) -> Pixels | None: ...
    @property
    def file_stamp(self) -> str | None: ...
    @property
    def model_extra(self) -> dict[str, Any] | None: ...


@dataclass(kw_only=True)
class ImageTask(Task[ImageFile, A]):
    """A run with one record an image: `Annotation`, or another that has all of `ImageRecord`.

    `paths` are image files, tables with pictures in them and folders, `files` what they were found to hold
    when the run began; `table` says what is taken from tables. With the `format` `parquet`, and where a run
    has one already, a table is made of the records at the end. `found` is the field of a record whose entries
    are counted as found. `detector` is asked in the place of a model, where the model is one."""

    unit = "images"
    statuses = STATUSES
    in_steps = True
    record_file = "annotations.jsonl"
    asked_again = frozenset(STATUSES) - {"ok"}
    found: ClassVar[str] = "anomalies"

    paths: Sequence[Path]
    table: TableParameters = field(default_factory=TableParameters)
    format: RecordFormat = "jsonl"
    files: ImageFiles = field(init=False, repr=False, default_factory=lambda: ImageFiles(()))
    detector: AskedDetector | None = None
    _columns: ImageColumns = field(init=False, repr=False, default_factory=ImageColumns)
    _earlier: dict[str, dict[str, Any]] = field(init=False, repr=False, default_factory=dict)
    _records: RecordFile[A] = field(init=False, repr=False)
    _by_digest: dict[str, str] = field(init=False, repr=False, default_factory=dict)
    _running: dict[str, asyncio.Event] = field(init=False, repr=False, default_factory=dict)
    _looked: dict[str, PreparedImage] = field(init=False, repr=False, default_factory=dict)
    # As long as somebody works with them, or looks into the defect that has ended it.
    _examined: WeakValueDictionary[str, PreparedImage] = field(
        init=False, repr=False, default_factory=WeakValueDictionary
    )

    @abstractmethod
    async def examine(
        self, file: ImageFile, image: PreparedImage, engine: Engine, calls: list[CallRecord]
    ) -> A:
        """The record of an image that could be read. Raises as `process` does."""

    def inputs(self) -> Inputs:
        """The images in order of their names. Raises UsageError."""
        return find_inputs(
            self.paths,
            run=self.folder.path,
            root=self.root,
            limit=self.options.limit,
            image_column=self.table.image_column,
        )

    def config_json(self) -> dict[str, Any]:
        plan = super().config_json()
        return plan if self.detector is None else {**plan, "detector": self.detector.plan()}

    def settings(self) -> RunSettings:
        settings = super().settings()
        system = {"system": self.system_text()}
        return settings.model_copy(update={"prompts": settings.prompts.model_copy(update=system)})

    def system_text(self) -> str:
        """The system text of all calls; empty where nothing is asked with texts."""
        return "" if self.detector is not None else self.prompts["system"].fill()

    def key(self, record: A) -> str:
        return about(record).image

    def summary(self, record: A) -> _Counted:
        of_image = about(record)
        annotation = record if isinstance(record, Annotation) else None
        extra = of_image.model_extra or {}
        judged = annotation is not None and annotation.status in ("ok", "partial")
        return _Counted(
            of_image.status,
            of_image.sha256,
            len(getattr(record, self.found) or ()),
            annotation is not None and names_nothing(annotation),
            len(annotation.objects) if annotation is not None and judged else 0,
            annotation is not None and judged and not annotation.anomalies and not extra.get("candidates"),
            "duplicate_of" in extra,
            of_image.pixels.changes if of_image.pixels else (),
        )

    def count(self, progress: Progress, summary: _Counted) -> None:
        progress.statuses[summary.status] += 1
        progress.items_found += summary.found
        progress.without_objects += summary.without_objects
        progress.objects += summary.objects
        progress.without_findings += summary.without_findings
        progress.duplicates += summary.duplicate
        for change in summary.changes:
            progress.pixel_changes[change.partition(":")[0]] += 1

    def after_records(self) -> Sequence[str]:
        lines, table = self.folder.annotations, self.folder.table
        is_wanted = self.format == "parquet" or table.is_file()
        if not is_wanted or not issubclass(self.record_type, Annotation) or not lines.is_file():
            return ()
        try:
            if table.is_file() and not is_own_table(table):
                elsewhere = f"{table} is not a table of this run, so it was left unchanged"
                return (elsewhere,) if self.format == "parquet" else ()
            if not table.is_file() or table.stat().st_mtime_ns < lines.stat().st_mtime_ns:
                write_table(lines, table, self.record_type)
        except (OSError, UsageError) as error:
            why = error.message if isinstance(error, UsageError) else error.strerror or error
            return (f"{table} could not be written: {why}; {lines.name} has all records",)
        return ()

    def load_pending(self, records: RecordFile[A], progress: Progress) -> Sequence[ImageFile]:
        if self.format == "parquet":
            pyarrow("pyarrow")  # better missed now than when the run is over
        inputs = self.inputs()
        self.files = inputs.files
        progress.items = self.found
        note_skipped(progress, inputs.skipped)
        stock = self.stock_of_images(inputs, records, progress)
        self._records = records
        self._by_digest = {each.sha256: image for image, each in stock.records.items() if each.sha256}
        if not stock.records:
            return self.files
        names = enumerate(self.files.names())
        return PickedFiles(self.files, (place for place, name in names if name not in stock.records))

    def stock_of_images(self, inputs: Inputs, records: RecordFile[A], progress: Progress) -> Stock[ImageFile]:
        """A record stands where it is `ok`, or failed ones are kept, and its file still holds those bytes,
        however old the file looks. Raises UsageError."""
        self._columns, self._earlier = ImageColumns(self.paths, self.table.columns), {}
        problems = self._columns.look(inputs.files.folders())
        progress.warnings += [f"{problem}. {_WITHOUT_COLUMNS}" for problem in problems]
        self._check_columns(inputs.files, problems)
        known = partial(self._by_index, inputs.files)
        return self.take_stock(inputs.files.by_name, records, progress, held=inputs, known=known)

    def records(self) -> RecordFile[A]:
        return RecordFile(self.folder.path / self.record_file, self.record_type, self.key, self._for_index)

    def _for_index(self, record: A) -> list[Any]:
        return [self._wanted, about(record).file_stamp, *self.summary(record)]

    @property
    def _wanted(self) -> list[str] | None:
        """The columns that records copy; None for all."""
        return None if self.table.columns is None else sorted(self.table.columns)

    def _by_index(self, files: ImageFiles, image: str, words: list[Any]) -> _Counted | None:
        """What is counted of a record that stands: its file has not changed, nor what a table says of it."""
        if len(words) != 2 + len(_Counted._fields):
            return None
        wanted, stamp, *counted = words
        if stamp is None or wanted != self._wanted:
            return None
        if self.options.retry_failed and counted[0] in self.asked_again:
            return None
        if files.stamp(image, self._columns.is_alone) != stamp:
            return None
        # One text for all: otherwise each takes 50 bytes.
        return _Counted._make((intern(counted[0]), *counted[1:-1], tuple(counted[-1])))

    def stands(self, item: ImageFile, record: A) -> bool:
        if not self._columns.is_known(item.path):
            self._earlier[item.image] = cells_of(record)
        return super().stands(item, record)

    def files_of(self, item: ImageFile, record: A) -> Iterator[RecordedFile]:
        of_image = about(record)
        if of_image.sha256 is not None:
            yield RecordedFile(item.path, of_image.sha256, of_image.file_stamp)

    def name_of(self, item: ImageFile) -> str:
        return item.image

    async def process(self, item: ImageFile, engine: Engine, calls: list[CallRecord]) -> Sequence[A]:
        item = replace(item, cells=await asyncio.to_thread(self.cells, item))
        seen = await engine.perform(self.look, item, calls)
        if not isinstance(seen, Seen):
            return seen
        while (other := self._running.get(seen.sha256)) is not None:
            await other.wait()
        if (first := self._by_digest.get(seen.sha256)) is not None:
            await engine.perform(self.forget, item, calls)
            return (self._duplicate(item, seen, first),)
        finished = self._running[seen.sha256] = asyncio.Event()
        try:
            record = await engine.perform(self.ask, item, calls)
            self._by_digest[seen.sha256] = item.image
        finally:
            del self._running[seen.sha256]
            finished.set()
        return (record,)

    async def look(self, item: ImageFile, engine: Engine, calls: list[CallRecord]) -> Seen | Sequence[A]:  # noqa: ARG002
        """Read an image and keep it to be asked about; its record where it cannot be read."""
        try:
            image = await asyncio.to_thread(prepare, item.path, self.policy, engine.limits)
        except ImageError as error:
            why = StepError(agent="image", step=0, kind=error.kind, message=str(error))
            return (self.record(item, None, "unreadable", errors=(why,), usage=usage([])),)
        self._looked[item.image] = image
        return Seen(image.source_sha256, image.stamp)

    async def forget(self, item: ImageFile, engine: Engine, calls: list[CallRecord]) -> None:  # noqa: ARG002
        """Let go of an image that nothing is asked about."""
        self._looked.pop(item.image, None)

    def ask(self, item: ImageFile, engine: Engine, calls: list[CallRecord]) -> Awaitable[A]:
        """The record of an image that was looked at."""
        image = self._looked.pop(item.image, None)
        if image is None:  # the process that had looked is gone
            return self._look_and_ask(item, engine, calls)
        self._examined[item.image] = image
        return self.examine(item, image, engine, calls)

    async def _look_and_ask(self, item: ImageFile, engine: Engine, calls: list[CallRecord]) -> A:
        seen = await self.look(item, engine, calls)
        return await self.ask(item, engine, calls) if isinstance(seen, Seen) else seen[0]

    def failed(self, item: ImageFile, error: StepError, calls: Sequence[CallRecord]) -> Sequence[A]:
        image = self._examined.pop(item.image, None)
        return (self.record(item, image, "failed", errors=(error,), usage=usage(calls)),)

    def record(self, file: ImageFile, image: PreparedImage | None, status: Status, **more: Any) -> A:
        """A record with what is known of the image; `image` is None where it could not be read."""
        return self.record_type(
            image=file.image,
            sha256=None if image is None else image.source_sha256,
            width=None if image is None else image.width,
            height=None if image is None else image.height,
            status=status,
            model=str(self.models.model),
            prompts=self.prompts.id,
            pixels=None if image is None else pixels(image),
            file_stamp=None if image is None else image.stamp,
            **more,
            **self._own_cells(file),
        )

    def _duplicate(self, file: ImageFile, seen: Seen, first: str) -> A:
        record = self._records.get(first)
        # Where `first` is a duplicate itself, both name the image that was asked about.
        extra = {"duplicate_of": first, **(record.model_extra or {})}
        own = {"image": file.image, "usage": usage([]), "file_stamp": seen.stamp}
        return type(record).model_validate(
            record.model_dump(exclude=set(record.model_extra or ()))
            | {name: value for name, value in extra.items() if name not in CELL_KEYS}
            | own
            | self._own_cells(file)
        )

    def _own_cells(self, file: ImageFile) -> dict[str, Any]:
        return self.cells(file) if file.cells is None else dict(file.cells)

    def cells(self, item: ImageFile) -> dict[str, Any]:
        """The further keys of a record that say what a table has of the image.

        Those of its record before where the table cannot be read.
        """
        if (earlier := self._earlier.get(item.image)) is not None:
            return earlier
        cells = self._columns.of(item.path)
        keys = {"row": cells.row, "columns": dict(cells.values)}
        return {name: value for name, value in keys.items() if value not in (None, {})}

    def _check_columns(self, files: Sequence[ImageFile], problems: Sequence[str]) -> None:
        """Raises UsageError for a column that is asked for and that no image has."""
        missing = set(self.table.columns or ())
        for file in files if missing else ():
            missing.difference_update(self._columns.of(file.path).values)
            if not missing:
                break
        if missing:
            every, known = ImageColumns(self.paths), set[str]()
            for file in files[:MOST_LOOKED_AT]:
                known |= every.of(file.path).values.keys()
            raise UsageError(
                f"No image has the column {', '.join(map(repr, sorted(missing)))}",
                remedy=f"{problems[0]}."
                if problems
                else f"The columns are {', '.join(map(repr, sorted(known)))}."
                if known
                else "Columns come from Parquet and Arrow files, and from metadata.csv beside images.",
            )


def about(record: BaseModel) -> ImageRecord:
    """A record of a run over images, as what is known of all of them."""
    return cast("ImageRecord", record)


def other_models(calls: Sequence[CallRecord], model: str) -> dict[str, Any]:
    """Calls by model, for a record, where not all of them went to `model`; else nothing."""
    models = Counter(call.model for call in calls)
    return {"models": dict(sorted(models.items()))} if models.keys() - {model} else {}


def pixels(image: PreparedImage) -> Pixels:
    """What a record says of the pixels that were sent."""
    sent = None
    if image.changes:
        sent = SentPixels(
            sha256=image.sent_sha256,
            media_type=image.media_type,
            width=image.sent_width,
            height=image.sent_height,
            bytes=len(image.sent),
        )
    return Pixels(format=image.source_format, bytes=image.source_bytes, changes=image.changes, sent=sent)


class Seen(NamedTuple):
    """An image that was read: the digest of its bytes, and the stamp of its file."""

    sha256: str
    stamp: str | None


class _Counted(NamedTuple):
    """What of a record is counted: kept instead of the record, which is larger."""

    status: str
    sha256: str | None
    found: int
    without_objects: bool
    objects: int
    without_findings: bool
    duplicate: bool
    changes: tuple[str, ...]


class ImageRun(TypedDict):
    """What every task over images is made of, beside its configuration."""

    folder: RunFolder
    paths: tuple[Path, ...]
    models: ModelOptions
    options: RunOptions
    policy: PixelPolicy
    root: Path | None
    prompts: PromptSet
    table: TableParameters
    detector: AskedDetector | None


def task_parts(protocol: str, images: Images, parameters: ImageParameters) -> ImageRun:
    """What every task over images is made of, from the parameters of a public function. Raises UsageError."""
    models = parameters.models
    detector = None
    if models.model.provider == DETECTOR:
        if not isinstance(parameters, DetectorParameters):
            raise UsageError(
                f"{models.model} is a detector, which cannot answer prompts",
                remedy="Use it with detect, artifacts run or edits stress.",
            )
        if models.roles or models.fallback is not None:
            other = option("roles" if models.roles else "fallback")
            raise UsageError(f"{other} is not for a detector", remedy=f"Remove {other}.")
        detector = AskedDetector.of(models.model, parameters.part(DetectorParameters))
    return {
        "folder": parameters.folder,
        "paths": image_paths(images),
        "models": models,
        "options": parameters.options,
        "policy": parameters.policy,
        "root": None if parameters.root is None else Path(parameters.root),
        "prompts": read_prompts(protocol, parameters.prompts)
        if detector is None
        else make_set(UNASKED.rstrip("@"), {}),
        "table": parameters.part(TableParameters),
        "detector": detector,
    }


def image_paths(images: Images) -> tuple[Path, ...]:
    """One path or several, as paths. Raises UsageError for anything else, and where there are none."""
    if isinstance(images, str | PathLike):
        images = (images,)
    refuse_table(images, "The images of a run must be paths of files and folders")
    paths = tuple(images) if isinstance(images, Iterable) and not isinstance(images, bytes) else (images,)
    for path in paths:
        if not isinstance(path, str | PathLike):
            raise UsageError(
                f"The images of a run must be paths of files and folders, not {type(path).__name__}",
                remedy="Save it first, or give it to annotate_image.",
            )
        if not str(path) or "\0" in str(path):
            raise UsageError(
                f"No file or folder is called {str(path)!r}", remedy="Write `.` for the one here."
            )
    if not paths:
        raise UsageError("There are no images", remedy="Give one path at least.")
    return tuple(Path(path) for path in paths)
