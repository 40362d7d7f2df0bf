"""Files that say something of images, taken apart: whichever of the three usual forms they have.

JSON Lines of records (or of objects with images as keys), one JSON list of records, or one JSON object with
the images as keys. What stands there of an image, an `Entry`, is for the protocol to read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from uncanny.errors import Problem, UsageError
from uncanny.eval.common.inputs.problems import UTF8_MARK, repeated
from uncanny.eval.common.inputs.table_records import open_lines
from uncanny.wording import shown

# The words for a model's answer as plain text, in place of a list of anomalies.
TEXT_KEYS = ("text", "answer", "raw")

# Keys of a record: an object with one of them and no image is not an object of images.
_RECORD_KEYS = frozenset({"anomalies", "status", "source", "sha256", "prompts", *TEXT_KEYS})


class Entry(NamedTuple):
    """What a file has of one image: a record, a list of anomalies, or an answer as text.

    `line` counts from 1 and is None where the entry has no line that could be told.
    """

    image: str
    value: Any
    line: int | None


def read_bytes(path: Path) -> bytes:
    """The file without a byte order mark, a table as JSON Lines, see `table_records`.

    Raises UsageError where it cannot be read or is empty.
    """
    try:
        with open_lines(path) as file:
            data = file.read().removeprefix(UTF8_MARK)
    except (OSError, ValueError) as error:  # a name may hold what no path can
        raise UsageError(
            f"{path} cannot be read: {getattr(error, 'strerror', None) or error}",
            remedy="Pass a JSON or JSON Lines file, or a run folder.",
        ) from error
    if not data.strip():
        raise UsageError(f"{path} is empty", remedy="Give a file with one image per line.")
    return data


def take_apart(data: bytes, path: Path) -> tuple[list[Entry], list[Problem]]:
    """All entries in order, repeated images too, and what is wrong with the rest.

    It is JSON Lines where the first line is JSON by itself and not the only one, else one JSON value.
    """
    lines = [(number, line) for number, line in enumerate(data.splitlines(), start=1) if line.strip()]
    if len(lines) > 1 and _is_json(lines[0][1]):
        return _from_lines(lines)
    try:
        return _from_document(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return [], [Problem(None, None, "is not UTF-8", line=line)]
    except json.JSONDecodeError as error:
        if path.suffix == ".jsonl":
            return _from_lines(lines)
        return [], [Problem(None, None, f"not valid JSON ({error.msg})", line=error.lineno)]
    except RecursionError:
        return [], [Problem(None, None, "not valid JSON (nested too deeply)")]


def from_records(records: Iterable[Any]) -> tuple[list[Entry], list[Problem]]:
    """The same of records in memory: an object each, with the image's name under `image`."""
    entries: list[Entry] = []
    problems: list[Problem] = []
    for number, record in enumerate(records):
        if isinstance(record, dict) and isinstance(record.get("image"), str):
            entries.append(Entry(record["image"], record, None))
        else:
            problems.append(Problem(None, f"{number}.image", "is missing"))
    return entries, problems


def repeated_images(entries: Sequence[Entry], invalid: Iterable[Problem] = ()) -> list[Problem]:
    """A problem for each entry whose image an earlier one has already; `invalid` is as in `repeated`."""
    return repeated(((each.line, each.image) for each in entries), "image", "keep one of them", invalid)


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True


def _from_lines(lines: Iterable[tuple[int, bytes]]) -> tuple[list[Entry], list[Problem]]:
    entries: list[Entry] = []
    problems: list[Problem] = []
    for number, line in lines:
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            problems.append(Problem(None, None, f"not valid JSON ({error.msg})", line=number))
            continue
        if isinstance(value, dict):
            _add(value, list(value.items()), number, entries, problems)
        else:
            problems.append(
                Problem(None, None, f"must be an object with an image, not {shown(value)}", line=number)
            )
    return entries, problems


def _from_document(text: str) -> tuple[list[Entry], list[Problem]]:
    outermost: list[tuple[str, Any]] = []

    def keep(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal outermost
        outermost = pairs  # the last object to be closed is the outermost one
        return dict(pairs)

    value = json.loads(text, object_pairs_hook=keep)
    if isinstance(value, list):
        return from_records(value)
    if not isinstance(value, dict):
        return [], [Problem(None, None, f"must hold images, not {shown(value)}")]
    entries: list[Entry] = []
    problems: list[Problem] = []
    _add(value, outermost, None, entries, problems)
    return _with_lines(entries, text), problems


def _add(
    value: dict[str, Any],
    pairs: list[tuple[str, Any]],
    line: int | None,
    entries: list[Entry],
    problems: list[Problem],
) -> None:
    if isinstance(value.get("image"), str):
        entries.append(Entry(value["image"], value, line))
    elif _RECORD_KEYS & value.keys() or not all(
        isinstance(each, list | str | dict | None) for each in value.values()
    ):
        message = f"must be a string, not {shown(value['image'])}" if "image" in value else "is missing"
        problems.append(Problem(None, "image", message, line=line))
    else:
        # The authors' scorer takes null for an empty list too.
        entries += [Entry(image, [] if content is None else content, line) for image, content in pairs]


def _with_lines(entries: list[Entry], text: str) -> list[Entry]:
    """Where each key stands, as far as it is written plainly."""
    located: list[Entry] = []
    at, line = 0, 1
    for entry in entries:
        spellings = {json.dumps(entry.image, ensure_ascii=False), json.dumps(entry.image)}
        place = re.compile("(?:" + "|".join(map(re.escape, spellings)) + r")\s*:").search(text, at)
        if place is None:
            located.append(entry)
            continue
        line += text.count("\n", at, place.start())
        located.append(entry._replace(line=line))
        at = place.start() + 1
    return located
