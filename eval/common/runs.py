"""A run folder as the report reads it: `run.json`, and `annotations.jsonl` as a stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import orjson

from uncanny.errors import RecordError, UsageError
from uncanny.records.jsonl import parse_line
from uncanny.records.run_folder import RunFolder
from uncanny.records.run_manifest import RunManifest
from uncanny.schema import Annotation


@dataclass(frozen=True, slots=True)
class ReadRun:
    """A run folder and what its manifest says. `written` says whether there was a `run.json` at all."""

    folder: RunFolder
    info: RunManifest
    written: bool

    def picture(self, image: str) -> Path:
        """The file behind a record's `image`: from the root, which is itself from the run folder."""
        return self.folder.path / (self.info.root or "") / image


def open_run(path: Path) -> ReadRun:
    """Read what `run.json` says.

    Raises `UsageError` when neither `run.json` nor `annotations.jsonl` is there, or `run.json` is not what a
    run writes.
    """
    folder = RunFolder(path)
    manifest = folder.read_manifest()
    if manifest is None:
        if not folder.annotations.is_file():
            raise UsageError(
                f"{path} is not a run folder: it has neither run.json nor annotations.jsonl",
                remedy="Name the folder that was given to `uncanny annotate -o`.",
            )
        return ReadRun(folder, RunManifest(), written=False)
    return ReadRun(folder, manifest, written=True)


def stream_annotations(file: Path) -> Iterator[Annotation]:
    """Yield the records of `file`, none when it does not exist; of several of one image the last.

    A last line without its newline that cannot be read is one being written, and is left out; any other
    invalid line raises `RecordError`.
    """
    if not file.is_file():
        return
    last = _last_lines(file)
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                record = parse_line(line, Annotation, file, number)
            except RecordError:
                if line.endswith(b"\n"):
                    raise
                return
            if last.get(record.image, number) == number:
                yield record


def _last_lines(file: Path) -> dict[str, int]:
    """While a run goes on, an image that was asked again has a second line."""
    last: dict[str, int] = {}
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                last[str(orjson.loads(line)["image"])] = number
            except (orjson.JSONDecodeError, KeyError, TypeError):
                continue
    return last
