"""A folder as the Hugging Face Hub has data sets: Parquet with the pictures in it, a split a file, a card.

`datasets.load_dataset(FOLDER)` reads it as it is, pictures decoded, and it can be uploaded. Written with
pyarrow alone, a few megabytes at a time; the library's own writer would hold or cache all of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from uncanny.beneath import place_of
from uncanny.errors import UsageError
from uncanny.eval.common.hub import card_head, hub_schema, picture_type
from uncanny.eval.common.inputs.table_records import data_set_files
from uncanny.exports.data import ExportImage, Split
from uncanny.exports.formats.parquet import (
    checked_columns,
    damage_named,
    fields,
    returned_rows,
    row,
)
from uncanny.exports.returned import Returned
from uncanny.exports.writer import ExportJob, FormatWriter
from uncanny.extras import pyarrow
from uncanny.files import open_file

_BYTES_AT_ONCE: Final = 64 * 2**20
_ROWS_AT_ONCE: Final = 100
_CARD = """\
{head}

# Semantic anomalies

An image a row: the picture, and what is wrong with it as quadruples (name, phenomenon, reasoning, severity;
0 = cannot be real, 100 = fully realistic), with boxes `[x0, y0, x1, y1]` in pixels where they are known, and
what reviewers said. Written by `uncanny export`.

| Split | Images | Anomalies |
| --- | --- | --- |
{rows}
"""


class HfWriter(FormatWriter):
    """A split is there where an image is on its side. A picture that is missing or changed is null."""

    name = "hf"

    def __init__(self, target: Path, place: Path, job: ExportJob) -> None:
        super().__init__(target, place, job)
        picture = pyarrow("pyarrow").field("image", picture_type())
        columns = [picture, *(each for each in fields() if each.name != "image")]
        self._schema = hub_schema(columns, ("image",))
        self._data = target / "data"
        self._data.mkdir()
        self._files: dict[Split, Any] = {}
        self._rows: dict[Split, list[dict[str, Any]]] = {"train": [], "test": []}
        self._bytes: dict[Split, int] = {"train": 0, "test": 0}
        self._counts: dict[Split, list[int]] = {"train": [0, 0], "test": [0, 0]}

    def add(self, image: ExportImage) -> None:
        data, split = image.read(), image.split
        if data is None:
            self.note("pictures missing or changed, null")
        picture = None if data is None else {"bytes": data, "path": _file_name(image.record.image)}
        self._rows[split].append(row(image, "") | {"image": picture})
        self._bytes[split] += len(data or b"")
        self._counts[split][0] += 1
        self._counts[split][1] += len(image.anomalies)
        if len(self._rows[split]) >= _ROWS_AT_ONCE or self._bytes[split] >= _BYTES_AT_ONCE:
            self._write(split)

    def _write(self, split: Split) -> None:
        if split not in self._files:
            # A page index lets readers take single rows: groups with pictures are large.
            self._files[split] = pyarrow("pyarrow.parquet").ParquetWriter(
                self._data / f"{split}.parquet", self._schema, compression="zstd", write_page_index=True
            )
        table = pyarrow("pyarrow").Table.from_pylist(self._rows[split], self._schema)
        self._files[split].write_table(table)
        self._rows[split], self._bytes[split] = [], 0

    def finish(self) -> None:
        for split in self._rows:
            if self._rows[split] or (
                split == "train" and not any(count for count, _ in self._counts.values())
            ):
                self._write(split)
        self.close()
        splits: tuple[Split, ...] = tuple(split for split in self._rows if split in self._files)
        card = _CARD.format(
            head=card_head(
                tasks=("image-to-text", "object-detection"),
                tags=("uncanny", "ai-generated-images"),
                splits={split: f"data/{split}.parquet" for split in splits},
            ),
            rows="\n".join("| {} | {:,} | {:,} |".format(split, *self._counts[split]) for split in splits),
        )
        (self.target / "README.md").write_text(card, encoding="utf-8")

    def close(self) -> None:
        for file in self._files.values():
            file.close()


def _file_name(image: str) -> str:
    return image.rsplit("/", 1)[-1]


def is_data_set(folder: Path) -> bool:
    """Whether a folder is one that was exported, uploaded, or saved by `datasets`; not one of loose files.

    Raises UsageError for a saved one that is damaged.
    """
    return bool(data_set_files(folder))


def data_files(folder: Path) -> list[Path]:
    """The files with the rows: Parquet, or Arrow where `datasets` saved it. Raises UsageError."""
    return list(data_set_files(folder)) or sorted(folder.glob("*.parquet"))


def read(folder: Path) -> Iterator[Returned]:
    """Findings of such a folder, or of one file of it; pictures are not read. Raises UsageError, OSError."""
    files = data_files(folder) if folder.is_dir() else [folder]
    if not files:
        raise UsageError(
            f"{folder} is not a dataset: it has no Parquet or Arrow files",
            remedy="Name the folder that `uncanny export` or `save_to_disk` has written.",
        )
    for file in files:
        if not file.is_file():
            raise UsageError(f"{folder} is not whole: {file} is not there", remedy="Export it again.")
        place = "" if file == folder else f"{file.relative_to(folder).as_posix()}, "
        if file.suffix == ".arrow":
            with (
                open_file(file) as source,
                damage_named(file, "Arrow"),
                pyarrow("pyarrow").memory_map(place_of(source)) as content,
            ):
                batches = pyarrow("pyarrow.ipc").open_stream(content)
                checked_columns(batches.schema, file)
                yield from returned_rows(batches, file, place)
        else:
            parquet = pyarrow("pyarrow.parquet")
            with (
                open_file(file) as source,
                damage_named(file, "Parquet"),
                parquet.ParquetFile(place_of(source)) as table,
            ):
                columns = checked_columns(table.schema_arrow, file)
                batches = table.iter_batches(_ROWS_AT_ONCE, columns=columns)
                yield from returned_rows(batches, file, place)
