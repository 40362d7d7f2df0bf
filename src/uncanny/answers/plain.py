"""Free-text answers."""

from __future__ import annotations

import re

from uncanny.errors import AnswerError

_THINKING = re.compile(r"\s*<think>.*?</think>", re.DOTALL)


def read_text(answer: str) -> str:
    """The answer without a leading `<think>…</think>` block. Raises AnswerError when nothing is left."""
    leading = _THINKING.match(answer)
    text = (answer[leading.end() :] if leading else answer).strip()
    if not text:
        raise AnswerError("the answer is empty")
    return text
