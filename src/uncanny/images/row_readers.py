"""Parquet and Arrow files as rows with pictures, read a few rows at a time and never unpacked to disk.

`_Parquet` goes through a row group from front to back, as a run does, `_Arrow` maps the file. The paths that
lead to rows are in `row_files`.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from functools import cached_property
from io import BufferedReader
from itertools import accumulate
from pathlib import Path
from threading import Lock, RLock
from typing import Any, NamedTuple

from uncanny.errors import ImageError, UsageError
from uncanny.extras import pyarrow
from uncanny.files import check_status
from uncanny.files.beneath import OutsideError, open_allowed, place_of
from uncanny.images.row_cells import Column, RowCells, class_names, features, is_single, is_text, kept
from uncanny.images.row_names import RowNames
from uncanny.wording import option, short_path

_BUFFER = 2**20  # bytes read at once; without it all of a row group's column would be
_BATCH_BYTES = 4 * 2**20
_MOST_ROWS_AT_ONCE, _MOST_CELLS_AT_ONCE = 64, 10_000
# No value is longer than what is stored of it, but for those that rows share.
_SIMPLE_ENCODINGS = frozenset({"PLAIN", "RLE", "BIT_PACKED", "PLAIN_DICTIONARY", "RLE_DICTIONARY"})
# Rows passed over on the way to another, which other workers are about to ask for.
_KEPT_BYTES, _MOST_KEPT = 64 * 2**20, 256
_MOST_OPEN = 8
# Pictures are packed already: what a column is unpacked to by more than this was made to fill the memory.
_BOMB_RATIO, _BOMB_BYTES = 20, 128 * 2**20
MOST_BYTES = 2**30
"""Bytes of texts and numbers that are held of a table."""
# Rows of a table that are smaller than a byte each were made to fill the memory with their names.
_MOST_EMPTY_ROWS = 1_000_000
_MAGIC = b"ARROW1"


class Stored(NamedTuple):
    """A picture as a row holds it: its bytes, else where they are."""

    data: bytes | None
    path: str | None


@contextmanager
def opened(file: Path, within: Sequence[Path] | None = None) -> Iterator[RowFile]:
    """The file as rows, from those that are open already, if it is still the same. Raises UsageError.

    It lies `within` folders as in `open_allowed`.
    """
    with _damage_named(file), open_allowed(file, within) as source:
        status = os.fstat(source.fileno())
        check_status(file, status)
        stamp = (status.st_size, status.st_mtime_ns, status.st_ino)
        with _OPENING:
            known = _OPEN.get(file)
            if known is None or known[0] != stamp:
                made = _Arrow(file, source) if _is_arrow(file) else _Parquet(file, source)
                if made.length > max(_MOST_EMPTY_ROWS, status.st_size):
                    raise UsageError(
                        f"{short_path(file)} declares {made.length:,} rows in {status.st_size:,} bytes",
                        remedy="Remove the rows without a picture.",
                    )
                _OPEN[file] = known = (stamp, made)
            _OPEN.move_to_end(file)
            while len(_OPEN) > _MOST_OPEN:
                _OPEN.popitem(last=False)  # closed when the last reader lets go of it
        yield known[1]


_OPEN: OrderedDict[Path, tuple[tuple[int, int, int], RowFile]] = OrderedDict()

_OPENING = Lock()


class RowFile(ABC):
    """One file. `columns` hold bytes, by themselves or in structures, `others` something else.

    `marked` are the columns that `datasets` knows as pictures. `texts` among the others may say where
    pictures are.
    """

    def __init__(self, file: Path, schema: Any) -> None:
        self.file, self.schema = file, schema
        if twice := sorted({name for name in schema.names if schema.names.count(name) > 1}):
            raise UsageError(
                f"{short_path(file)} has several columns {twice[0]!r}", remedy="Remove one, or rename them."
            )
        self.columns = tuple(field.name for field in schema if _holds_bytes(field.type))
        self.others = tuple(field.name for field in schema if field.name not in self.columns)
        self.texts = tuple(name for name in self.others if is_text(schema.field(name).type))
        known = features(schema)
        self.marked = tuple(name for name in self.columns if known.get(name, {}).get("_type") == "Image")
        self._names: dict[str, RowNames] = {}
        self._lock = RLock()
        self._cells: dict[str, Column] = {}
        self._taken = 0  # bytes that cells take in memory

    @cached_property
    @abstractmethod
    def length(self) -> int:
        """How many rows there are."""

    @abstractmethod
    def read(self, column: str, row: int) -> Stored:
        """The picture of a row, by its number from 0."""

    @abstractmethod
    def batches(self, leaves: Sequence[str], rows: int) -> Iterator[Any]:
        """Record batches of at most about so many rows, of columns or, of structures, `column.field`."""

    def stored(self, column: str, row: int) -> Stored:
        """The picture of a row, by its number from 0, in one of `columns` or `texts`."""
        if column in self.texts:
            return Stored(None, self.cells({column}).columns[column][row])
        return self.read(column, row)

    def names_of(self, column: str) -> RowNames:
        """What rows are called behind the file's path, in their order."""
        with self._lock:
            if column not in self._names:
                own = () if column in self.texts else self._own_names(column)
                alone = self.columns == (column,)
                self._names[column] = RowNames("" if alone else f"{column}/", own, self.length)
            return self._names[column]

    def place(self, name: str) -> tuple[str, int] | None:
        """Column and number of the row of that name."""
        for column in self.columns:
            if len(self.columns) == 1 or name.startswith(f"{column}/"):
                row = self.names_of(column).row_of(name)
                if row is not None:
                    return column, row
        column, _, _ = name.rpartition("/")
        row = self.names_of(column).row_of(name) if column in self.texts else None
        return None if row is None else (column, row)

    def cells(self, wanted: Set[str] | None = None) -> RowCells:
        """The single values of all rows beside their pictures; lists and structures are left out.

        `wanted` are the columns to read, None reads all. Raises UsageError for columns that would fill the
        memory, ArrowException, OSError.
        """
        names = [each.name for each in self.schema if is_single(each.type)]
        with self._lock:
            try:
                chosen = {name: self._cell_column(name) for name in names if wanted is None or name in wanted}
            except UsageError:
                self._cells, self._taken = {}, 0  # others may be asked for
                raise
        return RowCells(chosen, class_names(self.schema))

    def _cell_column(self, name: str) -> Column:
        if name not in self._cells:
            try:
                self._cells[name] = Column(self._cell_arrays(name))
            except ImageError as error:
                raise UsageError(error.message, remedy=error.remedy) from error
            self._taken += self._cells[name].bytes
        return self._cells[name]

    @abstractmethod
    def _cell_arrays(self, leaf: str) -> Iterator[Any]:
        """The values of a column, or of a structure's `column.field`, as they are kept."""

    def absent(self, column: str) -> list[bool]:
        """Which rows have neither bytes nor a path in this column of pictures.

        Bytes are read where paths are missing; where they cannot be, no row is called absent.
        """
        names = self._own_names(column)
        if names and None not in names:
            return [False] * self.length
        compute, arrow = pyarrow("pyarrow.compute"), pyarrow("pyarrow")
        inside = pyarrow("pyarrow.types").is_struct(self.schema.field(column).type)
        missing: list[bool] = []
        try:
            self.check_sizes(column)
            for batch in self.batches([f"{column}.bytes" if inside else column], _MOST_ROWS_AT_ONCE):
                cells = compute.struct_field(batch.column(0), "bytes") if inside else batch.column(0)
                missing += compute.is_null(cells).to_pylist()
        except (arrow.ArrowException, OSError, ImageError):
            return [False] * self.length
        paths = names or [None] * self.length
        return [empty and not path for empty, path in zip(missing, paths, strict=True)]

    @abstractmethod
    def check_sizes(self, column: str) -> None:
        """Raises ImageError where a column would unpack to far more than its file holds."""

    def _own_names(self, column: str) -> Sequence[str | None]:
        kind = self.schema.field(column).type
        fields = {each.name: each.type for each in kind} if pyarrow("pyarrow.types").is_struct(kind) else {}
        if "path" not in fields or not is_text(fields["path"]):
            return ()
        try:
            names = list(Column(self._cell_arrays(f"{column}.path")))
        except (pyarrow("pyarrow").ArrowException, OSError, UnicodeDecodeError, UsageError):
            return ()  # each row then says what is wrong with it
        return names if len(names) == self.length else ()

    def _leaves(self, column: str) -> list[str]:
        """What of a column is read for a picture."""
        kind = self.schema.field(column).type
        if not pyarrow("pyarrow.types").is_struct(kind):
            return [column]
        return [f"{column}.{each.name}" for each in kind if each.name in ("bytes", "path")]


class _Parquet(RowFile):
    """Reads on from where it was; what it passes over is kept for a while."""

    def __init__(self, file: Path, source: BufferedReader) -> None:
        parquet = pyarrow("pyarrow.parquet")
        # Kept for `batches`: the name may stand for another file by then.
        self._source = Path(place_of(source)).open("rb")  # noqa: SIM115
        self._table = parquet.ParquetFile(place_of(source), buffer_size=_BUFFER, pre_buffer=False)
        super().__init__(file, self._table.schema_arrow)
        described = self._table.metadata
        sizes = [described.row_group(n).num_rows for n in range(described.num_row_groups)]
        self._starts = [*accumulate(sizes, initial=0)][:-1]
        self._ends = [start + size for start, size in zip(self._starts, sizes, strict=True)]
        self._cursors: dict[str, _Cursor] = {}
        self._most = max(_BOMB_BYTES, min(_BOMB_RATIO * os.fstat(source.fileno()).st_size, MOST_BYTES))

    @cached_property
    def length(self) -> int:
        return int(self._table.metadata.num_rows)

    def read(self, column: str, row: int) -> Stored:
        with self._lock:
            cursor = self._cursors.get(column)
            if cursor is not None and (kept := cursor.take(row)) is not None:
                return kept
            group = bisect_right(self._starts, row) - 1
            if cursor is None or cursor.group != group or cursor.next > row:
                self._check_size(column, group)
                kept_before = None if cursor is None else cursor.kept
                cursor = self._cursors[column] = _Cursor(
                    group, self._starts[group], self._pictures(column, group), kept_before
                )
            stored = cursor.read_to(row)
            if cursor.next == self._ends[group]:
                cursor.release()
            return stored

    def batches(self, leaves: Sequence[str], rows: int) -> Iterator[Any]:
        # By a reader of its own: that of `read` is asked by one thread at a time.
        with self._reader(()) as table:
            yield from table.iter_batches(rows, columns=list(leaves), use_threads=False)

    def _cell_arrays(self, leaf: str) -> Iterator[Any]:
        self.check_sizes(leaf)
        groups = range(len(self._starts))
        chunks = [chunk for group in groups for chunk in self._chunks(leaf, group)]
        means = [chunk.total_uncompressed_size // max(1, chunk.num_values) for chunk in chunks]
        rows, shared, taken = _at_once(max(means, default=0), _MOST_CELLS_AT_ONCE), [leaf], self._taken
        if any(
            each.physical_type == "BYTE_ARRAY" and set(each.encodings) - _SIMPLE_ENCODINGS for each in chunks
        ):
            # A value may repeat most of the one before it: none is longer than what the column declares.
            rows, shared = _at_once(max(chunk.total_uncompressed_size for chunk in chunks) // 32, rows), []
        with self._reader(shared) as table:
            # One group at a time: structures cannot share values across groups.
            for group in groups:
                for batch in table.iter_batches(rows, row_groups=[group], columns=[leaf], use_threads=False):
                    array = kept(_field(batch, leaf))
                    taken += array.nbytes
                    if taken > self._most:
                        raise UsageError(
                            f"{short_path(self.file)} contains more than {self._most:,} bytes of texts and "
                            f"numbers, up to the column {leaf!r}",
                            remedy=f"Pass the columns that you need with {option('columns')}.",
                        )
                    yield array

    def _reader(self, shared: Sequence[str]) -> Any:
        """Another reader of the file, which keeps the values of `shared` columns once."""
        return pyarrow("pyarrow.parquet").ParquetFile(
            place_of(self._source),
            metadata=self._table.metadata,
            read_dictionary=list(shared),
            buffer_size=_BUFFER,
            pre_buffer=False,
        )

    def _pictures(self, column: str, group: int) -> Iterator[Any]:
        rows = max(1, self._table.metadata.row_group(group).num_rows)
        mean = sum(chunk.total_uncompressed_size for chunk in self._chunks(column, group)) // rows
        batches = self._table.iter_batches(
            _at_once(mean, _MOST_ROWS_AT_ONCE),
            row_groups=[group],
            columns=self._leaves(column),
            use_threads=False,
        )
        for batch in batches:
            yield batch.column(0)

    def _chunks(self, column: str, group: int) -> Iterator[Any]:
        described = self._table.metadata.row_group(group)
        leaves = set(self._leaves(column)) if column in self.schema.names else {column}
        for number in range(described.num_columns):
            if described.column(number).path_in_schema in leaves:
                yield described.column(number)

    def check_sizes(self, column: str) -> None:
        for group in range(len(self._starts)):
            self._check_size(column, group)

    def _check_size(self, column: str, group: int) -> None:
        """Raises ImageError for a row group that is far larger than what it is packed in."""
        what = "pictures" if column in self.columns else "texts and numbers"
        for chunk in self._chunks(column, group):
            size, packed = chunk.total_uncompressed_size, chunk.total_compressed_size
            if size > _BOMB_BYTES and size > _BOMB_RATIO * packed:
                raise ImageError(
                    f"row group {group} of {short_path(self.file)}, column {column!r}, declares "
                    f"{size:,} bytes packed in {packed:,}: {what} do not pack like that",
                    kind="bomb",
                    remedy="If they really do, write the file anew with compression `none`.",
                )


class _Cursor:
    """A place in a row group, and rows passed over shortly before it."""

    def __init__(
        self, group: int, start: int, columns: Iterator[Any], kept: OrderedDict[int, Stored] | None
    ) -> None:
        self.group, self.next, self._columns = group, start, columns
        self.kept: OrderedDict[int, Stored] = OrderedDict() if kept is None else kept
        self._bytes = sum(len(each.data or b"") for each in self.kept.values())
        self._failed: Exception | None = None

    def take(self, row: int) -> Stored | None:
        """A row that was passed over; it is asked for once, as a rule, and forgotten."""
        stored = self.kept.pop(row, None)
        if stored is not None:
            self._bytes -= len(stored.data or b"")
        return stored

    def read_to(self, row: int) -> Stored:
        """The row, at or behind `next`. What a damaged page raised it raises for all rows behind it."""
        if self._failed is not None:
            raise self._failed
        try:
            for column in self._columns:
                first, self.next = self.next, self.next + len(column)
                for number in range(max(first, row - _MOST_KEPT), self.next):
                    if number != row:
                        self._keep(number, _stored(column[number - first]))
                if self.next > row:
                    return _stored(column[row - first])
            raise EOFError(f"row group {self.group} ends before row {row}")
        except Exception as error:
            self._failed = error
            raise

    def release(self) -> None:
        """Let go of the last page, at the end of the row group; rows passed over stay."""
        self._columns = iter(())

    def _keep(self, row: int, stored: Stored) -> None:
        self.kept[row] = stored
        self._bytes += len(stored.data or b"")
        while len(self.kept) > 1 and (self._bytes > _KEPT_BYTES or len(self.kept) > 2 * _MOST_KEPT):
            self._bytes -= len(self.kept.popitem(last=False)[1].data or b"")


class _Arrow(RowFile):
    """A stream, as `datasets` saves it, or a file of Arrow, mapped: a row is a view until it is taken."""

    def __init__(self, file: Path, source: BufferedReader) -> None:
        arrow, ipc = pyarrow("pyarrow"), pyarrow("pyarrow.ipc")
        content = arrow.memory_map(place_of(source))
        is_file = content.read(len(_MAGIC)) == _MAGIC
        content.seek(0)
        reader = ipc.open_file(content) if is_file else ipc.open_stream(content)
        super().__init__(file, reader.schema)
        self._batches: list[Any] = []
        size, mapped = 0, os.fstat(source.fileno()).st_size
        for batch in (reader.get_batch(n) for n in range(reader.num_record_batches)) if is_file else reader:
            size += batch.nbytes
            if size > 2 * mapped + _BOMB_BYTES:
                raise UsageError(
                    f"{short_path(file)} is compressed Arrow, which can only be read into memory as a whole",
                    remedy="Save it as Parquet.",
                )
            batch.validate(full=True)  # offsets that lead out of the file would end the whole process
            self._batches.append(batch)
        self._starts = [*accumulate([batch.num_rows for batch in self._batches], initial=0)][:-1]

    @cached_property
    def length(self) -> int:
        return sum(batch.num_rows for batch in self._batches)

    def read(self, column: str, row: int) -> Stored:
        number = bisect_right(self._starts, row) - 1
        return _stored(self._batches[number].column(column)[row - self._starts[number]])

    def check_sizes(self, column: str) -> None:
        """Nothing is packed here: the file is mapped."""

    def _cell_arrays(self, leaf: str) -> Iterator[Any]:
        for batch in self.batches([leaf], 0):
            yield _field(batch, leaf)

    def batches(self, leaves: Sequence[str], rows: int) -> Iterator[Any]:  # noqa: ARG002  views cost nothing
        columns = list(
            dict.fromkeys(leaf if leaf in self.schema.names else leaf.partition(".")[0] for leaf in leaves)
        )
        for batch in self._batches:
            yield batch.select(columns)


def _stored(cell: Any) -> Stored:
    value = cell.as_py()
    if isinstance(value, Mapping):
        data, path = value.get("bytes"), value.get("path")
        return Stored(data, path if isinstance(path, str) else None)
    return Stored(value, None)


def _holds_bytes(kind: Any) -> bool:
    if pyarrow("pyarrow.types").is_struct(kind):
        return any(each.name == "bytes" and _is_binary(each.type) for each in kind)
    return _is_binary(kind)


def _is_binary(kind: Any) -> bool:
    types = pyarrow("pyarrow.types")
    return any(is_kind(kind) for is_kind in (types.is_binary, types.is_large_binary, types.is_binary_view))


def _is_arrow(file: Path) -> bool:
    return file.suffix.lower() == ".arrow"


def _field(batch: Any, leaf: str) -> Any:
    """The column of a batch, or the field of its structure."""
    column = batch.column(0)
    if not pyarrow("pyarrow.types").is_struct(column.type):
        return column
    return pyarrow("pyarrow.compute").struct_field(column, leaf.rpartition(".")[2])


def _at_once(bytes_each: int, most: int) -> int:
    """How many rows to read at once that take so many bytes each."""
    return max(1, min(most, _BATCH_BYTES // max(1, bytes_each)))


@contextmanager
def _damage_named(file: Path) -> Iterator[None]:
    """Whatever a file cannot be read for is a UsageError that names it."""
    try:
        yield
    except OutsideError as error:
        raise UsageError(f"{short_path(file)} cannot be read: {error.strerror}") from error
    except (pyarrow("pyarrow").ArrowException, OSError, EOFError, UnicodeDecodeError) as error:
        form = "Arrow" if _is_arrow(file) else "Parquet"
        reason = error.strerror if isinstance(error, OSError) and error.errno else str(error)
        raise UsageError(
            f"{short_path(file)} cannot be read as {form}: {' '.join(str(reason).split()).rstrip('.')}",
            remedy="Was the download cut off? Fetch or write it again, or leave it out.",
        ) from error
