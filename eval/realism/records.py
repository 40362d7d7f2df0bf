"""Pairs and verdicts as records: an original and its edit, and what a model said of them.

Source: SAGI, supplementary, sections 1.5 and 1.6; the file formats are this project's own.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from uncanny.agents.verdict import Asked
from uncanny.answers.realism_verdict import Position, Realistic
from uncanny.graphs.ugda_cases import Case, Label
from uncanny.schema import Record, Usage

Outcome = Literal["judged", "undetermined", "refused", "failed", "unusable"]
NonEmpty = Annotated[str, StringConstraints(min_length=1)]


class Pair(Record):
    """One line of a pair file. `original` and `edited` are paths relative to the file or to a root.

    `group` is what shares are broken down by, such as the model that made the edit; None for no group.
    """

    id: NonEmpty
    original: NonEmpty
    edited: NonEmpty
    group: NonEmpty | None = None


class CheckError(Record):
    """Why one question has no verdict; `asked` is `images` where nothing could be asked."""

    asked: Asked | Literal["images"]
    kind: str
    message: str


class Side(Record):
    """One image of a pair as a file: its digest and its pixels as seen; None where it could not be read.

    `file_stamp` is as in annotations.
    """

    image: str
    sha256: str | None = None
    width: int | None = None
    height: int | None = None
    changes: tuple[str, ...] = ()
    file_stamp: str | None = None


class Verdict(Record):
    """One line of `verdicts.jsonl`: what was answered, in the words of the question, and the label.

    None in `first`, `original_first` or `edited_first` is a question that was not asked or that brought no
    verdict; after `no` the second check is not asked. `case` is None but for `deceiving`. What follows
    `case` is this tool's own, and missing in verdicts of others: `outcome` says whether the label stands
    (`judged`), or why it is `undetermined`: no verdict could be read (`undetermined`), the model declined
    (`refused`), a call failed (`failed`), or the pair could not be shown (`unusable`). `raw` has the last
    answer to each question asked. `notes` tells what is odd about a pair that was judged all the same.
    Where several models took part, a further key `models` has the calls by model.
    """

    id: NonEmpty
    group: str | None = None
    first: Realistic | None
    original_first: Position | None
    edited_first: Position | None
    label: Label | None = None
    case: Case | None = None
    outcome: Outcome | None = None
    raw: dict[Asked, str | None] = Field(default_factory=dict)
    errors: tuple[CheckError, ...] = ()
    notes: tuple[str, ...] = ()
    original: Side | None = None
    edited: Side | None = None
    model: str | None = None
    prompts: str | None = None
    asked: str | None = None
    usage: Usage | None = None
