"""A file of images taken apart: JSON Lines, one JSON object with the images as keys, or a JSON list."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from uncanny.errors import UsageError
from uncanny.eval.mcq.problems import Problem, shown

_UTF8_MARK = b"\xef\xbb\xbf"
TEXT_KEYS = ("text", "answer", "raw")
# Keys of a record: an object with one of them and no image is not an object of images.
_RECORD_KEYS = frozenset({"anomalies", "status", "source", "sha256", "prompts", *TEXT_KEYS})


class Entry(NamedTuple):
    """What a file holds of one image: a record, a list of anomalies, or an answer as text."""

    image: str
    value: Any
    line: int | None


def read_bytes(path: Path) -> bytes:
    """Raises UsageError where the file cannot be read or is empty."""
    try:
        data = path.read_bytes().removeprefix(_UTF8_MARK)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror or error}",
            remedy="Name a JSON or JSON Lines file, or a run folder.",
        ) from error
    if not data.strip():
        raise UsageError(f"{path} is empty", remedy="Give a file with an image a line.")
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
    entries: list[Entry] = []
    problems: list[Problem] = []
    if isinstance(value, dict):
        _add(value, outermost, None, entries, problems)
        entries = _with_lines(entries, text)
    elif isinstance(value, list):
        for number, record in enumerate(value):
            if isinstance(record, dict) and isinstance(record.get("image"), str):
                entries.append(Entry(record["image"], record, None))
            else:
                problems.append(Problem(None, f"{number}.image", "is missing"))
    else:
        problems.append(Problem(None, None, f"must hold images, not {shown(value)}"))
    return entries, problems


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
        entries += [Entry(image, [] if held is None else held, line) for image, held in pairs]


def _with_lines(entries: list[Entry], text: str) -> list[Entry]:
    """Where each key stands, as far as it is written plainly."""
    found: list[Entry] = []
    at, line = 0, 1
    for entry in entries:
        written = {json.dumps(entry.image, ensure_ascii=False), json.dumps(entry.image)}
        place = re.compile("(?:" + "|".join(map(re.escape, written)) + r")\s*:").search(text, at)
        if place is None:
            found.append(entry)
            continue
        line += text.count("\n", at, place.start())
        found.append(entry._replace(line=line))
        at = place.start() + 1
    return found
