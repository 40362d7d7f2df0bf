"""Files of records, read whole or refused: every finding as a record (`Problem`), all of them as one error.

A file with one bad line is not read in part: whoever wrote it learns of everything that is wrong at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal, Protocol, TypeVar

from pydantic import BaseModel, StringConstraints, ValidationError
from pydantic_core import ErrorDetails

from uncanny.errors import Problem, UsageError
from uncanny.eval.common.inputs.table_records import open_lines
from uncanny.wording import shown

T = TypeVar("T", bound=BaseModel)
NonEmpty = Annotated[str, StringConstraints(min_length=1)]

UTF8_MARK = b"\xef\xbb\xbf"
_SHOWN = 80


def of_validation(error: ValidationError, *, item: str | None, line: int | None) -> list[Problem]:
    """Every finding of pydantic about one record."""
    return [Problem(item, _field(details), _message(details), line=line) for details in error.errors()]


def _field(details: ErrorDetails) -> str | None:
    parts = [str(part) if len(str(part)) <= _SHOWN else "…" for part in details["loc"] if part != "[key]"]
    return ".".join(parts) or None


def _message(details: ErrorDetails) -> str:
    value, place = details["input"], details["loc"]
    if details["type"] == "missing":
        return "is missing"
    if details["type"] == "json_invalid":
        return f"not valid JSON ({details['ctx']['error']})"
    if details["type"] == "string_too_short" and not value:
        return "is empty"
    if "[key]" in place:
        advice = (
            "E is added when the question is asked; leave it out" if value == "E" else "use A, B, C and D"
        )
        return f"the letter {shown(value)} is outside A–D; {advice}"
    if place and place[-1] in ("answer", "ref", "q1_ref") and not value:
        return "the reference answer is empty; give the right answer"
    return f"{details['msg']}, not {shown(value)}"


def first_line(line: bytes, file: Path) -> bytes:
    """The beginning of JSON Lines without a mark of UTF-8. Raises UsageError where it begins a JSON list."""
    line = line.removeprefix(UTF8_MARK)
    if line.lstrip().startswith(b"["):
        raise UsageError(
            f"{file} is a JSON list instead of JSON Lines",
            remedy="Write one object per line, without the list around them, as `jq -c '.[]'` does.",
        )
    return line


def parse_records(
    path: Path,
    model: type[T],
    *,
    root: Path | None = None,
    named_by: Literal["id", "image"] = "id",
    growing: bool = False,
) -> tuple[list[tuple[int, T]], list[Problem]]:
    """The valid lines of a JSON Lines file with their numbers, and everything wrong with the others.

    Problems name a line by what it has under `named_by`. Rows of a table are lines, too, see
    `table_records`; their pictures are paths from `root`. A `growing` file is a log: a last line that is
    half-written is passed over, as in `whole_lines`. Raises UsageError for a file that cannot be read, or
    is a JSON list.
    """
    records: list[tuple[int, T]] = []
    problems: list[Problem] = []
    needed = {name for name, field in model.model_fields.items() if field.is_required()}
    try:
        with open_lines(path, root, needed=needed) as file:
            for number, raw in enumerate(file, start=1):
                line = first_line(raw, path) if number == 1 else raw
                if not line.strip():
                    continue
                try:
                    records.append((number, model.model_validate_json(line)))
                except ValidationError as error:
                    if growing and not raw.endswith(b"\n"):
                        break
                    problems += of_validation(error, item=_name_of(line, named_by), line=number)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror or error}", remedy="Give a JSON Lines or Parquet file."
        ) from error
    return records, problems


def _name_of(line: bytes, key: str) -> str | None:
    """The name on a line that does not validate, as far as there is one."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    name = record.get(key) if isinstance(record, dict) else None
    return name if isinstance(name, str) else None


Named = Iterable[tuple[int | None, str]]


def repeated(
    records: Named, field: Literal["id", "image"], advice: str, invalid: Iterable[Problem] = ()
) -> list[Problem]:
    """A problem for every record whose name another one had before.

    `records` are lines, None where no file has them, and names. `invalid` are the problems of lines that did
    not become records: their names count too, so that whatever else is wrong with a line hides no other.
    """
    named = [*records]
    known = {line for line, _ in named}
    others = ((each.line, each.item) for each in invalid if each.line is not None and each.line not in known)
    named += dict.fromkeys((line, name) for line, name in others if name is not None)
    if all(line is not None for line, _ in named):
        named.sort(key=lambda each: each[0] or 0)
    seen: dict[str, int | None] = {}
    problems = []
    for line, name in named:
        if name in seen:
            what = "the id was used before" if field == "id" else "the image was there before"
            where = "" if seen[name] is None else f", at line {seen[name]}"
            problems.append(Problem(name, field, f"{what}{where}; {advice}", line=line))
        seen.setdefault(name, line)
    return problems


def repeated_ids(
    records: Iterable[tuple[int | None, HasId]], advice: str, invalid: Iterable[Problem] = ()
) -> list[Problem]:
    """`repeated` of records that are called by their ids."""
    return repeated(((line, record.id) for line, record in records), "id", advice, invalid)


class HasId(Protocol):
    """What is called by an id of its own."""

    @property
    def id(self) -> str: ...


def by_line(problem: Problem) -> int:
    return problem.line or 0
