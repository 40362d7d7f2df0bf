"""A row an anomaly, for spreadsheets; an image of which none goes out has a row with empty cells.

A spreadsheet takes a cell that begins with `=`, `+`, `-` or `@` for a formula, and texts of models and names
of files may begin so. Such a cell has an apostrophe before it, as OWASP advises, which is taken off again
where the file is read back.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final

from uncanny.errors import RecordError, UsageError
from uncanny.eval.common.tables.forms import csv_cell, csv_content
from uncanny.exports.data import ExportImage, finding_cells
from uncanny.exports.returned import Returned, returned_anomaly
from uncanny.exports.writer import FormatWriter
from uncanny.files import open_file

_ANOMALY: Final = ("name", "phenomenon", "reasoning", "severity", "kind")
_LIKELY: Final = ("confidence", "probability")
_BOX: Final = ("x0", "y0", "x1", "y1")
_REVIEW: Final = ("decision", "rating", "accept", "reject", "unsure", "edited", "added")
COLUMNS: Final = (
    *("image", "run_image", "sha256", "width", "height", "status", "source", "split", "group"),
    *("columns", "model", "prompts"),
    *("anomaly", *_ANOMALY, *_LIKELY, "objects", *_BOX, "found_by", *_REVIEW, "text_sha256"),
)
_CELL_LIMIT: Final = 2**24
# What spreadsheets put between cells, by the country that they are set to.
_DELIMITERS: Final = ",;\t"
_SEPARATOR: Final = "; "


class CsvWriter(FormatWriter):
    """RFC 4180 in UTF-8 with a header."""

    def start(self) -> None:
        file = self.open(mode="w", encoding="utf-8", newline="")
        self._rows = csv.DictWriter(file, COLUMNS, restval="", extrasaction="ignore")
        self._rows.writeheader()

    def add(self, image: ExportImage) -> None:
        about = image.cells(self.reference(image))
        for finding in map(finding_cells, image.anomalies):
            row = {name: finding[name] for name in (*_ANOMALY, *_LIKELY, *_REVIEW, "text_sha256")}
            row |= {name: _SEPARATOR.join(finding[name] or ()) for name in ("objects", "found_by")}
            self._write(
                about
                | row
                | {"anomaly": finding["index"]}
                | dict(zip(_BOX, finding["box"] or (), strict=False))
            )
        if not image.anomalies:
            self._write(about)

    def _write(self, row: Mapping[str, Any]) -> None:
        self._rows.writerow(
            {
                name: str(each).lower() if isinstance(each, bool) else csv_cell(each)
                for name, each in row.items()
            }
        )


def read(file: Path) -> Iterator[Returned]:
    """Rows of such a table, whatever columns were added or left out. Raises RecordError, UsageError."""
    before = csv.field_size_limit(_CELL_LIMIT)
    try:
        with TextIOWrapper(open_file(file), encoding="utf-8-sig", newline="") as lines:
            rows = csv.DictReader(lines, restkey="", delimiter=_delimiter(lines.readline(), file))
            lines.seek(0)
            for row in rows:
                yield _returned(row, file, rows.line_num)
    except (csv.Error, UnicodeDecodeError) as error:
        raise UsageError(f"{file} is not a UTF-8 table: {error}", remedy="Save it as CSV UTF-8.") from error
    finally:
        csv.field_size_limit(before)


def _delimiter(header: str, file: Path) -> str:
    for delimiter in _DELIMITERS:
        if {"run_image", "image"} & {name.strip().strip('"') for name in header.split(delimiter)}:
            return delimiter
    raise UsageError(
        f"{file} has no column `image`", remedy="Give a table that `uncanny export` has written."
    )


def _returned(row: Mapping[str | Any, Any], file: Path, line: int) -> Returned:
    cells = {name: csv_content(value).strip() for name, value in row.items() if isinstance(value, str)}

    def real(name: str) -> float | None:
        cell = cells.get(name, "")
        try:
            return float(cell) if cell else None
        except ValueError as error:
            raise RecordError(f"is not a number: {cell[:40]!r}", path=file, line=line, field=name) from error

    def number(name: str) -> int | None:
        value = real(name)  # spreadsheets like to write 3.0
        if value is not None and not value.is_integer():
            raise RecordError(
                f"is not a whole number: {cells[name][:40]!r}", path=file, line=line, field=name
            )
        return None if value is None else int(value)

    box = [number(name) for name in _BOX]
    anomaly = {name: cells.get(name) or None for name in _ANOMALY if name != "severity"}
    return Returned(
        image=cells.get("run_image") or cells.get("image") or "",
        sha256=cells.get("sha256") or None,
        size=(number("width"), number("height")),
        where=f"line {line}",
        index=number("anomaly"),
        text_sha256=cells.get("text_sha256") or None,
        decision=cells.get("decision") or None,
        reviewer=cells.get("reviewer") or None,
        knows_kind="kind" in cells,
        anomaly=None
        if not anomaly["name"]
        else returned_anomaly(
            {
                **anomaly,
                "severity": number("severity"),
                **{name: real(name) for name in _LIKELY},
                "objects": tuple(filter(None, cells.get("objects", "").split(_SEPARATOR))),
                "found_by": tuple(filter(None, cells.get("found_by", "").split(_SEPARATOR))) or None,
                "box": None if None in box else tuple(each for each in box if each is not None),
            }
        ),
    )
