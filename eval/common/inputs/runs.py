"""Annotations as reports and audits read them: a run folder with its `run.json`, or a file of records."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn

import orjson

from uncanny.errors import RecordError, UsageError
from uncanny.eval.common.inputs.problems import first_line
from uncanny.eval.common.inputs.table_records import open_lines, record_tables
from uncanny.files import open_file
from uncanny.records.annotation_table import LINES, TABLE
from uncanny.records.jsonl import is_json, line_copy, parse_line
from uncanny.records.record_file import image_of
from uncanny.records.run_folder import RunFolder
from uncanny.records.run_manifest import RunManifest
from uncanny.runs.progress import read_run
from uncanny.schema import Annotation
from uncanny.wording import either, option

# The key of a record whose image people annotate from nothing: the run that the image is from.
IMAGES_OF: Final = "images_of"


@dataclass(frozen=True, slots=True)
class ReadRun:
    """A run folder and what its manifest says, or a file of annotations, which has no manifest.

    `written` says whether there was a `run.json` at all, `file` where the annotations are.
    """

    folder: RunFolder
    info: RunManifest
    written: bool
    file: Path

    @property
    def is_run(self) -> bool:
        return self.file == self.folder.annotations

    @property
    def calls(self) -> Path | None:
        """Where the calls are recorded; of a file alone nowhere."""
        return self.folder.calls if self.is_run else None

    def picture(self, image: str) -> Path:
        """The file behind a record's `image`: from the root, which is itself from the run folder."""
        return self.folder.path / (self.info.root or "") / image

    def digest(self, record: Annotation) -> str | None:
        """What the image file must have to be shown: "" where it may not, None where that is not known.

        A run records it of every image it has read. Its folder may come from somebody else: without a digest
        a record could bring any file of this machine into a page.
        """
        return record.sha256 or ("" if self.is_run else None)


def open_run(path: Path) -> ReadRun:
    """Read what `run.json` says.

    Raises `UsageError` when neither `run.json` nor `annotations.jsonl` is there, or `run.json` is not what a
    run writes.
    """
    folder = RunFolder(path)
    manifest = read_run(folder)
    if manifest is None and not folder.annotations.is_file():
        raise UsageError(
            f"{path} is not a run folder: it has neither run.json nor annotations.jsonl",
            remedy="Pass the folder that the annotations went to.",
        )
    return ReadRun(folder, manifest or RunManifest(), manifest is not None, folder.annotations)


def open_annotations(path: Path) -> ReadRun:
    """A run folder, or a file of annotations; a run's own `annotations.jsonl`, or its table, is the run.

    Raises `UsageError` as `open_run` does.
    """
    if not path.is_file():
        return open_run(path)
    if path.name in (LINES, TABLE) and (path.parent / "run.json").is_file():
        return open_run(path.parent)
    return ReadRun(RunFolder(path.parent), RunManifest(), False, _as_lines(path))


def _as_lines(path: Path) -> Path:
    """The file; of a table a copy as JSON Lines, in which lines are looked up. Raises UsageError."""
    if not record_tables(path):
        return path

    def write(file: BinaryIO) -> None:
        with open_lines(path, needed=frozenset(Annotation.model_fields)) as lines:
            shutil.copyfileobj(lines, file)

    return line_copy(path, write)


def images_of(file: Path) -> str | None:
    """The run whose images people annotate from nothing, from the folder of `file`; None for findings.

    Nobody has found anything in the records of such a run: what people find is in its reviews.
    """
    with suppress(OSError, orjson.JSONDecodeError), open_lines(file) as lines:
        first = orjson.loads(next(lines, b""))
        return str(first[IMAGES_OF]) if isinstance(first, dict) and IMAGES_OF in first else None
    return None


def check_findings(file: Path) -> None:
    """Raises UsageError where findings are not in `file`, but in the reviews of its run."""
    if images_of(file) is not None:
        _refuse_people(str(file.parent), str(file.parent))


def check_found(place: str, records: Iterable[Mapping[str, Any]]) -> None:
    """The same of records in memory, as mappings, that are called `place`.

    Somebody may have put into them what people found: then those without findings are images without faults.
    """
    blank = [not record.get("anomalies") for record in records if IMAGES_OF in record]
    if blank and all(blank):
        _refuse_people(place, "RUN")


def _refuse_people(place: str, run: str) -> NoReturn:
    export = either(
        f"uncanny.export({run!r}, to='jsonl', out='people.jsonl')",
        terminal=f"uncanny export {run} {option('to', 'jsonl')} {option('out', 'people.jsonl')}",
    )
    raise UsageError(
        f"{place} has no findings of a model: what people found is in the reviews of the run",
        remedy=f"Export that with `{export}`, and use the file.",
    )


def page_of_run(path: Path) -> Path:
    """Where the page of a run folder or a file of annotations goes unless told otherwise.

    Raises UsageError for a file that would be written over.
    """
    if not path.is_file():
        return RunFolder(path).report
    read = open_annotations(path)
    target = read.folder.report if read.is_run else path.with_suffix(".html")
    if target == path:
        raise UsageError(f"{path} is an input and would be overwritten", remedy="Pass a file for the page.")
    return target


def stream_annotations(file: Path, on_broken: Callable[[int], object] | None = None) -> Iterator[Annotation]:
    """Yield the records of `file`, none when it does not exist; of several of one image the last.

    A last line without its newline that cannot be read is one being written, and is left out. So is a line
    that is not JSON where `on_broken` is told its number; any other invalid line raises `RecordError`, and
    a JSON list `UsageError`.
    """
    if not file.is_file():
        return
    with open_file(file) as lines:
        last = last_lines(enumerate(lines, 1))
    with open_file(file) as lines:
        for number, line in enumerate(lines, 1):
            if number == 1 and on_broken is None:
                line = first_line(line, file)
            if not line.strip():
                continue
            try:
                record = parse_line(line, Annotation, file, number)
            except RecordError:
                if not line.endswith(b"\n"):
                    return
                if on_broken is None or is_json(line):
                    raise
                on_broken(number)
                continue
            if last.get(record.image, number) == number:
                yield record


def last_lines(lines: Iterable[tuple[int, bytes]]) -> dict[str, int]:
    """By image the number of its last line: while a run goes on, one asked again has a second line."""
    return {image: number for number, line in lines if (image := image_of(line)) is not None}
