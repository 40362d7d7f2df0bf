"""Quoting an answer in a message without letting it take the message over."""

from __future__ import annotations


def excerpt(text: str, limit: int = 60) -> str:
    """The beginning of `text` on one line and in quotes, at most `limit` characters with them."""
    quoted = repr(text.strip()[:limit])
    return quoted if len(quoted) <= limit else quoted[: limit - 2] + "…" + quoted[0]
