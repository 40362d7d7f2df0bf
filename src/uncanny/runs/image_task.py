"""Runs over images: read, sent once however many copies there are, and resumed by what the files hold."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeVar, cast

from pydantic import BaseModel

from uncanny.client.calls import usage
from uncanny.errors import ImageError, UsageError
from uncanny.extras import pyarrow
from uncanny.images import PreparedImage, RecordedFile, changed_files, prepare
from uncanny.models.base import SentImage, encode_image
from uncanny.records.annotation_table import RecordFormat, is_own_table, write_table
from uncanny.records.record_file import RecordFile
from uncanny.records.run_manifest import RunSettings
from uncanny.runs.config import RunOptions
from uncanny.runs.inputs import ImageFile, Inputs, find_inputs, note_skipped
from uncanny.runs.progress import Progress
from uncanny.runs.task import Task
from uncanny.schema import (
    STATUSES,
    Annotation,
    Pixels,
    SentPixels,
    Status,
    StepError,
    names_nothing,
)

if TYPE_CHECKING:
    from uncanny.client.calls import CallRecord
    from uncanny.runs.engine import Engine

A = TypeVar("A", bound=BaseModel)
MOST_IMAGES_AT_ONCE = 64


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
    when the run began; `image_column` is where tables have their pictures. With the `format` `parquet`, and
    where a run has one already, a table is made of the records at the end. `found` is the field of a record
    whose entries are counted as found."""

    unit = "images"
    statuses = STATUSES
    record_file = "annotations.jsonl"
    found: ClassVar[str] = "anomalies"

    paths: Sequence[Path]
    image_column: str | None = None
    format: RecordFormat = "jsonl"
    files: tuple[ImageFile, ...] = field(init=False, repr=False, default=())
    _records: RecordFile[A] = field(init=False, repr=False)
    _by_digest: dict[str, str] = field(init=False, repr=False, default_factory=dict)
    _running: dict[str, asyncio.Event] = field(init=False, repr=False, default_factory=dict)
    _examined: dict[str, PreparedImage] = field(init=False, repr=False, default_factory=dict)

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
            image_column=self.image_column,
        )

    @property
    def names(self) -> frozenset[str]:
        """What records call the `files`."""
        return frozenset(file.image for file in self.files)

    def settings(self) -> RunSettings:
        settings = super().settings()
        system = {"system": self.system_text()}
        return settings.model_copy(update={"prompts": settings.prompts.model_copy(update=system)})

    def system_text(self) -> str:
        """The system text of all calls."""
        return self.prompts["system"].fill()

    def key(self, record: A) -> str:
        return about(record).image

    def note(self, progress: Progress, record: A) -> None:
        _count(progress, _counted(record, self.found))

    def after_records(self) -> Sequence[str]:
        lines, table = self.folder.annotations, self.folder.table
        is_wanted = self.format == "parquet" or table.is_file()
        if not is_wanted or not issubclass(self.record_type, Annotation) or not lines.is_file():
            return ()
        try:
            if table.is_file() and not is_own_table(table):
                elsewhere = f"{table} is no table of this run, and was left as it is"
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
        progress.total = len(inputs.files)
        note_skipped(progress, inputs.skipped)
        standing = load_standing(inputs.files, records, self.options, progress, self.found)
        self._records, self._by_digest = records, standing.by_digest
        return standing.pending

    async def process(self, item: ImageFile, engine: Engine, calls: list[CallRecord]) -> Sequence[A]:
        try:
            image = await asyncio.to_thread(prepare, item.path, self.policy, engine.limits)
        except ImageError as error:
            why = StepError(agent="image", step=0, kind=error.kind, message=str(error))
            return (self.record(item, None, "unreadable", errors=(why,), usage=usage([])),)
        digest = image.source_sha256
        while (other := self._running.get(digest)) is not None:
            await other.wait()
        if (first := self._by_digest.get(digest)) is not None:
            return (self._duplicate(item, image, first),)
        finished = self._running[digest] = asyncio.Event()
        self._examined[item.image] = image
        try:
            record = await self.examine(item, image, engine, calls)
            del self._examined[item.image]
            self._by_digest[digest] = item.image
        finally:
            del self._running[digest]
            finished.set()
        return (record,)

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
        )

    def _duplicate(self, file: ImageFile, image: PreparedImage, first: str) -> A:
        record = self._records.get(first)
        # Where `first` is a duplicate itself, both name the image that was asked about.
        extra = {"duplicate_of": first, **(record.model_extra or {})}
        return type(record).model_validate(
            record.model_dump(exclude=set(record.model_extra or ()))
            | extra
            | {"image": file.image, "usage": usage([]), "file_stamp": image.stamp}
        )


def about(record: BaseModel) -> ImageRecord:
    """A record of a run over images, as what is known of all of them."""
    return cast("ImageRecord", record)


def other_models(calls: Sequence[CallRecord], model: str) -> dict[str, Any]:
    """Calls by model, for a record, where not all of them went to `model`; else nothing."""
    models = Counter(call.model for call in calls)
    return {"models": dict(sorted(models.items()))} if models.keys() - {model} else {}


def sent_image(image: PreparedImage) -> SentImage:
    """Encoded once, for all requests about it."""
    return encode_image(
        sha256=image.sent_sha256,
        media_type=image.media_type,
        width=image.sent_width,
        height=image.sent_height,
        data=image.sent,
    )


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


@dataclass(frozen=True, slots=True)
class Standing:
    """`pending` files are to be worked on; `by_digest` names an image that has a record for those bytes."""

    pending: list[ImageFile]
    by_digest: dict[str, str]


def load_standing(
    files: Sequence[ImageFile],
    records: RecordFile[A],
    options: RunOptions,
    progress: Progress,
    found: str = "anomalies",
) -> Standing:
    """Pending are files without a record, whose record is not `ok` (with `retry_failed`), or that changed.

    Loads `records` and counts into `progress` what stands, with the entries of the field `found`. A file
    counts as changed when it holds other bytes than those the record is about, however old it looks.
    """
    wanted = {file.image: file for file in files}
    standing: dict[str, _Counted] = {}
    read: dict[str, RecordedFile] = {}
    for line in records.load():
        record = about(line)
        file = wanted.get(record.image)
        if file is None:
            continue
        standing.pop(record.image, None)
        read.pop(record.image, None)
        if record.status == "ok" or not options.retry_failed:
            standing[record.image] = _counted(line, found)
            if record.sha256 is not None:
                read[record.image] = RecordedFile(file.path, record.sha256, record.file_stamp)
    changed = changed_files(read.values())
    for image, recorded in read.items():
        if recorded in changed:
            del standing[image]
    for counted in standing.values():
        _count(progress, counted)
    progress.resumed = progress.done
    by_digest = {counted.sha256: image for image, counted in standing.items() if counted.sha256}
    return Standing([file for file in files if file.image not in standing], by_digest)


def still_pending(task: ImageTask[A], files: Sequence[ImageFile]) -> list[ImageFile]:
    """What of `files` is left to do, for a forecast: nothing is changed. Raises UsageError."""
    task.folder.read_manifest()  # a run that this version cannot go on with is refused
    return load_standing(files, task.records(), task.options, Progress(), task.found).pending


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


def _counted(record: BaseModel, found: str) -> _Counted:
    of_image = about(record)
    annotation = record if isinstance(record, Annotation) else None
    extra = of_image.model_extra or {}
    judged = annotation is not None and annotation.status in ("ok", "partial")
    return _Counted(
        of_image.status,
        of_image.sha256,
        len(getattr(record, found) or ()),
        annotation is not None and names_nothing(annotation),
        len(annotation.objects) if annotation is not None and judged else 0,
        annotation is not None and judged and not annotation.anomalies and not extra.get("candidates"),
        "duplicate_of" in extra,
        of_image.pixels.changes if of_image.pixels else (),
    )


def _count(progress: Progress, counted: _Counted) -> None:
    progress.statuses[counted.status] += 1
    progress.items_found += counted.found
    progress.without_objects += counted.without_objects
    progress.objects += counted.objects
    progress.without_findings += counted.without_findings
    progress.duplicates += counted.duplicate
    for change in counted.changes:
        progress.pixel_changes[change.partition(":")[0]] += 1
