"""Captions to be checked, and the record of each check."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from uncanny import StepError, Usage
from uncanny.errors import ItemsError, Problem
from uncanny.extend import parse_records

Status = Literal["checked", "failed", "unreadable"]
STATUSES: tuple[Status, ...] = ("checked", "failed", "unreadable")


class Caption(BaseModel):
    """One line of a caption file. `fits` is what people say; None where nobody was asked."""

    model_config = ConfigDict(frozen=True)

    id: str
    image: str
    caption: str
    fits: bool | None = None


class CaptionCheck(BaseModel):
    """One line of `checks.jsonl`.

    `fits` and `why` are the model's; None where the call failed or the image cannot be read, and `errors` say
    how. `image` is named from the run folder; `sha256` and `file_stamp` are those of the file as it was read.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    image: str
    caption: str
    status: Status
    model: str
    prompts: str
    fits: bool | None = None
    why: str | None = None
    sha256: str | None = None
    file_stamp: str | None = None
    errors: tuple[StepError, ...] = ()
    usage: Usage = Usage()


def load(path: str | Path) -> tuple[Caption, ...]:
    """The captions of a JSON Lines file, whose images are named from its folder.

    Raises ItemsError with everything that is wrong with it, UsageError where it cannot be read.
    """
    file = Path(path)
    lines, problems = parse_records(file, Caption)
    problems += _repeated(lines)
    if problems:
        raise ItemsError(f"{file} cannot be used", problems)
    return tuple(
        caption.model_copy(update={"image": str(file.parent / caption.image)}) for _, caption in lines
    )


def _repeated(lines: Sequence[tuple[int, Caption]]) -> list[Problem]:
    first: dict[str, int] = {}
    return [
        Problem(caption.id, "id", f"is that of line {first[caption.id]}, too", line=number)
        for number, caption in lines
        if first.setdefault(caption.id, number) != number
    ]
