"""What is served over HTTP: the service with its jobs, its interface and pages, and pages for one run.

Needs the extra `service`, pages for one run only `review`, and `client` neither. Here are the words that all
of these share.
"""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Mapping
from typing import Final, Literal, get_args

# What the holder of a token may do: each role what those before it may.
Role = Literal["reader", "reviewer", "operator"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)
# What a job can be.
Ended = Literal["finished", "incomplete", "over_budget", "cancelled", "failed"]
State = Literal["queued", "running", Ended]
ENDED: Final[tuple[Ended, ...]] = get_args(Ended)
STATES: Final[tuple[State, ...]] = get_args(State)
# Which findings a reviewer sees: `todo`, what they have not judged, or by what people said of them.
Show = Literal["todo", "all", "ties", "accepted", "rejected", "unsure", "unjudged", "changed", "added"]
SHOWS: Final[tuple[Show, ...]] = get_args(Show)


What = Literal["job", "set", "file", "tok"]
ID_PATTERNS: Final[Mapping[str, str]] = {what: f"^{what}_[a-z2-7]{{20}}$" for what in get_args(What)}


def new_id(what: What) -> str:
    """An id such as `job_k3v…`, with 100 random bits."""
    return f"{what}_{base64.b32encode(secrets.token_bytes(13)).decode().lower()[:20]}"


def is_id(text: str, what: What) -> bool:
    """Whether `text` has the form of such an id, and so may be part of a path."""
    return re.fullmatch(ID_PATTERNS[what], text) is not None
