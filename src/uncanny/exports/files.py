"""Which files an import reads, and what form each has: by its name, or else by its content."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Final

import orjson

from uncanny.errors import UsageError
from uncanny.eval.common.inputs.table_records import data_set_files
from uncanny.exports.formats import FORMATS, READ_NAMES, ReadName
from uncanny.exports.formats.coco import SIDECAR
from uncanny.exports.formats.parquet import data_files
from uncanny.files import open_file, read_file
from uncanny.wording import option, shown

REVIEWS: Final = "reviews"
_NEVER_READ: Final = (SIDECAR, "export.json", "run.json")
Files = str | PathLike[str] | Sequence[str | PathLike[str]]


def import_files(files: Files, format: ReadName | None) -> list[tuple[ReadName, Path]]:
    """Files with the names of their formats. Raises UsageError."""
    paths = [files] if isinstance(files, str | PathLike) or not isinstance(files, Iterable) else list(files)
    for path in paths:
        if not isinstance(path, str | PathLike) or not str(path) or "\0" in str(path):
            raise UsageError(f"Files to import are paths, not {shown(path)}", remedy="Pass one or several.")
    chosen = [file for path in paths for file in _files(Path(path), format)]
    if not chosen:
        raise UsageError("There is nothing to import", remedy="Pass files of another tool.")
    return [(format or _format_of(file), file) for file in chosen]


def files_read(sources: Iterable[tuple[ReadName, Path]]) -> Iterator[Path]:
    """Every file that is there and will be read: those in data sets, and what lies beside COCO files."""
    for name, path in sources:
        files = data_files(path) if path.is_dir() else [path]
        if name == "coco":
            files.append(path.with_name(SIDECAR))
        yield from (file for file in files if file.exists())


def _files(path: Path, format: ReadName | None) -> Iterator[Path]:
    """The file, or those in the folder; a data set of Hugging Face is a folder that is read as one."""
    is_read_whole = format == "hf" or (format is None and bool(data_set_files(path)))
    if path.is_file() or (path.is_dir() and is_read_whole):
        yield path
        return
    if not path.is_dir():
        raise UsageError(f"{path} does not exist", remedy="Pass a file of another tool.")
    suffixes = {suffix for each in FORMATS.values() for suffix in each.reads}
    yield from sorted(
        file
        for file in path.iterdir()
        if file.suffix.lower() in suffixes and file.is_file() and file.name not in _NEVER_READ
    )


def _format_of(file: Path) -> ReadName:
    if file.is_dir():
        return "hf"
    suffix = file.suffix.lower()
    match suffix:
        case ".csv":
            return "csv"
        case ".xml":
            return "cvat"
        case ".parquet":
            return "parquet"
        case ".jsonl":
            with open_file(file) as lines:
                first = next((line for line in lines if line.strip()), b"")
            return REVIEWS if b'"reviewer"' in first else "jsonl"
        case ".json":
            with open_file(file) as content:
                if content.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
                    return "labelstudio"
            try:
                keys = orjson.loads(read_file(file).removeprefix(b"\xef\xbb\xbf")).keys()
            except (orjson.JSONDecodeError, AttributeError) as error:
                raise UsageError(f"{file} is not valid JSON: {error}") from error
            if "shapes" in keys:
                return "labelme"
            if "annotations" in keys:
                return "coco"
    raise UsageError(
        f"Cannot tell the format of {file}",
        remedy=f"Name it with {option('format')}: {', '.join(READ_NAMES)}.",
    )
