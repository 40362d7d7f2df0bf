"""The forms that data sets are written in: a line here and a file each, which also reads it back.

A file has a `FormatWriter`, and where verdicts, texts or boxes can come back from it a function `read`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, get_args

if TYPE_CHECKING:
    from uncanny.exports.returned import Returned
    from uncanny.exports.writer import FormatWriter

FormatName = Literal[
    "jsonl", "csv", "parquet", "hf", "coco", "labelstudio", "labelme", "cvat", "sft", "sft-detect", "agents"
]
ReadName = Literal["jsonl", "csv", "parquet", "hf", "coco", "labelstudio", "labelme", "cvat", "reviews"]
READ_NAMES: Final[tuple[ReadName, ...]] = get_args(ReadName)


@dataclass(frozen=True, slots=True)
class Format:
    """`title` is its name for people.

    `file` is what it writes into the folder of an export: a file, or a folder where `is_folder`.

    `reads` are the suffixes of files that can be taken back, none where none can.
    """

    module: str
    writer: str
    file: str
    title: str
    about: str
    reads: tuple[str, ...] = ()

    @property
    def is_folder(self) -> bool:
        return "." not in self.file

    def load_writer(self) -> type[FormatWriter]:
        return getattr(import_module(f"{__name__}.{self.module}"), self.writer)  # type: ignore[no-any-return]

    def load_reader(self) -> Callable[[Path], Iterator[Returned]]:
        return import_module(f"{__name__}.{self.module}").read  # type: ignore[no-any-return]


FORMATS: Final[Mapping[FormatName, Format]] = {
    "jsonl": Format(
        "jsonl",
        "JsonlWriter",
        "annotations.jsonl",
        "JSON Lines",
        "annotations as runs have them",
        (".jsonl",),
    ),
    "csv": Format(
        "csv", "CsvWriter", "anomalies.csv", "CSV", "a row an anomaly, for spreadsheets", (".csv",)
    ),
    "parquet": Format(
        "parquet",
        "ParquetWriter",
        "annotations.parquet",
        "Parquet",
        "a row an image, for data frames",
        (".parquet",),
    ),
    "hf": Format(
        "hf",
        "HfWriter",
        "hf",
        "Hugging Face datasets",
        "Hugging Face `datasets`: a folder with the pictures in it",
        (".parquet",),
    ),
    "coco": Format("coco", "CocoWriter", "coco", "COCO", "COCO boxes with attributes", (".json",)),
    "labelstudio": Format(
        "label_studio",
        "LabelStudioWriter",
        "labelstudio",
        "Label Studio",
        "Label Studio tasks with predictions",
        (".json",),
    ),
    "labelme": Format(
        "labelme", "LabelmeWriter", "labelme", "labelme", "labelme: a file an image", (".json",)
    ),
    "cvat": Format("cvat", "CvatWriter", "annotations.xml", "CVAT", "CVAT for images 1.1", (".xml",)),
    "sft": Format(
        "chats", "ListWriter", "sft", "Chats: list anomalies", "chats for fine-tuning: list all anomalies"
    ),
    "sft-detect": Format(
        "chats",
        "DetectWriter",
        "sft-detect",
        "Chats: real or generated",
        "chats for fine-tuning: is it generated, and then the list",
    ),
    "agents": Format(
        "jsonl", "AgentsWriter", "agents.jsonl", "Answers of agents", "every answer of every agent, by image"
    ),
}
