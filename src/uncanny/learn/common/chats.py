"""Chats that a model is trained on: lines of `train.jsonl` as `uncanny export` writes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field

from uncanny.errors import ItemsError, UsageError
from uncanny.eval.common.inputs.problems import parse_records
from uncanny.schema import Record

TRAIN: Final = "train.jsonl"
TEST: Final = "test.jsonl"


class Turn(Record):
    """A message of a chat; `content` is a text, or a list of parts as the chat templates take them."""

    role: Literal["system", "user", "assistant"]
    content: str | list[dict[str, Any]]


class Chat(Record):
    """A line of a file of chats. `images` are paths from the file's folder, in the order of the chat."""

    messages: list[Turn] = Field(min_length=2)
    images: list[str] = Field(min_length=1)
    run_image: str | None = None
    sha256: str | None = None
    group: str | None = None
    part: int = 1
    parts: int = 1


def chats_file(data: Path) -> Path:
    """The file of chats that `data` names: itself, or train.jsonl in a folder or in its `sft` folder.

    Raises UsageError where there is none.
    """
    if data.is_file():
        return data
    there = [data / TRAIN, *(data / name / TRAIN for name in ("sft", "sft-detect"))]
    files = [each for each in there if each.is_file()]
    if len(files) != 1:
        what = "contains several files of chats" if files else "has no file of chats, train.jsonl"
        if not data.exists():
            what = "does not exist"
        raise UsageError(
            f"{data} {what}", remedy="Pass the file that `uncanny export` wrote as sft or sft-detect."
        )
    return files[0]


def read_chats(file: Path) -> Sequence[Chat]:
    """All chats of a file. Raises ItemsError with everything that is wrong, UsageError for an empty file."""
    records, problems = parse_records(file, Chat, named_by="image")
    if problems:
        raise ItemsError(str(file), problems, remedy="Export the run again.")
    if not records:
        raise UsageError(f"{file} has no chats", remedy="Review more images, then export again.")
    return [chat for _, chat in records]
