"""Free-text answers."""

from __future__ import annotations

from uncanny.answers.jsontext import without_thinking
from uncanny.errors import AnswerError


def read_text(answer: str) -> str:
    """The answer without a leading block of reasoning. Raises AnswerError when nothing is left."""
    text = without_thinking(answer).strip()
    if not text:
        raise AnswerError("the answer is empty")
    return text
