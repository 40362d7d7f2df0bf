"""What a command may write over: its own earlier output, and nothing else without `--force`.

One guard for all commands. It works on what a file holds and which file it is, not on its name: links and
names that differ in case lead to the same file. Inputs are never written over.
"""

from __future__ import annotations

import csv
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
import orjson

from uncanny.errors import UncannyError, UsageError

F = TypeVar("F", bound=Callable[..., Any])
STANDARD_OUTPUT = Path("-")
_HEAD_BYTES = 8192
# Files that commands find in a folder they are given.
_RECORDS = (
    *("annotations.jsonl", "answers.jsonl", "verdicts.jsonl", "calls.jsonl", "spending.jsonl"),
    "reviews.jsonl",
    *("items.jsonl", "pairs.jsonl", "run.json"),
)
_MANIFEST = frozenset({"format", "uncanny", "task"})

force_option = click.option("--force", is_flag=True, help="Replace files that are not this command's own.")


@dataclass(frozen=True, slots=True)
class Output:
    """A file to be written. `what` it is for people; `ours` tells from a file whether it is an earlier one.

    `makes_folder` says that the command makes the folder it goes to.
    """

    path: Path
    what: str
    ours: Callable[[Path], bool]
    makes_folder: bool = False


def page(path: Path, *, makes_folder: bool = False) -> Output:
    """An HTML page: those of this program name it as their generator."""

    def ours(file: Path) -> bool:
        with file.open("rb") as content:
            return b'<meta name="generator" content="uncanny' in content.read(_HEAD_BYTES)

    return Output(path, "page of uncanny", ours, makes_folder)


def scores_json(path: Path, *known: Iterable[str]) -> Output:
    """Scores as JSON: an object that has all keys of one of `known`; of several models, each model has."""

    def ours(file: Path) -> bool:
        try:
            content = orjson.loads(file.read_bytes())
        except orjson.JSONDecodeError:
            return False
        models = content.get("models") if isinstance(content, dict) else None
        each = list(models.values()) if isinstance(models, dict) else [content]
        return bool(each) and all(
            isinstance(record, dict) and any(set(keys) <= record.keys() for keys in known) for record in each
        )

    return Output(path, "JSON of these scores", ours)


def table_csv(path: Path, columns: Sequence[str]) -> Output:
    """A table with exactly this head line."""

    def ours(file: Path) -> bool:
        with file.open(encoding="utf-8", errors="replace", newline="") as lines:
            return next(csv.reader(lines), []) == list(columns)

    return Output(path, "table of these scores", ours)


def rows_jsonl(path: Path, keys: Iterable[str]) -> Output:
    """JSON Lines whose first line has these keys."""

    def ours(file: Path) -> bool:
        with file.open("rb") as lines:
            try:
                first = orjson.loads(lines.readline())
            except orjson.JSONDecodeError:
                return False
        return isinstance(first, dict) and set(keys) <= first.keys()

    return Output(path, "file of these rows", ours)


def the_same(path: Path, content: bytes, what: str) -> Output:
    """A file that people go on working on: only the very same content may take its place."""
    return Output(path, what, lambda file: file.read_bytes() == content, makes_folder=True)


def check_outputs(outputs: Iterable[Output | None], inputs: Iterable[Path], *, force: bool) -> None:
    """Raises UsageError for an output that cannot be written or would replace what it must not.

    To be called before anything is asked, scored or written. `inputs` are the files and folders the command
    reads; of a folder, the record files in it.
    """
    wanted = [output for output in outputs if output is not None]
    read = [file for each in inputs for file in _files(each)]
    for number, output in enumerate(wanted):
        path = output.path
        if path == STANDARD_OUTPUT:
            raise UsageError("- cannot be written here: it is no file", remedy="Name a file.")
        if any(_same(path, other.path) for other in wanted[:number]):
            raise UsageError(f"{path} is named for two outputs", remedy="Name a file for each.")
        _check_place(path, makes_folder=output.makes_folder)
        if not path.exists():
            continue
        if any(_same(path, file) for file in read):
            raise UsageError(
                f"{path} is read by this command and would be written over", remedy="Name another file."
            )
        if not force and not _is_ours(output):
            raise UsageError(
                f"{path} is there already and is no {output.what}",
                remedy="Name another file, or replace it with --force.",
            )


def check_run_folder(
    run: Path, inputs: Iterable[Path] = (), *, report: bool = True, force: bool = False
) -> None:
    """Raises UsageError where `run` has a `run.json` or `report.html` of something else, or holds an input.

    With `force` a foreign `run.json` is removed, so that a run can begin.
    """
    own = [run / name for name in ("run.json", "calls.jsonl", "answers.jsonl", "verdicts.jsonl")]
    for file in (file for each in inputs if each.is_file() for file in _files(each)):
        if any(_same(file, written) for written in own):
            raise UsageError(
                f"{file} is read by this command and would be written to", remedy="Name another -o."
            )
    manifest = run / "run.json"
    if manifest.is_file() and not _is_manifest(manifest):
        if not force:
            raise UsageError(
                f"{manifest} is no manifest of a run", remedy="Name another folder with -o, or give --force."
            )
        manifest.unlink()
    if report:
        check_outputs([page(run / "report.html")] if run.is_dir() else [], (), force=force)


def _is_manifest(file: Path) -> bool:
    try:
        content = orjson.loads(file.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return True  # a damaged one is told apart by whoever reads it
    return isinstance(content, dict) and content.keys() >= _MANIFEST


def _is_ours(output: Output) -> bool:
    try:
        return not output.path.stat().st_size or output.ours(output.path)
    except (OSError, ValueError, csv.Error, UncannyError):
        return False


def _check_place(path: Path, *, makes_folder: bool) -> None:
    if path.is_dir():
        raise UsageError(f"{path} is a folder", remedy="Name a file.")
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        raise UsageError(f"{path} is no ordinary file", remedy="Name another one.")
    parent = path.parent
    while makes_folder and not parent.exists() and parent != parent.parent:
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise UsageError(f"{path} cannot be written", remedy="Name a file in a folder that exists.")


def _files(path: Path) -> list[Path]:
    return [path / name for name in _RECORDS if (path / name).is_file()] if path.is_dir() else [path]


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return os.path.abspath(one) == os.path.abspath(other)  # noqa: PTH100  resolve() would follow links
