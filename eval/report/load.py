"""A run folder as the report reads it: `run.json` leniently, `annotations.jsonl` as a stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from pydantic import Field, ValidationError

from uncanny.errors import RecordError, UsageError
from uncanny.records.jsonl import parse_line
from uncanny.records.run_folder import RunFolder
from uncanny.schema import Annotation, Count, Dollars, Record


class Totals(Record):
    """`run.json`'s totals; None is what the run did not measure or did not write."""

    images: Count = None
    duplicates: Count = None
    calls: Count = None
    replayed: Count = None
    input_tokens: Count = None
    cached_tokens: Count = None
    output_tokens: Count = None
    cost_usd: Dollars = None
    outcomes: dict[str, int] | None = None
    seconds: float | None = None


class Prompts(Record):
    """`run.json`'s prompts: `id` as in every record, a hash per file, and the system text."""

    id: str | None = None
    files: dict[str, str] = Field(default_factory=dict)
    system: str | None = None


class PixelCounts(Record):
    """`run.json`'s pixels: the policy, and how many images each kind of change was made to."""

    policy: dict[str, Any] = Field(default_factory=dict)
    changed: dict[str, int] = Field(default_factory=dict)


class RunInfo(Record):
    """`run.json`; every key may be missing. `root` is where image paths start, None for the run folder.

    `served_as` has the names under which each model really answered, `served_unnamed` the models of which
    some answers bear none.
    """

    uncanny: str | None = None
    python: str | None = None
    libraries: dict[str, Any] = Field(default_factory=dict)
    state: str | None = None
    started: str | None = None
    updated: str | None = None
    root: str | None = None
    model: str | None = None
    roles: dict[str, str] = Field(default_factory=dict)
    fallback: str | None = None
    served_as: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    served_unnamed: tuple[str, ...] = ()
    plan: dict[str, Any] = Field(default_factory=dict)
    parameters: dict[str, Any] = Field(default_factory=dict)
    prompts: Prompts = Prompts()
    pixels: PixelCounts = PixelCounts()
    totals: Totals | None = None


@dataclass(frozen=True, slots=True)
class ReadRun:
    """A run folder and what its manifest says. `written` says whether there was a `run.json` at all."""

    folder: RunFolder
    info: RunInfo
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
        return ReadRun(folder, RunInfo(), written=False)
    # A run that has just begun writes empty totals: nothing is known yet, as if there were none.
    known = {key: value for key, value in manifest.items() if value != {}}
    try:
        return ReadRun(folder, RunInfo.model_validate(known), written=True)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"{folder.manifest}, field {field!r}: {first['msg']}") from error


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
