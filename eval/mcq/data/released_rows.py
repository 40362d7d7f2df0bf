"""One row of the release's flat table as the fields and pictures of an item: all versions of its columns.

Cells come as Parquet has them (structs, bytes) or as text that holds the same (CSV). What cannot be read is a
`CellError`, which names the column and what to do.
"""

from __future__ import annotations

import ast
import base64
import binascii
import json
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, time
from pathlib import Path
from typing import Any, get_args

from uncanny.errors import ImageError, Problem
from uncanny.eval.mcq.data.items import QUESTIONS, ArtifactType, Item, Question, Split
from uncanny.images.encode import PixelPolicy
from uncanny.images.file_bytes import read_image_file
from uncanny.wording import shown

ROLE: Mapping[Split, str] = {
    "art_dg": "artifact",
    "art_pg": "artifact",
    "ref_real": "clean_reference",
    "ref_pg": "paired_generated_counterpart",
}
ROLES = tuple(dict.fromkeys(ROLE.values()))
STANDARD_E = {"q2": "none of these regions", "q4": "none of these descriptions"}

IMAGE_COLUMNS = ("image", "q3_overlay_image")
_LETTERS = "ABCDE"
# Every column that has a meaning here; all others are an item's further keys.
COLUMNS = frozenset(
    {
        *("row_id", "image_role", "split", "pair_id", "artifact_type", "prompts_id", "system_prompt"),
        *("answer_form", "q3_boxes", *IMAGE_COLUMNS, *(f"{column}_path" for column in IMAGE_COLUMNS)),
        *(f"{question}_{part}" for question in QUESTIONS for part in ("prompt", "options", "answer")),
        *(f"{question}_option_{letter.lower()}" for question in ("q2", "q4") for letter in _LETTERS),
    }
)
_ANSWERS: dict[Question, str] = {"q1": "yes or no", "q2": "A–E", "q3": "A–E", "q4": "A–E"}
_ASKS_FOR_JSON = re.compile(r"\bjson\b", re.IGNORECASE)

Row = Mapping[str, Any]


class CellError(Exception):
    """One cell that cannot be read: the column, and what to do."""

    def __init__(self, column: str, message: str) -> None:
        super().__init__(message)
        self.column, self.message = column, message


def text(row: Row, column: str) -> str | None:
    """A cell's text; None where the column is missing, null or blank. Raises CellError."""
    value = row.get(column)
    if value is None or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, float) and value.is_integer():  # numbers beside empty cells, as pandas writes them
        value = int(value)
    if not isinstance(value, str | int):
        raise CellError(column, f"{shown(value)} is not text")
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
    raise CellError(column, f"{shown(value)} is neither JSON nor a list; give the options A–E")


def options(row: Row, question: str) -> dict[str, str]:
    """The texts A–E, as far as the row has them, in this order; empty where it has none.

    Read from `qN_options` (struct, mapping, list of A–E in this order, pairs of letter and text) and from
    the older `qN_option_a` … `qN_option_e`. Raises CellError.
    """
    column = f"{question}_options"
    texts = _by_letter(structured(row, column), column)
    for letter in _LETTERS:
        single = text(row, f"{question}_option_{letter.lower()}")
        if single is not None:
            texts.setdefault(letter, single)
    return {letter: texts[letter] for letter in _LETTERS if letter in texts}


def _by_letter(value: Any, column: str) -> dict[str, str]:
    if value is None:
        return {}
    if isinstance(value, list | tuple):
        if value and all(isinstance(entry, list | tuple) and len(entry) == 2 for entry in value):
            value = dict(value)  # how Arrow hands out a map
        elif 4 <= len(value) <= 5:
            value = dict(zip(_LETTERS, value, strict=False))
        else:
            raise CellError(column, f"a list of {len(value)} options; give four (A–D) or five (A–E)")
    if not isinstance(value, Mapping):
        raise CellError(column, f"{shown(value)} is not a set of options; give texts for A–E")
    texts: dict[str, str] = {}
    for key, option in value.items():
        letter = str(key).strip().upper()
        if option is None:  # a struct column has every letter in every row
            continue
        if letter not in _LETTERS or len(letter) != 1:
            raise CellError(column, f"the letter {shown(key)} is outside A–E")
        if not isinstance(option, str):
            raise CellError(column, f"option {letter} is {shown(option)}, no text")
        texts[letter] = option
    return texts


def artifact_type(row: Row) -> ArtifactType | None:
    """Our name for the row's type; `count_anomaly` and the like are understood. Raises CellError."""
    name = text(row, "artifact_type")
    return None if name is None else read_type(name)


def read_type(written: str) -> ArtifactType:
    """Our name for a type as releases and annotators write it. Raises CellError."""
    name = re.sub(r"[^a-z]+", "_", written.lower()).strip("_").removesuffix("_anomaly")
    if name.startswith("local"):  # "local render/structure"
        return "local_render"
    for known in get_args(ArtifactType):
        if name in (known, f"{known}s"):
            return known  # type: ignore[no-any-return]
    raise CellError("artifact_type", f"{shown(written)} is not one of {', '.join(get_args(ArtifactType))}")


def answers(row: Row) -> dict[Question, str]:
    """The right answers of the questions asked: `yes`/`no` and letters. Raises CellError."""
    right: dict[Question, str] = {}
    for question in QUESTIONS:
        answer = text(row, f"{question}_answer")
        if answer is None:
            continue
        plain = answer.strip().lower() if question == "q1" else answer.strip().upper()
        if plain not in (("yes", "no") if question == "q1" else tuple(_LETTERS)):
            raise CellError(f"{question}_answer", f"{shown(answer)} is not {_ANSWERS[question]}")
        right[question] = plain
    return right


def prompts(row: Row, questions: Iterable[Question]) -> dict[Question, str] | None:
    """The texts as a model is to see them, whole; None where the row has none. Raises CellError.

    The first releases leave the options of Q2 and Q4 out of the prompt and add them when asking, which is
    done here; later ones have them in it, and so have tables that uncanny wrote, which say the answer's form.
    """
    whole = text(row, "answer_form") is not None
    texts: dict[Question, str] = {}
    for question in questions:
        prompt = text(row, f"{question}_prompt")
        if prompt is None:
            continue
        if question in ("q2", "q4") and not whole:
            prompt = _with_options(prompt, {"E": STANDARD_E[question], **options(row, question)})
        texts[question] = prompt
    return texts or None


def _with_options(prompt: str, texts: Mapping[str, str]) -> str:
    if all(_mentions(prompt, letter, option) for letter, option in texts.items() if letter != "E"):
        return prompt
    return f"{prompt}\n\nOptions:\n" + "\n".join(f"{letter}. {texts[letter]}" for letter in sorted(texts))


def _mentions(prompt: str, letter: str, option: str) -> bool:
    """Whether the prompt lists this option: its letter, at most a little punctuation, its text."""
    forms = {re.escape(option.strip()), re.escape(json.dumps(option.strip(), ensure_ascii=False)[1:-1])}
    return re.search(rf"\b{letter}\b\W{{0,6}}(?:{'|'.join(forms)})", prompt) is not None


def item_fields(row: Row) -> dict[str, Any]:
    """Everything of an item that does not need its images, its split or its pair. Raises CellError."""
    right = answers(row)
    texts = prompts(row, right)
    system = text(row, "system_prompt")
    wants_json = any(_ASKS_FOR_JSON.search(prompt) for prompt in (system or "", *(texts or {}).values()))
    fields: dict[str, Any] = {
        "q1": {"answer": right["q1"]} if "q1" in right else None,
        "q2": _choice(row, "q2", right),
        "q3": {"boxes": structured(row, "q3_boxes") or {}, "answer": right["q3"]} if "q3" in right else None,
        "q4": _choice(row, "q4", right),
    }
    if texts is not None:
        form = text(row, "answer_form") or ("json" if wants_json else "letter")
        fields |= {"prompts": texts, "answer_form": form}
        fields |= {"system": system} if system is not None else {}
        prompts_id = text(row, "prompts_id")
        fields |= {"prompts_id": prompts_id} if prompts_id is not None else {}
    return fields


def further_keys(row: Row) -> dict[str, Any]:
    """What a row says beyond the columns of a flat table, such as a generator or a group.

    Empty cells and what JSON has no form for, such as the bytes of further pictures, are left out.
    """
    keys = row.keys() - COLUMNS - Item.model_fields.keys()
    cells = {key: _json_value(row[key]) for key in row if key in keys and isinstance(key, str) and key}
    return {key: value for key, value in cells.items() if value is not None}


def _json_value(value: Any) -> Any:
    """A cell as JSON has it; None where it has no value, or no form there."""
    if isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, list):
        values = [_json_value(each) for each in value]
        return None if None in values else values
    if isinstance(value, Mapping):
        fields = {str(key): _json_value(each) for key, each in value.items() if each is not None}
        return None if None in fields.values() else fields
    return None


def _choice(row: Row, question: Question, right: Mapping[Question, str]) -> dict[str, Any] | None:
    if question not in right:
        return None
    texts = options(row, question)
    last = texts.pop("E", None)
    own = {} if last in (None, STANDARD_E[question]) else {"option_e": last}
    return {"options": texts, "answer": right[question], **own}


def problem_of(row_id: str | None, error: CellError, number: int) -> Problem:
    """The error as a problem of a row; rows count from 1."""
    return Problem(row_id, error.column, f"row {number}: {error.message}")


def missing_columns(names: Collection[str]) -> Sequence[str]:
    """What a flat table needs and this one lacks."""
    needed = ["row_id", "image_role", *(f"q{number}_answer" for number in range(1, 5))]
    missing = [column for column in needed if column not in names]
    missing += [f"{q}_options" for q in ("q2", "q4") if not {f"{q}_options", f"{q}_option_a"} & set(names)]
    if not {"image", "image_path"} & set(names):
        missing.append("image")
    return missing


def _picture(row: Row, column: str, folder: Path) -> bytes | None:
    """The bytes of a picture cell; None where it is empty.

    A cell is `{bytes, path}`, bytes, a `data:` URL, or a path below `folder`, which is the table's own; the
    older `<column>_path` is understood. Raises CellError, also for a path that leads out of the folder.
    """
    value = row.get(column)
    if value is None:
        value = row.get(f"{column}_path")
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = structured({column: value}, column)
    if isinstance(value, Mapping):
        data = value.get("bytes")
        value = data if data is not None else value.get("path")
        if isinstance(data, str):
            value = f"data:;base64,{data}"
    if value is None or isinstance(value, bytes):
        return value or None
    if not isinstance(value, str):
        raise CellError(column, f"{shown(value)} is not a picture; give its bytes or its path")
    return _picture_bytes(value, column, folder)


def _picture_bytes(value: str, column: str, folder: Path) -> bytes:
    if value.startswith("data:"):
        try:
            return base64.b64decode(value.partition(",")[2], validate=True)
        except (binascii.Error, ValueError) as error:
            raise CellError(column, f"not valid base64 ({error})") from error
    try:
        inside = folder.resolve()
        if not (folder / value).resolve().is_relative_to(inside):
            raise CellError(column, f"the path {shown(value)} leads out of the table's folder")
        return read_image_file(folder / value, PixelPolicy().max_file_bytes, [inside])
    except ImageError as error:
        raise CellError(column, f"{shown(value)}: {error.message}") from error
    except (OSError, ValueError, RuntimeError) as error:
        raise CellError(column, f"{shown(value)} is not a path that can be read") from error


def pictures(row: dict[str, Any], folder: Path) -> tuple[bytes, bytes | None]:
    """The image and the stored Q3 overlay, if any. Raises CellError."""
    image = _picture(row, "image", folder)
    if image is None:
        raise CellError("image", "the row has no picture; embed its bytes or give its path")
    return image, _picture(row, "q3_overlay_image", folder)
