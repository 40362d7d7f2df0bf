"""A run as an object: its records, read as they are wanted, its summary, its page, its data frame."""

from __future__ import annotations

import os
import weakref
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Literal, TypeVar, get_args, overload

import orjson
from pydantic import BaseModel

from uncanny.errors import RecordError, StorageError, UsageError
from uncanny.eval.common.frames import Cells, Row, table_cells, to_data_set, to_frame
from uncanny.eval.common.json_fields import json_of
from uncanny.eval.common.tables.table import MISSING, Table, TableResult
from uncanny.parameters import path_of
from uncanny.records.annotation_table import LINES, restore_lines
from uncanny.records.jsonl import open_to_read, parse_line
from uncanny.records.run_folder import RunFolder
from uncanny.records.run_manifest import UNITS, RunManifest, Totals
from uncanny.records.shared_log import file_state
from uncanny.runs.progress import read_run
from uncanny.schema import Annotation
from uncanny.wording import cost, count, harmless, shown

if TYPE_CHECKING:
    import datasets
    from pandas import DataFrame

    from uncanny.runs.run import RunEnd

R = TypeVar("R", bound=BaseModel)
# What a row of a run over images is about.
RowsOf = Literal["findings", "images"]
ROWS_OF: Final[tuple[RowsOf, ...]] = get_args(RowsOf)
# What totals count of records beside their statuses.
_OF_RECORDS = ("duplicates", "anomalies", "regions", "objects", "without_findings")


class Records(Sequence[R]):
    """The records that are in a file now, in its order, each read and validated when it is asked for.

    Of several lines with the same `key` fields the last stands. Raises RecordError for an invalid line when
    it is read. Memory grows by a few numbers a record. The file stays open, so that these stay the records,
    whatever a later session of the run puts in its place."""

    def __init__(
        self, path: Path, record_type: type[R], key: tuple[str, ...], run: Path | None = None
    ) -> None:
        self._path, self._type, self._key, self._run = path, record_type, key, run
        places: dict[tuple[Any, ...], tuple[int, int, int]] = {}
        self._state: tuple[int, int, int] | None = None
        reader = open_to_read(path)
        if reader is not None:
            self._file = os.dup(reader.fileno())
            self._state = file_state(self._file)
            weakref.finalize(self, os.close, self._file)
            with reader:
                offset = 0
                for number, line in enumerate(reader, start=1):
                    if line.endswith(b"\n") and line.strip():
                        places[_key(line, key, number)] = (offset, len(line), number)
                    offset += len(line)
        self._places = list(places.values())

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> R: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[R]: ...
    def __getitem__(self, index: int | slice) -> R | Sequence[R]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        offset, length, number = self._places[index]
        record = parse_line(os.pread(self._file, length, offset), self._type, self._path, number)
        if isinstance(record, Annotation):
            record.set_place(run=self._run)
        return record

    def __iter__(self) -> Iterator[R]:
        return (self[number] for number in range(len(self)))

    def are_of(self, path: Path) -> bool:
        """Whether `path` is the file that was read, unchanged since."""
        return path == self._path and file_state(path) == self._state

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (
            self._path,
            self._type,
            self._key,
            self._run,
        )  # another process opens the file anew

    def __repr__(self) -> str:
        return f"<{len(self):,} records of {harmless(str(self._path))}>"


def _key(line: bytes, key: tuple[str, ...], number: int) -> tuple[Any, ...]:
    try:
        content = orjson.loads(line)
        values = tuple(content[name] for name in key)
        hash(values)
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return (*key, number)  # an invalid line is told of when it is read
    return values


@dataclass(frozen=True, slots=True)
class RunSummary:
    """How far a run is and what it took, over all its sessions; None is what nobody measured.

    `state` is `finished`, `interrupted`, `budget`, `stopped` or, in another process or after a kill,
    `running`. `error` is why the last session ended early, `warnings` are what it had to say. `statuses`
    counts records by status, `pending` inputs have none yet. Costs are US dollars.

    `lost` says that the run folder was deleted or moved while the run went on, so that nothing can be read
    from it; `unwritten` names files in it that do not show the end of the run, as on a full disk."""

    state: str
    model: str | None
    statuses: Mapping[str, int]
    pending: int | None
    calls: int | None
    input_tokens: int | None
    cached_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    seconds: float | None
    warnings: tuple[str, ...] = ()
    error: str | None = None
    unwritten: tuple[Path, ...] = ()
    lost: bool = False


class RunResult(TableResult, Generic[R]):
    """A run in its folder. `end` tells how this process ended it, None where the run was only opened.

    With an `end`, state and counts are those of it, whatever is or is not in the folder by now; records are
    read from the folder.

    It stands for its folder wherever a path is taken, so that a run is scored or audited as it is.

    `task` is what `run.json` calls runs of this kind, None where only the record file tells. `columns` are
    those of a data frame, by name, and what is in them: `text`, a `whole` or a `real` number, a `flag`, or a
    list of `texts`, `wholes` or `reals`.
    """

    task: ClassVar[str | None] = None
    record_file: str
    record_type: type[R]
    record_key: tuple[str, ...]
    statuses: tuple[str, ...]
    columns: ClassVar[Cells]

    def __init__(self, path: str | Path, end: RunEnd | None = None) -> None:
        self.path = path_of("run", path)
        self.end = end
        self._read: Records[R] | None = None
        self._statuses: tuple[Records[R], Counter[str]] | None = None
        if end is None:
            self._check_kind()

    def _check_kind(self) -> None:
        """Raises UsageError where the record file, or `run.json`, says that it is of another kind."""
        has_records = self._lines().is_file()
        try:
            manifest = RunFolder(self.path).read_manifest()
        except UsageError:
            if has_records:
                return
            raise
        if not has_records:
            other = None if manifest is None else manifest.record_file
            if other not in (None, self.record_file):
                raise UsageError(
                    f"{self.path} has no {self.record_file}, but {other}: it is a run of another kind",
                    remedy="Pass the folder of a run of this kind.",
                )
            if manifest is None:
                raise UsageError(
                    f"{self.path} has no {self.record_file}", remedy="Pass the folder of a run of this kind."
                )
        task = None if manifest is None else manifest.task
        if self.task is not None and task not in (None, self.task):
            raise UsageError(
                f"{self.path} is a run of {task}, not of {self.task}",
                remedy=f"Open it as a run of {task}, or pass another folder.",
            )

    def _lines(self) -> Path:
        """The file of records; where the run cannot be written and has its table alone, a copy of that."""
        return restore_lines(self.path) if self.record_file == LINES else self.path / self.record_file

    def __fspath__(self) -> str:
        return str(self.path)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_read": None, "_statuses": None}  # whoever gets it reads the file anew

    @property
    def records(self) -> Records[R]:
        """The records that are there now. Raises StorageError where the folder was lost during the run.

        The file is indexed again only after it has changed, so `run.records[i]` in a loop is cheap.
        """
        self.check_not_lost()
        lines = self._lines()
        if self._read is None or not self._read.are_of(lines):
            self._read = Records(lines, self.record_type, self.record_key, self.path)
        return self._read

    def check_not_lost(self) -> None:
        """Raises StorageError where the run folder was deleted or moved away while the run went on."""
        if self.end is not None and self.end.lost:
            raise StorageError(
                f"{self.path} was deleted or moved during the run",
                remedy="Move it back and repeat the call to resume. Without it, the same call starts over.",
            )

    @property
    def manifest(self) -> RunManifest:
        """What stands in `run.json`, or was to stand there at the `end`. Raises UsageError.

        That file is written every few seconds. Of a run that goes on in another process, or was killed, calls
        and costs are those of all calls that came back, and records are counted.
        """
        if self.end is not None:
            return RunManifest.model_validate(self.end.manifest)
        manifest = read_run(RunFolder(self.path)) or RunManifest()
        if manifest.state != "running" or manifest.totals is None:
            return manifest
        return manifest.model_copy(update={"totals": self._counted(manifest.totals)})

    def _counted(self, totals: Totals) -> Totals:
        """`totals` with the records that are there now; what is not known of them is None."""
        records = self.records
        if self._statuses is None or self._statuses[0] is not records:
            try:
                counts = Counter(self.status(record) for record in records)
            except RecordError:  # who reads the records is told
                return totals
            self._statuses = records, counts
        counts = self._statuses[1]
        known = totals.model_dump(exclude_unset=True)
        if all(known.get(name) == counts[name] for name in self.statuses):
            return totals
        inputs = next((known[unit] for unit in UNITS if known.get(unit) is not None), None)
        pending = None if inputs is None else max(0, inputs - counts.total())
        stale = {name: None for name in _OF_RECORDS if name in known}
        return Totals.model_validate(
            known | stale | {name: counts[name] for name in self.statuses} | {"pending": pending}
        )

    def status(self, record: R) -> str:
        """The one of `statuses` that a record counts as: its `status`, or else its `outcome`."""
        fields: Any = record
        return str(fields.status if hasattr(record, "status") else fields.outcome)

    @property
    def summary(self) -> RunSummary:
        manifest, end = self.manifest, self.end
        totals = manifest.totals or Totals()
        counts = totals.model_dump()
        return RunSummary(
            state=manifest.state or "unknown",
            model=manifest.model,
            statuses={name: counts[name] for name in self.statuses if isinstance(counts.get(name), int)},
            pending=totals.pending,
            calls=totals.calls,
            input_tokens=totals.input_tokens,
            cached_tokens=totals.cached_tokens,
            output_tokens=totals.output_tokens,
            cost_usd=totals.cost_usd,
            seconds=totals.seconds,
            warnings=tuple(end.progress.warnings) if end else manifest.warnings,
            error=(str(end.error) if end.error else None) if end else manifest.error,
            unwritten=end.unwritten if end else (),
            lost=end is not None and end.lost,
        )

    def to_json(self) -> dict[str, Any]:
        """What the command prints with `--json`."""
        end, summary = self.end, self.summary
        content = self.manifest.written() if end is None else end.manifest
        return {
            **{"run": str(self.path), "state": content.get("state")},
            **self.files_json(),
            "totals": content.get("totals"),
            **self.found_json(),
            **json_of(summary, "warnings error"),
        }

    def files_json(self) -> dict[str, str | None]:
        """The record file under its name in JSON. A page that belongs to the scores is None."""
        return {"records": str(self.path / self.record_file)}

    def found_json(self) -> dict[str, Any]:
        """What a protocol counts, and the records that failed."""
        return {}

    def rows(self) -> Iterator[Row]:
        """The rows of `to_pandas` and `to_dataset`: one a record, unless a protocol says otherwise."""
        for record in self.records:
            yield {name: getattr(record, name) for name in self.columns} | table_cells(record)

    def to_pandas(self) -> DataFrame:
        """The rows as a data frame. Raises UsageError where pandas is not installed."""
        return to_frame(self.columns, self.rows())

    def to_dataset(self) -> datasets.Dataset:
        """The rows as a Hugging Face data set. Raises UsageError where `datasets` is not installed."""
        return to_data_set(self.columns, self.rows())

    def tables(self) -> tuple[Table, ...]:
        summary = self.summary
        row = (
            str(self.path),
            summary.state,
            *(str(summary.statuses.get(name, MISSING)) for name in self.statuses),
            count(summary.calls),
            count(summary.input_tokens),
            count(summary.output_tokens),
            cost(summary.cost_usd),
        )
        columns = ("Run", "State", *self.statuses, "Calls", "Tokens in", "Tokens out", "Cost")
        why = () if summary.error is None else (f"Ended early: {summary.error}",)
        return (Table(columns, (row,), notes=(*why, *summary.warnings)),)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {harmless(str(self.path))}: {harmless(self.summary.state)}>"


class ImagesRun(RunResult[R]):
    """A run over images: as rows it is its findings, or its images.

    `columns` are those of `rows_of`, which is what rows are about unless one asks for the others.
    """

    rows_of: ClassVar[RowsOf] = "findings"
    finding_columns: ClassVar[Cells]
    image_columns: ClassVar[Cells]

    def found_json(self) -> dict[str, Any]:
        failed = (record for record in self.records if self.status(record) != "ok")
        failures = [json_of(record, "image status errors") for record in failed]
        return {"failures": failures, "skipped": dict(self.manifest.skipped_counts)}

    @abstractmethod
    def finding_rows(self) -> Iterator[Row]:
        """One a finding, numbered within its image by `finding` from 1; an image without any has one row,
        whose `finding` is None."""

    @abstractmethod
    def image_rows(self) -> Iterator[Row]:
        """One an image, with how many findings it has; None where it could not be examined."""

    def rows(self, of: RowsOf | None = None) -> Iterator[Row]:
        """The rows of `to_pandas` and `to_dataset`. Raises UsageError."""
        return self.finding_rows() if self._chosen(of) == "findings" else self.image_rows()

    def to_pandas(self, of: RowsOf | None = None) -> DataFrame:
        """The rows as a data frame: `of` "findings", or "images".

        Columns have a type also where a run has no rows. Those of the input's table or metadata file follow
        as `columns.NAME`. Boxes are lists of pixels, x0, y0, x1, y1. Raises UsageError where pandas is not
        installed.
        """
        return to_frame(self._cells(of), self.rows(of))

    def to_dataset(self, of: RowsOf | None = None) -> datasets.Dataset:
        """The same rows as a Hugging Face data set. Raises UsageError where `datasets` is not installed."""
        return to_data_set(self._cells(of), self.rows(of))

    def _cells(self, of: RowsOf | None) -> Cells:
        return self.finding_columns if self._chosen(of) == "findings" else self.image_columns

    def _chosen(self, of: object) -> RowsOf:
        for each in ROWS_OF:
            if each == (self.rows_of if of is None else of):
                return each
        raise UsageError(
            f"Rows can be findings or images, not {shown(of)}", remedy='Give "findings" or "images".'
        )
