"""Ids of what the service keeps: what it is, and twenty random characters that nobody guesses."""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Mapping
from typing import Final, Literal, get_args

What = Literal["job", "set", "file", "tok"]
ID_PATTERNS: Final[Mapping[str, str]] = {what: f"^{what}_[a-z2-7]{{20}}$" for what in get_args(What)}


def new_id(what: What) -> str:
    """An id such as `job_k3v…`, with 100 random bits."""
    return f"{what}_{base64.b32encode(secrets.token_bytes(13)).decode().lower()[:20]}"


def is_id(text: str, what: What) -> bool:
    """Whether `text` has the form of such an id, and so may be part of a path."""
    return re.fullmatch(ID_PATTERNS[what], text) is not None
