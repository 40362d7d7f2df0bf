"""What the log of a vLLM server that failed says about the cause."""

from __future__ import annotations

import re
from collections.abc import Sequence

_NOISE = re.compile(
    r"""^(?:\([^()]*\)\ )?                                   # which process: (APIServer pid=7)
    (?:(?:INFO|WARNING)\ |(?:ERROR\ \S+\ \S+\ \[[^][]*\])?  # its logger: ERROR 01-31 12:00:00 [core.py:12]
    (?:\ {4,}|\ \ File\ "|\ \ warnings\.|[\ ^~]*$|Traceback\ |\S+Warning:\ |\S+\ \S*Warning:\ ))""",
    re.VERBOSE,
)
_NAMES_ERROR = re.compile(r"\w(?:Error|Exception): ")
_ERRORS, _LAST, _WIDTH = 2, 2, 400


def telling_lines(log: Sequence[str]) -> list[str]:
    """The few lines of a failed start that name the cause: the last errors in it, and how it ends.

    The very last lines alone do not do: vLLM's main process only says that its engine failed.
    """
    told = [line.strip() for line in log if line.strip() and not _NOISE.match(line)]
    errors = [line for line in told if _NAMES_ERROR.search(line)]
    kept = {*errors[-_ERRORS:], *told[-_LAST:]}
    return [line[:_WIDTH] for line in dict.fromkeys(told) if line in kept]
