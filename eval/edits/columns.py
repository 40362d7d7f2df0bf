"""Results with a record per edit: their columns, and the files that hold them.

Files are JSON Lines, Parquet and CSV.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from uncanny.errors import UsageError
from uncanny.eval.common.tables.table import TableResult, data_frame
from uncanny.eval.edits.data import EditFiles
from uncanny.extras import pyarrow
from uncanny.files import dump_json
from uncanny.parameters import path_of
from uncanny.records.jsonl import write_named
from uncanny.wording import display_path

if TYPE_CHECKING:
    from pandas import DataFrame

# The contract's columns, in order.
FIGURES: Final = (
    *("mask_ratio", "ssim", "mse", "post_edit_ratio", "largest_component_ratio"),
    *("largest_centroid_distance", "components", "clusters", "shape"),
    *("lpips", "dreamsim", "text_similarity"),
)
PRESERVED: Final = tuple(f"preserved_{name}" for name in ("psnr", "mse", "mae", "ssim", "lpips"))
# Metrics that have bins: by percentiles, and those of the scene by standard deviations.
_WITHOUT_BINS: Final = ("largest_centroid_distance", "components", "clusters", "shape")
BINNED: Final = tuple(name for name in FIGURES if name not in _WITHOUT_BINS)
SCENE: Final = ("scene_diversity", "scene_complexity")
COLUMNS: Final = ("id", *FIGURES, "bins")
SUFFIXES: Final = (".jsonl", ".parquet", ".csv")


class Identified(Protocol):
    """An edit with its id."""

    @property
    def id(self) -> str: ...


E = TypeVar("E", bound=Identified)
K = TypeVar("K", bound=str)


class EditsResult(TableResult, Generic[E]):
    """A result with a record per edit of a set, in the order given; `result[id]` is one of the edits."""

    __slots__ = ()
    edits: tuple[E, ...]

    def __len__(self) -> int:
        return len(self.edits)

    def __iter__(self) -> Iterator[E]:
        return iter(self.edits)

    def __getitem__(self, edit: str) -> E:
        """The edit of this id."""
        return next(each for each in self.edits if each.id == edit)

    @abstractmethod
    def records(self, folder: Path | None = None) -> Iterator[dict[str, Any]]:
        """A record an edit, as files have it; paths start from `folder`, and are absolute without one."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The keys of all records: those of the contract first, in order."""
        return tuple(dict.fromkeys(key for record in self.records() for key in record))

    def rows(self) -> Iterator[dict[str, Any]]:
        """`records`, each with all `columns`, None where it has none."""
        columns = self.columns
        return ({column: record.get(column) for column in columns} for record in self.records())

    def to_pandas(self) -> DataFrame:
        """A row an edit. Raises UsageError where pandas is not installed (the extra `frames`)."""
        return data_frame(self.columns, self.records())

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write a line or row an edit, as the suffix of `path` says, and return the path.

        `.jsonl`, `.parquet` (needs the extra `parquet`) or `.csv`, where lists and mappings are JSON in their
        cell. Paths of images start at the folder of the file. The file appears whole or not at all. Raises
        UsageError for another suffix, OSError where it cannot be written.
        """
        target = path_of("path", path)
        check_suffix(target)
        write_rows(list(self.records(target.parent)), target)
        return target


def counted_reasons(unmeasured: Iterable[Mapping[K, str]]) -> dict[K, dict[str, int]]:
    """Why something was not measured, by its name, with how often, most often first; an entry an edit."""
    reasons: dict[K, Counter[str]] = {}
    for each in unmeasured:
        for name, why in each.items():
            reasons.setdefault(name, Counter())[why] += 1
    return {name: dict(counts.most_common()) for name, counts in reasons.items()}


def reason_words(reasons: Mapping[str, int]) -> str:
    """The two most frequent reasons in words."""
    most = "; ".join(f"{why} ({count:,})" for why, count in list(reasons.items())[:2])
    return f"{most} and {len(reasons) - 2} other reasons" if len(reasons) > 2 else most


def failures(lines: Sequence[str], most: int = 20) -> Iterator[str]:
    """A line an edit that failed, the first `most` of them."""
    yield from lines[:most]
    if len(lines) > most:
        yield f"and {len(lines) - most:,} more that failed."


def check_suffix(path: Path) -> None:
    """Raises UsageError for a file whose suffix says no format that is written."""
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"{path} must end in one of {', '.join(SUFFIXES)}")


def write_rows(records: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write records as the suffix says. Raises UsageError without pyarrow, OSError."""
    if path.suffix.lower() == ".jsonl":
        write_named(path, (dump_json(record) + b"\n" for record in records))
        return
    columns = list(dict.fromkeys(key for record in records for key in record))
    if path.suffix.lower() == ".csv":
        write_named(path, _csv_lines(records, columns))
        return
    arrow, parquet = pyarrow("pyarrow"), pyarrow("pyarrow.parquet")
    table = arrow.table({column: _arrow_column(arrow, column, records) for column in columns})
    buffer = io.BytesIO()
    parquet.write_table(table, buffer)
    write_named(path, [buffer.getvalue()])


def _arrow_column(arrow: Any, column: str, records: Sequence[Mapping[str, Any]]) -> Any:
    """Typed by our own columns, so that one without a value keeps its type; else as the values are.

    What pairs carry along may be of mixed kinds: it is then JSON, as in CSV.
    """
    values = [record.get(column) for record in records]
    kind = _arrow_type(arrow, column)
    if kind is not None:
        return arrow.array(values, type=kind)
    try:
        return arrow.array(values)
    except (arrow.ArrowException, OverflowError):
        return arrow.array([None if value is None else _cell(value, always=True) for value in values])


def _arrow_type(arrow: Any, column: str) -> Any:
    text = arrow.string()
    if column == "bins":
        return arrow.struct([(name, text) for name in (*BINNED, *SCENE)])
    if column in ("unmeasured", "unmeasured_gates"):
        return arrow.map_(text, text)
    if column in ("notes", "failed_gates"):
        return arrow.list_(text)
    if column in ("id", "shape", "status", "problem"):
        return text
    if column in ("components", "clusters", "width", "height"):
        return arrow.int64()
    if column in ("all_black", "passed"):
        return arrow.bool_()
    return arrow.float64() if column in (*FIGURES, *PRESERVED, *SCENE) else None


def _csv_lines(records: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Iterator[bytes]:
    line = io.StringIO()
    writer = csv.writer(line, lineterminator="\n")
    for row in (columns, *([_cell(record.get(column)) for column in columns] for record in records)):
        writer.writerow(row)
        yield line.getvalue().encode("utf-8", "replace")
        line.seek(0)
        line.truncate()


def _cell(value: object, *, always: bool = False) -> object:
    if isinstance(value, dict | list | tuple) or (always and not isinstance(value, str)):
        return json.dumps(value, ensure_ascii=False)
    return value


def places_of(files: EditFiles, folder: Path | None) -> dict[str, Any]:
    """Where the files are, as a record in `folder` says it."""

    def named(path: Path) -> str:
        place = os.path.abspath(path)  # noqa: PTH100  links stay links
        if folder is not None:
            with contextlib.suppress(ValueError):  # on another drive it stays absolute
                place = os.path.relpath(place, folder)
        return display_path(Path(place))

    masks = [named(mask) if isinstance(mask, Path) else dict(mask) for mask in files.masks]
    places: dict[str, Any] = {"original": named(files.original), "edited": named(files.edited)}
    if masks:
        places["mask"] = masks[0] if len(masks) == 1 else masks
    return places
