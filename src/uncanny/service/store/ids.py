"""Ids of what the service keeps: what it is, and twenty random characters that nobody guesses."""

from __future__ import annotations

import base64
import re
import secrets
from typing import Final, Literal

What = Literal["job", "set", "file", "tok"]
_BYTES: Final = 13
_CHARACTERS: Final = 20
_PATTERN: Final = re.compile(r"(job|set|file|tok)_[a-z2-7]{20}")


def new_id(what: What) -> str:
    """An id such as `job_k3v…`, with 100 random bits."""
    random = base64.b32encode(secrets.token_bytes(_BYTES)).decode().lower()
    return f"{what}_{random[:_CHARACTERS]}"


def is_id(text: str, what: What) -> bool:
    """Whether `text` has the form of such an id, and so may be part of a path."""
    return _PATTERN.fullmatch(text) is not None and text.startswith(f"{what}_")
