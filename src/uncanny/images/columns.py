"""What tables say of images besides the pictures: cells of their rows, and lines of metadata files.

A Parquet or Arrow file has columns beside that of its pictures. A folder of images has them in a file
`metadata.csv`, `metadata.jsonl` or `metadata.parquet`, where `file_name` is the path of an image from there:
that is how `datasets` reads folders of images. Texts, numbers, flags and times are taken; lists and
structures are not.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from uncanny.errors import UsageError
from uncanny.files import load_json, read_file
from uncanny.images.remote import public_url
from uncanny.images.row_cells import Cell, CellLines, plain_cell
from uncanny.images.row_files import row_of, row_place
from uncanny.images.row_readers import MOST_BYTES, opened
from uncanny.wording import short_path

METADATA_LINES: Final = "metadata.jsonl"
METADATA: Final = ("metadata.csv", METADATA_LINES, "metadata.parquet")
FILE_NAME: Final = "file_name"


@dataclass(frozen=True, slots=True)
class ImageCells:
    """What a table says of one image: the number of its `row`, from 0, where it is one, and its cells.

    Cells without a value are left out.
    """

    row: int | None = None
    values: Mapping[str, Cell] = field(default_factory=dict)


def plain_cells(cells: Mapping[str, Any]) -> dict[str, Cell]:
    """What of `cells` goes into a record: texts that are not too long, numbers, flags and times."""
    values = ((name, plain_cell(cell)) for name, cell in cells.items())
    return {name: value for name, value in values if value is not None}


class ImageColumns:
    """The columns of images found in `places`, read when they are asked for.

    `wanted` are the columns to take; None takes all.
    """

    def __init__(self, places: Sequence[Path] = (), wanted: Sequence[str] | None = None) -> None:
        self._folders = tuple(place for place in places if place.is_dir())
        self._wanted = None if wanted is None else frozenset(wanted)
        self._metadata: dict[Path, Mapping[str, Mapping[str, Any]] | None] = {}
        self._tables: set[Path] = set()
        self._problems: dict[Path, list[str]] = {}

    def look(self, folders: Iterable[Path]) -> Sequence[str]:
        """Read what tables say of images in `folders`; in words, which of them cannot be read. Blocking."""
        for folder in sorted(folders):
            self.is_known(folder / "image")
        return tuple(problem for problems in self._problems.values() for problem in problems)

    def is_known(self, image: Path) -> bool:
        """False where the table that may speak of an image cannot be read, so that `of` says nothing."""
        row = row_of(image)
        if row is None:
            return self._problems.keys().isdisjoint(self._asked(image))
        if row.file not in self._tables:
            self._tables.add(row.file)
            try:
                with opened(row.file) as rows:
                    rows.cells(self._wanted)
            except UsageError as error:
                self._problems[row.file] = [error.message]
        return row.file not in self._problems

    def is_alone(self, image: Path) -> bool:
        """Whether nothing but its own table, if it is in one, can say anything of an image. Blocking."""
        if row_of(image) is not None:
            return self.is_known(image)
        return all(self._metadata[folder] is None for folder in self._asked(image))

    def of(self, image: Path) -> ImageCells:
        """What is known of an image; nothing where no table speaks of it. Blocking."""
        row = row_of(image)
        if row is None:
            # The line of the nearest metadata file, up to the folder that was given.
            for folder in self._asked(image):
                if (lines := self._metadata[folder]) is not None:
                    line = lines.get(image.relative_to(folder).as_posix(), {})
                    return ImageCells(values=self._chosen(line))
            return ImageCells()
        try:
            place = row_place(row)
            if place is None:
                return ImageCells()
            column, number = place
            if not self.is_known(image):
                return ImageCells(number)
            with opened(row.file) as rows:
                cells = rows.cells(self._wanted).row(number)
            if isinstance(url := cells.get(column), str):
                cells[column] = public_url(url)
            return ImageCells(number, self._chosen(cells))
        except UsageError:
            return ImageCells()  # the picture's own record says why the table cannot be read

    def _chosen(self, cells: Mapping[str, Any]) -> dict[str, Cell]:
        if self._wanted is not None:
            cells = {name: cell for name, cell in cells.items() if name in self._wanted}
        return plain_cells(cells)

    def _asked(self, image: Path) -> Iterator[Path]:
        """The folders whose metadata files are read for an image, up to the first that has one."""
        for folder in self._between(image):
            if folder not in self._metadata:
                self._metadata[folder] = self._read(folder)
            yield folder
            if self._metadata[folder] is not None:
                return

    def _between(self, image: Path) -> Iterator[Path]:
        """The image's folder, then those it lies in, as far as one that was given."""
        given = [each for each in self._folders if image.is_relative_to(each)]
        for folder in image.parents:
            yield folder
            if not given or folder in given:
                return

    def _read(self, folder: Path) -> Mapping[str, Mapping[str, Any]] | None:
        for name in METADATA:
            file = folder / name
            if file.is_file():
                lines: Mapping[str, Mapping[str, Any]]
                try:
                    if file.suffix == ".parquet":
                        wanted = None if self._wanted is None else self._wanted | {FILE_NAME}
                        with opened(file) as rows:
                            lines = CellLines(rows.cells(wanted), FILE_NAME)
                    else:
                        lines = {str(line.pop(FILE_NAME)): line for line in _lines(file) if FILE_NAME in line}
                except UsageError as error:
                    self._problems.setdefault(folder, []).append(error.message)
                    continue
                if lines:
                    return lines
        return {} if folder in self._problems else None


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    """The lines of a metadata file as mappings. Raises UsageError that names the file and the line."""
    try:
        if file.stat().st_size > MOST_BYTES:
            raise UsageError(f"{short_path(file)} is larger than {MOST_BYTES:,} bytes")
        data = read_file(file).removeprefix(b"\xef\xbb\xbf")
        yield from _of_csv(file, data) if file.suffix == ".csv" else _of_json_lines(file, data)
    except OSError as error:
        raise UsageError(f"{short_path(file)} cannot be read: {error.strerror or error}") from error


def _of_csv(file: Path, data: bytes) -> Iterator[dict[str, Any]]:
    try:
        reader = csv.reader(io.StringIO(data.decode("utf-8"), newline=""), strict=True)
        head = next(reader, [])
        for cells in reader:
            if cells and len(cells) != len(head):
                wrong = f"has {len(cells)} cells, and the header has {len(head)}"
                raise UsageError(f"{short_path(file)}, line {reader.line_num} {wrong}")
            if cells:
                yield {name: cell or None for name, cell in zip(head, cells, strict=True)}
    except UnicodeDecodeError as error:
        raise UsageError(f"{short_path(file)} is not UTF-8") from error
    except csv.Error as error:
        raise UsageError(f"{short_path(file)}, line {reader.line_num} is not CSV: {error}") from error


def _of_json_lines(file: Path, data: bytes) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.strip():
            try:
                content = load_json(line)
            except ValueError as error:
                raise UsageError(f"{short_path(file)}, line {number} is not valid JSON: {error}") from error
            if not isinstance(content, dict):
                raise UsageError(f"{short_path(file)}, line {number} is not an object")
            yield content
