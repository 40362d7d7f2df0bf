"""The verdict of an answer where None is more telling than an error."""

from __future__ import annotations

from uncanny.answers.verdicts import read_source
from uncanny.errors import AnswerError
from uncanny.schema import Source


def source_of(answer: str) -> Source | None:
    """What the answer says of the picture; None where it is asked for once more."""
    try:
        return read_source(answer)
    except AnswerError:
        return None
