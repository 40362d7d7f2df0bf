"""One row of the release's flat table as an item: all versions of the columns are understood.

Rows of a flat table, one at a time: Parquet, CSV or JSON Lines, one file or a folder of shards."""

from __future__ import annotations

import ast
import csv
import importlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from uncanny.errors import UsageError
from uncanny.eval.common.problems import Problem, shown
from uncanny.eval.mcq.data.items import QUESTIONS, ArtifactType, Question

ROLES = ("artifact", "clean_reference", "paired_generated_counterpart")
STANDARD_E = {"q2": "none of these regions", "q4": "none of these descriptions"}

_LETTERS = "ABCDE"
_ANSWERS: dict[Question, str] = {"q1": "yes or no", "q2": "A–E", "q3": "A–E", "q4": "A–E"}
_ASKS_FOR_JSON = re.compile(r"\bjson\b", re.IGNORECASE)

Row = Mapping[str, Any]


class RowFault(Exception):
    """One cell that cannot be read: the column, and what to do."""

    def __init__(self, column: str, message: str) -> None:
        super().__init__(message)
        self.column, self.message = column, message


def text(row: Row, column: str) -> str | None:
    """A cell's text; None where the column is missing, null or blank. Raises RowFault."""
    value = row.get(column)
    if value is None or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, float) and value.is_integer():  # numbers beside empty cells, as pandas writes them
        value = int(value)
    if not isinstance(value, str | int):
        raise RowFault(column, f"{shown(value)} is no text")
    return str(value) if str(value).strip() else None


def structured(row: Row, column: str) -> Any:
    """A cell that holds a struct, a list, or either as JSON or as Python writes it; None where empty."""
    value = row.get(column)
    if not isinstance(value, str):
        return None if isinstance(value, float) and value != value else value
    if not value.strip():
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            return read(value)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    raise RowFault(column, f"{shown(value)} is neither JSON nor a list; give the options A–E")


def options(row: Row, question: str) -> dict[str, str]:
    """The texts A–E, as far as the row has them, in this order; empty where it has none.

    Read from `qN_options` (struct, mapping, list of A–E in this order, pairs of letter and text) and from
    the older `qN_option_a` … `qN_option_e`. Raises RowFault.
    """
    column = f"{question}_options"
    found = _by_letter(structured(row, column), column)
    for letter in _LETTERS:
        single = text(row, f"{question}_option_{letter.lower()}")
        if single is not None:
            found.setdefault(letter, single)
    return {letter: found[letter] for letter in _LETTERS if letter in found}


def _by_letter(value: Any, column: str) -> dict[str, str]:
    if value is None:
        return {}
    if isinstance(value, list | tuple):
        value = _from_list(list(value), column)
    if not isinstance(value, Mapping):
        raise RowFault(column, f"{shown(value)} is no set of options; give texts for A–E")
    found: dict[str, str] = {}
    for key, option in value.items():
        letter = str(key).strip().upper()
        if option is None:  # a struct column has every letter in every row
            continue
        if letter not in _LETTERS or len(letter) != 1:
            raise RowFault(column, f"the letter {shown(key)} is outside A–E")
        if not isinstance(option, str):
            raise RowFault(column, f"option {letter} is {shown(option)}, no text")
        found[letter] = option
    return found


def _from_list(value: list[Any], column: str) -> dict[Any, Any]:
    if value and all(isinstance(entry, list | tuple) and len(entry) == 2 for entry in value):
        return dict(value)  # how Arrow hands out a map
    if not 4 <= len(value) <= 5:
        raise RowFault(column, f"a list of {len(value)} options; give four (A–D) or five (A–E)")
    return dict(zip(_LETTERS, value, strict=False))


def artifact_type(row: Row) -> ArtifactType | None:
    """Our name for the row's type; `count_anomaly` and the like are understood. Raises RowFault."""
    given = text(row, "artifact_type")
    return None if given is None else read_type(given)


def read_type(given: str) -> ArtifactType:
    """Our name for a type as releases and annotators write it. Raises RowFault."""
    name = re.sub(r"[^a-z]+", "_", given.lower()).strip("_").removesuffix("_anomaly")
    if name.startswith("local"):  # "local render/structure"
        return "local_render"
    for known in get_args(ArtifactType):
        if name in (known, f"{known}s"):
            return known  # type: ignore[no-any-return]
    raise RowFault("artifact_type", f"{shown(given)} is none of {', '.join(get_args(ArtifactType))}")


def answers(row: Row) -> dict[Question, str]:
    """The right answers of the questions asked: `yes`/`no` and letters. Raises RowFault."""
    found: dict[Question, str] = {}
    for question in QUESTIONS:
        given = text(row, f"{question}_answer")
        if given is None:
            continue
        plain = given.strip().lower() if question == "q1" else given.strip().upper()
        if plain not in (("yes", "no") if question == "q1" else tuple(_LETTERS)):
            raise RowFault(f"{question}_answer", f"{shown(given)} is not {_ANSWERS[question]}")
        found[question] = plain
    return found


def prompts(row: Row, asked: Mapping[Question, str]) -> dict[Question, str] | None:
    """The texts as a model is to see them, whole; None where the row has none. Raises RowFault.

    The first releases leave the options of Q2 and Q4 out of the prompt and add them when asking, which is
    done here; later ones have them in it.
    """
    found: dict[Question, str] = {}
    for question in asked:
        given = text(row, f"{question}_prompt")
        if given is None:
            continue
        if question in ("q2", "q4"):
            given = _with_options(given, {"E": STANDARD_E[question], **options(row, question)})
        found[question] = given
    return found or None


def _with_options(prompt: str, texts: Mapping[str, str]) -> str:
    if all(_mentions(prompt, letter, option) for letter, option in texts.items() if letter != "E"):
        return prompt
    return f"{prompt}\n\nOptions:\n" + "\n".join(f"{letter}. {texts[letter]}" for letter in sorted(texts))


def _mentions(prompt: str, letter: str, option: str) -> bool:
    """Whether the prompt lists this option: its letter, at most a little punctuation, its text."""
    forms = {re.escape(option.strip()), re.escape(json.dumps(option.strip(), ensure_ascii=False)[1:-1])}
    return re.search(rf"\b{letter}\b\W{{0,6}}(?:{'|'.join(forms)})", prompt) is not None


def item_fields(row: Row) -> dict[str, Any]:
    """Everything of an item that does not need its images, its split or its pair. Raises RowFault."""
    asked = answers(row)
    texts = prompts(row, asked)
    system = text(row, "system_prompt")
    wants_json = any(_ASKS_FOR_JSON.search(said) for said in (system or "", *(texts or {}).values()))
    fields: dict[str, Any] = {
        "q1": {"answer": asked["q1"]} if "q1" in asked else None,
        "q2": _choice(row, "q2", asked),
        "q3": {"boxes": structured(row, "q3_boxes") or {}, "answer": asked["q3"]} if "q3" in asked else None,
        "q4": _choice(row, "q4", asked),
    }
    if texts is not None:
        form = text(row, "answer_form") or ("json" if wants_json else "letter")
        fields |= {"prompts": texts, "answer_form": form}
        fields |= {"system": system} if system is not None else {}
    return fields


def _choice(row: Row, question: Question, asked: Mapping[Question, str]) -> dict[str, Any] | None:
    if question not in asked:
        return None
    texts = options(row, question)
    last = texts.pop("E", None)
    own = {} if last in (None, STANDARD_E[question]) else {"option_e": last}
    return {"options": texts, "answer": asked[question], **own}


def problem_of(row_id: str | None, fault: RowFault, number: int) -> Problem:
    """The fault as a finding about a row; rows count from 1."""
    return Problem(row_id, fault.column, f"row {number}: {fault.message}")


IMAGE_COLUMNS = ("image", "q3_overlay_image")
SUFFIXES = (".parquet", ".csv", ".jsonl")

_ROWS_AT_ONCE = 8
_BUFFER = 2**20  # bytes; without one, all columns of a row group would be read before the first row
_CELL_LIMIT = 2**30  # bytes in one CSV cell: a picture as text


def pyarrow(module: str) -> Any:
    """A module of pyarrow. Raises UsageError where it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(
            "Parquet needs pyarrow, which is not installed",
            remedy="Run `pip install 'uncanny[parquet]'`, or use CSV.",
        ) from error


def table_files(path: Path) -> tuple[Path, ...]:
    """The table's files in order of their names. A folder holds shards, itself or in `data/`.

    Raises UsageError where there is no table.
    """
    if not path.is_dir():
        if not path.is_file():
            raise UsageError(f"{path} does not exist", remedy="Give the table's file or folder.")
        if path.suffix.lower() not in SUFFIXES:
            raise UsageError(f"{path} is no table", remedy=f"Give a file in {', '.join(SUFFIXES)}.")
        return (path,)
    for folder in (path, path / "data"):
        for suffix in SUFFIXES:
            found = sorted(entry for entry in folder.glob(f"*{suffix}") if entry.is_file())
            if found:
                return tuple(found)
    raise UsageError(
        f"{path} holds no table", remedy=f"Files in {', '.join(SUFFIXES)} are looked for, also in data/."
    )


def columns(file: Path) -> frozenset[str]:
    """The table's columns; of JSON Lines, the keys of the first row. Raises UsageError."""
    if file.suffix.lower() == ".parquet":
        with _parquet(file) as table:
            return frozenset(table.schema_arrow.names)
    return frozenset(key for key in next(rows(file), {}) if isinstance(key, str))


def rows(file: Path, *, without: Collection[str] = ()) -> Iterator[dict[str, Any]]:
    """All rows, one Parquet row group or one row in memory at a time; columns in `without` may be left out.

    Raises UsageError where the file cannot be read.
    """
    kind = file.suffix.lower()
    if kind == ".parquet":
        yield from _parquet_rows(file, without)
    elif kind == ".csv":
        yield from _csv_rows(file)
    else:
        yield from _json_rows(file)


def _parquet(file: Path) -> Any:
    arrow, parquet = pyarrow("pyarrow"), pyarrow("pyarrow.parquet")
    try:
        return parquet.ParquetFile(file, buffer_size=_BUFFER, pre_buffer=False)
    except (arrow.ArrowException, OSError) as error:
        raise _unreadable(file, error) from error


def _parquet_rows(file: Path, without: Collection[str]) -> Iterator[dict[str, Any]]:
    arrow = pyarrow("pyarrow")
    with _parquet(file) as table:
        wanted = [name for name in table.schema_arrow.names if name not in without]
        try:
            for batch in table.iter_batches(batch_size=_ROWS_AT_ONCE, columns=wanted):
                yield from batch.to_pylist()
        except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
            raise _unreadable(file, error) from error


def _csv_rows(file: Path) -> Iterator[dict[str, Any]]:
    csv.field_size_limit(_CELL_LIMIT)
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            for row in csv.DictReader(stream, strict=True):
                yield {key: value or None for key, value in row.items() if key is not None}
    except (csv.Error, OSError, UnicodeDecodeError) as error:
        raise _unreadable(file, error) from error


def _json_rows(file: Path) -> Iterator[dict[str, Any]]:
    try:
        with file.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                if not line.strip():
                    continue
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise ValueError(f"line {number} is no object")
                yield row
    except (ValueError, RecursionError, OSError) as error:
        raise _unreadable(file, error) from error


def missing_columns(found: Collection[str]) -> Sequence[str]:
    """What a flat table needs and this one lacks."""
    needed = ["row_id", "image_role", *(f"q{number}_answer" for number in range(1, 5))]
    missing = [column for column in needed if column not in found]
    missing += [f"{q}_options" for q in ("q2", "q4") if not {f"{q}_options", f"{q}_option_a"} & set(found)]
    if not {"image", "image_path"} & set(found):
        missing.append("image")
    return missing


def _unreadable(file: Path, error: Exception) -> UsageError:
    return UsageError(f"{file} cannot be read as a table: {error}", remedy="Was the download cut off?")
