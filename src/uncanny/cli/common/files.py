"""The files that commands read and write: pipes as inputs, the guard over outputs, the outputs of scores.

A command may write over its own earlier output, and nothing else without `--force`. The guard works on what a
file holds and which file it is, not on its name: links and names that differ in case lead to the same file.
Inputs are never written over.
"""

from __future__ import annotations

import atexit
import csv
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import orjson

from uncanny.cli.common.terminal import complain, say, say_json, width
from uncanny.errors import UncannyError, UsageError
from uncanny.files import MOST_DOCUMENT, check_file, is_own_pipe, too_large
from uncanny.protocol import run_records
from uncanny.wording import harmless, layout

if TYPE_CHECKING:
    from uncanny.eval.common.gates import GateResult
    from uncanny.eval.common.pages.pictures import PicturesMode
    from uncanny.eval.common.tables.table import Table

STANDARD_OUTPUT = Path("-")
_BLOCK = 1 << 20
# What commands find in a folder beside the records of its run.
_BESIDE = (
    *("annotations.parquet", "calls.jsonl", "spending.jsonl", "judgements.jsonl", "profiles.jsonl"),
    "ratings.jsonl",
    *("reviews.jsonl", "sample.json", "items.jsonl", "pairs.jsonl", "run.json"),
)
_MANIFEST = frozenset({"format", "uncanny", "task"})


def at_rest(path: Path) -> Path:
    """`path`, or where it is a pipe a copy of what comes out of it, kept while this process runs.

    Pipes, as `<(command)` and `/dev/stdin` are, can be read only once: a second look finds nothing, or the
    rest. Raises UsageError where it cannot be read, or has no end.
    """
    if not is_own_pipe(path):
        check_file(path)
        return path
    folder = Path(tempfile.mkdtemp(prefix="uncanny-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    copy = folder / path.name
    try:
        with path.open("rb") as pipe, copy.open("wb") as file:
            left = MOST_DOCUMENT
            while block := pipe.read(min(_BLOCK, left + 1)):
                file.write(block)
                left -= len(block)
                if left < 0:
                    raise too_large(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}", remedy="Pass a file.") from None
    return copy


def all_at_rest(files: Mapping[str, Path] | Sequence[Path]) -> dict[str, Path] | list[Path]:
    """`at_rest` of each, by the same names."""
    if isinstance(files, Mapping):
        return {name: at_rest(path) for name, path in files.items()}
    return [*map(at_rest, files)]


def paths_of(files: Mapping[str, Path] | Sequence[Path] | None) -> list[Path]:
    """Files that may have names, without them."""
    return [*(files.values() if isinstance(files, Mapping) else files or ())]


@dataclass(frozen=True, slots=True)
class Output:
    """A file to be written: `what` it is for people, and how `ours` tells it from other files."""

    path: Path
    what: str
    ours: Callable[[Path], bool]


def _with_mark(path: Path, what: str, mark: bytes, within: int) -> Output:
    """A file of ours has `mark` in its first bytes, `within` so many."""

    def ours(file: Path) -> bool:
        with file.open("rb") as content:
            return mark in content.read(within)

    return Output(path, what, ours)


def page(path: Path) -> Output:
    """An HTML page: those of this program name it as their generator."""
    return _with_mark(path, "an uncanny page", b'<meta name="generator" content="uncanny', 8192)


def scores_json(path: Path, keys: Iterable[str]) -> Output:
    """Scores as JSON: an object that has all `keys`; of several models or comparisons, each has."""

    def ours(file: Path) -> bool:
        try:
            content = orjson.loads(file.read_bytes())
        except orjson.JSONDecodeError:
            return False
        models = content.get("models") if isinstance(content, dict) else None
        several = content.get("comparisons") if isinstance(content, dict) else None
        each = list(models.values()) if isinstance(models, dict) else several or [content]
        return isinstance(each, list) and all(
            isinstance(record, dict) and set(keys) <= record.keys() for record in each
        )

    return Output(path, "a JSON file of these scores", ours)


def calibration_json(path: Path) -> Output:
    """A calibration that `uncanny trust` has written."""

    def ours(file: Path) -> bool:
        from uncanny.records.calibration import Calibration

        Calibration.read(file)
        return True

    return Output(path, "a calibration", ours)


def table_csv(path: Path, columns: Sequence[str]) -> Output:
    """A table with this head line."""

    def ours(file: Path) -> bool:
        with file.open(encoding="utf-8", errors="replace", newline="") as lines:
            return next(csv.reader(lines), None) == list(columns)

    return Output(path, "a table of these scores", ours)


TableForm = Literal["markdown", "latex"]
# What a file of tables begins with, so that the next call knows it for its own.
_BEGINS: Final[dict[TableForm, str]] = {
    "markdown": "<!-- Tables by uncanny -->\n\n",
    "latex": "% Tables by uncanny. They need \\usepackage{booktabs,graphicx}.\n",
}


def tables_text(path: Path, form: TableForm) -> Output:
    """Tables as Markdown or LaTeX: those of this program say so in their first line."""
    begins = _BEGINS[form].encode()
    return _with_mark(path, "an uncanny file of tables", begins, len(begins))


def rows_jsonl(path: Path, keys: Iterable[str]) -> Output:
    """JSON Lines whose first line has these keys."""

    def ours(file: Path) -> bool:
        with file.open("rb") as lines:
            try:
                first = orjson.loads(lines.readline())
            except orjson.JSONDecodeError:
                return False
        return isinstance(first, dict) and set(keys) <= first.keys()

    return Output(path, "a file of these rows", ours)


class Scores(Protocol):
    """What commands write and print of a result."""

    def to_json(self) -> object: ...
    def to_csv(self) -> str: ...
    def tables(self) -> Sequence[Table]: ...


def in_folder_of(path: Path, name: str) -> Path:
    """The file of this name in a folder, or in the folder of a file."""
    return (path if path.is_dir() else path.parent) / name


@dataclass(frozen=True, slots=True)
class ScoreFiles:
    """Where a command that scores writes JSON, CSV, tables and page; `-` is standard output, None is nowhere.

    `quiet` prints nothing about it. `left` is where a page of an earlier call may lie that this one does not
    write over. `unplaced` says that a page was wanted and no place for it was named.
    """

    json: Path | None
    page: Path | None
    csv: Path | None = None
    tables: dict[TableForm, Path] = field(default_factory=dict)
    quiet: bool = False
    left: Path | None = None
    unplaced: bool = False
    force: bool = False
    pictures: PicturesMode = "link"

    @classmethod
    def of(
        cls, values: Mapping[str, Any], default_page: Path | None = None, *, needs_place: bool = False
    ) -> ScoreFiles:
        """From what click has parsed of `score_options`; a command without a page has no `default_page`.

        Whoever pipes scores on gets a page only where one is named; `quiet` is about the terminal alone.
        With `needs_place` a command may have no place for its page: then it says so. Raises UsageError.
        """
        options = {"--json": "json_file", "--csv": "csv_file", "--markdown": "markdown_file"}
        options["--latex"] = "latex_file"
        named: dict[str, Path | None] = {option: values.get(name) for option, name in options.items()}
        piped = [option for option, file in named.items() if file == STANDARD_OUTPUT]
        if len(piped) > 1:
            raise UsageError(f"{' and '.join(piped)} cannot both go to standard output")
        forms: dict[TableForm, Path | None] = {"markdown": named["--markdown"], "latex": named["--latex"]}
        report = values.get("report")
        wanted = not values.get("no_report") and (report is not None or not piped)
        place = report or default_page
        return cls(
            named["--json"],
            place if wanted else None,
            named["--csv"],
            {form: file for form, file in forms.items() if file is not None},
            values["quiet"],
            left=None if wanted else default_page,
            unplaced=wanted and needs_place and place is None,
            force=values["force"],
            pictures=values.get("pictures", "link"),
        )

    @property
    def printed(self) -> bool:
        """Whether the terminal gets words: whoever pipes scores on wants nothing else among them."""
        return not self.quiet and not self.piped

    @property
    def piped(self) -> bool:
        """Whether one of the files is standard output."""
        return STANDARD_OUTPUT in (self.json, self.csv, *self.tables.values())

    def outputs(self, keys: Iterable[str], columns: Sequence[str] = ()) -> list[Output]:
        """To be checked: an earlier JSON has all `keys`, an earlier CSV has these `columns`."""
        outputs: list[Output] = []
        if self.json is not None and self.json != STANDARD_OUTPUT:
            outputs.append(scores_json(self.json, keys))
        if self.csv is not None and self.csv != STANDARD_OUTPUT:
            outputs.append(table_csv(self.csv, columns))
        outputs += [tables_text(file, form) for form, file in self.tables.items() if file != STANDARD_OUTPUT]
        if self.page is not None:
            outputs.append(page(self.page))
        return outputs

    def check(
        self,
        keys: Iterable[str],
        columns: Sequence[str],
        inputs: Iterable[str | Path | None],
        *others: Output,
    ) -> None:
        """Raises UsageError, as `check_outputs` does, for the files of scores and for `others`."""
        read = [Path(each) for each in inputs if each is not None]
        check_outputs([*self.outputs(keys, columns), *others], read, force=self.force)

    def write_scores(self, scores: Scores, *, after: str = "", **shown: Any) -> None:
        """Write and print what is wanted of `scores`, with their page, made with `shown`.

        `after` is what the terminal gets below the tables.
        """
        from uncanny.eval.common.tables.table import tables_text as text
        from uncanny.files import dump_json
        from uncanny.records.jsonl import write_named

        if self.json == STANDARD_OUTPUT:
            say_json(scores.to_json())
        elif self.json is not None:
            write_named(self.json, [dump_json(scores.to_json(), indent=True)])
        if self.csv == STANDARD_OUTPUT:
            say(scores.to_csv().removesuffix("\n"))
        elif self.csv is not None:
            write_named(self.csv, [scores.to_csv().encode()])
        for form, file in self.tables.items():
            written = _written(scores.tables(), form)
            if file == STANDARD_OUTPUT:
                say(written.removesuffix("\n"))
            else:
                write_named(file, [_BEGINS[form].encode(), written.encode()])
        if self.printed:
            say(text(scores.tables(), width()) + after)
        report = getattr(scores, "report", None)
        if self.page is not None and report is not None:
            report(self.page, pictures=self.pictures, **shown)
            if self.printed:
                say(harmless(f"Report   {self.page}"))
        elif self.printed and self.unplaced:
            say("No page was written: name a file with --report, or a folder with -o.")
        elif self.printed and self.left is not None and self.left.is_file() and _is_ours(page(self.left)):
            complain(harmless(f"No report written; {self.left} is that of an earlier call."))


def _written(tables: Sequence[Table], form: TableForm) -> str:
    from uncanny.eval.common.tables.table import tables_latex, tables_markdown

    return tables_markdown(tables) if form == "markdown" else tables_latex(tables)


def check_outputs(outputs: Iterable[Output], inputs: Iterable[Path], *, force: bool) -> None:
    """Raises UsageError for an output that cannot be written or would replace what it must not.

    To be called before anything is asked, scored or written. `inputs` are the files and folders the command
    reads; of a folder, the record files in it, and its images.
    """
    wanted = list(outputs)
    places = list(inputs)
    read = [file for each in places for file in _files(each)]
    folders = [each.resolve() for each in places if each.is_dir()]
    for number, output in enumerate(wanted):
        path = output.path
        if path == STANDARD_OUTPUT:
            raise UsageError("Cannot write to standard output (-) here", remedy="Pass a file.")
        if any(_same(path, other.path) for other in wanted[:number]):
            raise UsageError(f"{path} is given for two outputs", remedy="Pass a file for each.")
        _check_place(path)
        if not path.exists():
            continue
        if any(_same(path, file) for file in read) or (_is_read_in(path, folders) and not _is_ours(output)):
            raise UsageError(
                f"{path} is an input of this command and would be overwritten", remedy="Pass another file."
            )
        if not force and not _is_ours(output):
            raise UsageError(
                f"{path} already exists and is not {output.what}",
                remedy="Pass another file, or replace it with --force.",
            )


def check_run_folder(
    run: Path, inputs: Iterable[Path] = (), *, report: bool = True, force: bool = False
) -> None:
    """Raises UsageError where `run` cannot be written, has a `run.json` or `report.html` of something else,
    or holds an input.

    With `force` a foreign `run.json` is removed, so that a run can begin.
    """
    if run.is_dir() and not _may_write_to(run):
        raise UsageError(
            f"{run} cannot be used as a run folder: permission denied",
            remedy="Pass a folder that you can write to with -o.",
        )
    own = [run / name for name in ("run.json", "calls.jsonl", *run_records())]
    for file in (file for each in inputs if each.is_file() for file in _files(each)):
        if any(_same(file, written) for written in own):
            raise UsageError(
                f"{file} is an input of this command, which would write to it",
                remedy="Pass another folder with -o.",
            )
    manifest = run / "run.json"
    if manifest.is_file() and not _is_manifest(manifest):
        if not force:
            raise UsageError(
                f"{manifest} is not the manifest of a run",
                remedy="Pass another folder with -o, or --force.",
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


def _check_place(path: Path) -> None:
    """Folders that are missing are made when the file is written."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder", remedy="Pass a file.")
    if path.exists() and not stat.S_ISREG(path.stat().st_mode):
        raise UsageError(f"{path} is not a regular file", remedy="Pass another one.")
    parent = path.parent
    while not parent.exists() and parent != parent.parent:
        parent = parent.parent
    if not parent.is_dir():
        raise UsageError(
            f"{path} cannot be written: {parent} is not a folder", remedy="Pass a file in another folder."
        )
    if not _may_write_to(parent):
        raise UsageError(
            f"{path} cannot be written: permission denied", remedy="Pass a file in a folder of yours."
        )


def _may_write_to(folder: Path) -> bool:
    return os.access(folder, os.W_OK | os.X_OK)


def _files(path: Path) -> list[Path]:
    names = (*run_records(), *_BESIDE)
    return [path / name for name in names if (path / name).is_file()] if path.is_dir() else [path]


def _is_read_in(path: Path, folders: Iterable[Path]) -> bool:
    """Whether a file is an image in one of the folders that are read, or a table in one that is no run."""
    from uncanny.images.discover import IMAGE_SUFFIXES
    from uncanny.images.row_files import ROW_SUFFIXES

    file = path.resolve()
    around = [folder for folder in folders if file.is_relative_to(folder)]
    if file.suffix.lower() in ROW_SUFFIXES:
        return any(not (folder / "run.json").is_file() for folder in around)
    return bool(around) and file.suffix.lower() in IMAGE_SUFFIXES


def _same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return os.path.abspath(path) == os.path.abspath(other)  # noqa: PTH100  resolve() would follow links


# `--fail-if` and `--junit`.


def gate_outputs(conditions: Sequence[str], junit: Path | None) -> list[Output]:
    """The JUnit file, to be checked with other outputs. Raises UsageError for one without a condition."""
    if junit is None:
        return []
    if not conditions:
        raise UsageError(
            "--junit writes the conditions of --fail-if, but --fail-if is not given", remedy="Add --fail-if."
        )
    return [_with_mark(junit, "an uncanny JUnit file", b'<testsuites name="uncanny.', 200)]


def pass_gate(
    gate: Callable[[Sequence[str]], GateResult], conditions: Sequence[str], junit: Path | None, *, quiet: bool
) -> bool:
    """Judge, write and tell on standard error, `quiet` only of failures; for when all else is written."""
    from uncanny.eval.common.gates import summary

    if not conditions:
        return True
    result = gate(conditions)
    if junit is not None:
        result.write_junit(junit)
    if not (quiet and result.passed):
        complain(layout(list(summary(result))))
    return result.passed
