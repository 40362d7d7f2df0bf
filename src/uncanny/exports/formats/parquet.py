"""A row an image, with the findings as a list of structures: what data frames, DuckDB and Spark read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isnan
from pathlib import Path
from typing import Any, Final

from uncanny.errors import UsageError
from uncanny.eval.common.inputs.table_records import data_set_files
from uncanny.exports.data import ExportImage, finding_cells
from uncanny.exports.returned import QUADRUPLE, TEXTS, Returned, Size, returned_anomaly, whole
from uncanny.exports.writer import FormatWriter
from uncanny.extras import pyarrow
from uncanny.files import open_file
from uncanny.files.beneath import place_of
from uncanny.records.reviews import DECISIONS
from uncanny.wording import shown

ROWS_AT_ONCE: Final = 1_000
_ROWS_READ: Final = 100
# What is read back, with what each column has to hold; columns that are not here may be anything.
_IMAGE: Final = {"run_image": "text", "sha256": "text", "width": "numbers", "height": "numbers"}
_ANOMALY: Final = {
    **dict.fromkeys(("name", "phenomenon", "reasoning", "kind", "decision", "text_sha256"), "text"),
    **dict.fromkeys(("index", "severity", "confidence", "probability"), "numbers"),
    **dict.fromkeys(("objects", "found_by"), "lists of text"),
    "box": "lists of numbers",
}


def fields() -> list[Any]:
    """The columns as Arrow knows them."""
    arrow = pyarrow("pyarrow")
    text, whole, flag = arrow.string(), arrow.int32(), arrow.bool_()
    box, texts = arrow.list_(whole), arrow.list_(text)
    anomaly = arrow.struct(
        [
            *(("index", whole), *((name, text) for name in TEXTS), ("severity", whole), ("kind", text)),
            *(
                ("confidence", arrow.float64()),
                ("probability", arrow.float64()),
                ("objects", texts),
                ("box", box),
                ("found_by", texts),
                ("decision", text),
                ("rating", arrow.float64()),
            ),
            *((name, whole) for name in DECISIONS),
            *(("edited", flag), ("added", flag), ("text_sha256", text)),
        ]
    )
    item = arrow.struct([("name", text), ("description", text), ("box", box)])
    columns = [
        *((name, text) for name in ("image", "run_image", "sha256")),
        *((name, whole) for name in ("width", "height")),
        *((name, text) for name in ("status", "source", "split", "group", "columns")),
        *(("complete", flag), ("anomalies", arrow.list_(anomaly)), ("objects", arrow.list_(item))),
        *((name, text) for name in ("model", "prompts")),
    ]
    return [arrow.field(*column) for column in columns]


def row(image: ExportImage, reference: str) -> dict[str, Any]:
    """The cells of `fields`."""
    return image.cells(reference) | {
        "anomalies": [finding_cells(each) for each in image.anomalies],
        "objects": [each.model_dump(mode="json") for each in image.record.objects],
    }


class ParquetWriter(FormatWriter):
    """One file, a thousand rows a group."""

    def start(self) -> None:
        self._schema = pyarrow("pyarrow").schema(fields())
        writer = pyarrow("pyarrow.parquet").ParquetWriter(self.target, self._schema, compression="zstd")
        self._file = self.job.files.enter_context(writer)
        self._rows: list[dict[str, Any]] = []

    def add(self, image: ExportImage) -> None:
        self._rows.append(row(image, self.reference(image)))
        if len(self._rows) >= ROWS_AT_ONCE:
            self.finish()

    def finish(self) -> None:
        if self._rows:
            self._file.write_table(pyarrow("pyarrow").Table.from_pylist(self._rows, self._schema))
        self._rows = []


def read(place: Path) -> Iterator[Returned]:
    """Findings of such a file or of a dataset's folder, whatever columns were added; pictures are not read.

    Raises UsageError, OSError.
    """
    files = data_files(place) if place.is_dir() else [place]
    if not files:
        raise UsageError(
            f"{place} is not a dataset: it has no Parquet or Arrow files",
            remedy="Pass the folder that `uncanny export` or `save_to_disk` has written.",
        )
    for file in files:
        if not file.is_file():
            raise UsageError(f"{place} is incomplete: {file} is missing", remedy="Export it again.")
        first_of = "" if file == place else f"{file.relative_to(place).as_posix()}, "
        is_arrow = file.suffix == ".arrow"
        opened = pyarrow("pyarrow").memory_map if is_arrow else pyarrow("pyarrow.parquet").ParquetFile
        with (
            open_file(file) as source,
            damage_named(file, "Arrow" if is_arrow else "Parquet"),
            opened(place_of(source)) as content,
        ):
            if is_arrow:
                batches = pyarrow("pyarrow.ipc").open_stream(content)
                checked_columns(batches.schema, file)
            else:
                batches = content.iter_batches(
                    _ROWS_READ, columns=checked_columns(content.schema_arrow, file)
                )
            yield from returned_rows(batches, file, first_of)


def data_files(folder: Path) -> list[Path]:
    """The files with the rows: Parquet, or Arrow where `datasets` saved it. Raises UsageError."""
    return list(data_set_files(folder)) or sorted(folder.glob("*.parquet"))


@contextmanager
def damage_named(file: Path, form: str) -> Iterator[None]:
    """What pyarrow cannot read is a UsageError within; what the disk refuses stays an OSError."""
    try:
        yield
    except (pyarrow("pyarrow").ArrowException, UnicodeDecodeError, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        reason = " ".join(str(error).split()).rstrip(".")
        raise UsageError(f"{file} is not valid {form}: {reason}", remedy="Export it again.") from error


def checked_columns(schema: Any, file: Path) -> list[str]:
    """The columns that are read, of a picture only what its file is called.

    Raises UsageError where one that is needed is missing, there twice, or holds something else.
    """
    types = pyarrow("pyarrow.types")

    def check(fields: Iterable[Any], expected: Mapping[str, str], inside: str) -> None:
        names = [each.name for each in fields]
        for field in fields:
            if field.name not in expected:
                continue
            name = inside + field.name
            if names.count(field.name) > 1:
                raise UsageError(f"{file} has several columns `{name}`", remedy="Remove all but one.")
            if not _holds(field.type, expected[field.name]):
                raise UsageError(
                    f"{file}: the column `{name}` contains {field.type}, not {expected[field.name]}",
                    remedy="Keep the types that `uncanny export` writes.",
                )

    has_picture = "image" in schema.names and types.is_struct(schema.field("image").type)
    check(list(schema), {**_IMAGE, "image": "pictures" if has_picture else "text"}, "")
    for needed in ({"run_image", "image"}, {"anomalies"}):
        if not needed & set(schema.names):
            raise UsageError(
                f"{file} has no column `{min(needed)}`",
                remedy="Give a table that `uncanny export` has written.",
            )
    check(list(schema), {"anomalies": "lists of structures"}, "")
    anomalies = schema.field("anomalies").type
    if not types.is_null(anomalies) and not types.is_null(anomalies.value_type):
        check(list(anomalies.value_type), _ANOMALY, "anomalies.")
    names = [name for name in (*_IMAGE, "image", "anomalies") if name in schema.names]
    return ["image.path" if has_picture and name == "image" else name for name in names]


def _holds(kind: Any, expected: str) -> bool:
    """Whether an Arrow type is what `expected` says; a column of nulls alone has a type that fits all."""
    types = pyarrow("pyarrow.types")
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_null(kind):
        return True
    match expected:
        case "text":
            return any(
                is_text(kind) for is_text in (types.is_string, types.is_large_string, types.is_string_view)
            )
        case "numbers":
            return bool(types.is_integer(kind) or types.is_floating(kind))
        case "pictures":
            return any(each.name == "path" and _holds(each.type, "text") for each in kind)
        case "structures":
            return bool(types.is_struct(kind))
    is_list = any(is_list(kind) for is_list in (types.is_list, types.is_large_list, types.is_fixed_size_list))
    return is_list and _holds(kind.value_type, expected.removeprefix("lists of "))


def returned_rows(batches: Iterable[Any], file: Path, first_of: str = "") -> Iterator[Returned]:
    """Findings of Arrow batches whose columns were checked. `first_of` begins the words for a place."""
    number = 0
    pictures: set[str] = set()
    for batch in batches:
        images = {name: batch.column(name).to_pylist() for name in _IMAGE if name in batch.schema.names}
        names = _names(batch)
        for row, anomalies in enumerate(_anomalies(batch.column("anomalies"))):
            where = f"{first_of}row {number}"
            number += 1
            cells = {name: values[row] for name, values in images.items()}
            name = cells.get("run_image") or names[row]
            if not name:
                raise UsageError(f"{file}, {where}: names no image", remedy="Keep the column `run_image`.")
            if not cells.get("run_image"):
                # A file name alone: of two pictures one would get the findings of the other.
                if name in pictures:
                    raise UsageError(
                        f"{file}, {where}: {shown(name)} appears twice",
                        remedy="Keep the column `run_image`.",
                    )
                pictures.add(name)
            size = (whole(_number(cells.get("width"))), whole(_number(cells.get("height"))))
            picture = name, cells.get("sha256") or None, size
            if not anomalies:
                yield Returned(*picture, where)
            for position, anomaly in anomalies:
                yield _returned(picture, f"{where}, anomaly {position}", anomaly, file)


def _names(batch: Any) -> list[str | None]:
    """What the column `image` calls each picture, by itself or inside of it."""
    if "image" not in batch.schema.names:
        return [None] * batch.num_rows
    column = batch.column("image")
    if pyarrow("pyarrow.types").is_struct(column.type):
        column = pyarrow("pyarrow.compute").struct_field(column, "path")
    return column.to_pylist()  # type: ignore[no-any-return]


def _anomalies(column: Any) -> Iterator[list[tuple[int, Mapping[str, Any]]]]:
    """The structures of each row with their positions, nulls left out, and of each the known fields alone."""
    types, compute = pyarrow("pyarrow.types"), pyarrow("pyarrow.compute")
    if types.is_null(column.type) or types.is_null(column.type.value_type):
        yield from ([] for _ in range(len(column)))
        return
    flat = compute.list_flatten(column)
    valid = flat.is_valid().to_pylist()
    names = [each.name for each in flat.type if each.name in _ANOMALY]
    values: Sequence[list[Any]] = [compute.struct_field(flat, name).to_pylist() for name in names]
    start = 0
    for length in compute.list_value_length(column).to_pylist():
        end = start + (length or 0)
        yield [
            (at - start, {name: cells[at] for name, cells in zip(names, values, strict=True)})
            for at in range(start, end)
            if valid[at]
        ]
        start = end


def _returned(
    picture: tuple[str, str | None, Size], where: str, cells: Mapping[str, Any], file: Path
) -> Returned:
    index = _number(cells.get("index"))
    if isinstance(index, float):
        raise UsageError(
            f"{file}, {where}: `index` is not a whole number: {index}", remedy="Leave `index` as it was."
        )
    box = cells.get("box")
    fields = returned_anomaly(
        {
            **cells,
            **{name: _number(cells.get(name)) for name in ("severity", "confidence", "probability")},
            "box": None if box is None else tuple(_number(each) for each in box),
        }
    )
    return Returned(
        *picture,
        where,
        index=index,
        text_sha256=cells.get("text_sha256") or None,
        decision=cells.get("decision"),
        anomaly=fields if {*QUADRUPLE, "box"} & fields.keys() else None,
        knows_kind="kind" in cells,
    )


def _number(value: float | None) -> int | float | None:
    """Whole numbers as such: data frames make floats of a column with gaps, and NaN of the gaps."""
    if value is None or isnan(value):
        return None
    return int(value) if value == value // 1 else value
