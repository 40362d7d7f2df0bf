"""What of a run is still to be done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from uncanny.images import RecordedFile, changed_files
from uncanny.records.record_file import RecordFile
from uncanny.records.run_folder import RunFolder
from uncanny.runs.inputs import ImageFile
from uncanny.runs.options import RunOptions
from uncanny.runs.progress import Progress
from uncanny.schema import Annotation

A = TypeVar("A", bound=Annotation)


@dataclass(frozen=True, slots=True)
class Standing:
    """`pending` files are to be worked on; `by_digest` names an image that has a record for those bytes."""

    pending: list[ImageFile]
    by_digest: dict[str, str]


def take_up(
    files: Sequence[ImageFile], records: RecordFile[A], options: RunOptions, progress: Progress
) -> Standing:
    """Pending are files without a record, whose record is not `ok` (with `retry_failed`), or that changed.

    Loads `records` and counts into `progress` what stands. A file counts as changed when it holds other
    bytes than those the record is about, however old it looks.
    """
    wanted = {file.image: file for file in files}
    standing: dict[str, _Tally] = {}
    read: dict[str, RecordedFile] = {}
    for record in records.load():
        file = wanted.get(record.image)
        if file is None:
            continue
        standing.pop(record.image, None)
        read.pop(record.image, None)
        if record.status == "ok" or not options.retry_failed:
            standing[record.image] = _tally(record)
            if record.sha256 is not None:
                read[record.image] = RecordedFile(file.path, record.sha256, record.file_stamp)
    changed = changed_files(read.values())
    for image, each in read.items():
        if each in changed:
            del standing[image]
    for tally in standing.values():
        _count(progress, tally)
    progress.resumed = progress.done
    by_digest = {tally.sha256: image for image, tally in standing.items() if tally.sha256}
    return Standing([file for file in files if file.image not in standing], by_digest)


def still_pending(
    folder: RunFolder, files: Sequence[ImageFile], options: RunOptions, model: type[A]
) -> list[ImageFile]:
    """What of `files` is left to do, for a forecast: nothing is changed. Raises UsageError."""
    folder.read_manifest()  # a run that this version cannot go on with is refused
    records = RecordFile(folder.annotations, model, lambda record: record.image)
    return take_up(files, records, options, Progress()).pending


class _Tally(NamedTuple):
    status: str
    sha256: str | None
    anomalies: int
    duplicate: bool
    changes: tuple[str, ...]


def _tally(record: Annotation) -> _Tally:
    return _Tally(
        record.status,
        record.sha256,
        len(record.anomalies),
        bool(record.model_extra and "duplicate_of" in record.model_extra),
        record.pixels.changes if record.pixels else (),
    )


def _count(progress: Progress, tally: _Tally) -> None:
    progress.statuses[tally.status] += 1
    progress.items_found += tally.anomalies
    progress.duplicates += tally.duplicate
    for change in tally.changes:
        progress.pixel_changes[change.partition(":")[0]] += 1


def note_record(progress: Progress, record: Annotation) -> None:
    """Count one finished record."""
    _count(progress, _tally(record))
