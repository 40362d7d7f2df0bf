"""What is wrong with a parameter, in words for whoever filled it in: pydantic's are for programmers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_WORDS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "missing": lambda _: "is needed",
    "extra_forbidden": lambda _: "there is no such parameter",
    "string_too_short": lambda _: "is empty",
    "string_too_long": lambda about: f"is longer than {about['max_length']:,} characters",
    "too_short": lambda about: f"needs {about['min_length']:,} or more, not {about['actual_length']:,}",
    "too_long": lambda about: f"takes {about['max_length']:,} at most",
    "greater_than": lambda about: f"must be more than {_number(about['gt'])}",
    "greater_than_equal": lambda about: f"must be {_number(about['ge'])} or more",
    "less_than": lambda about: f"must be less than {_number(about['lt'])}",
    "less_than_equal": lambda about: f"must be {_number(about['le'])} or less",
    "finite_number": lambda _: "must be a finite number",
    "literal_error": lambda about: f"must be {about['expected']}",
    **dict.fromkeys(
        ("int_type", "int_parsing", "int_from_float"), lambda _: "must be a whole number, such as 10"
    ),
    **dict.fromkeys(("float_type", "float_parsing"), lambda _: "must be a number, such as 0.5"),
    "string_type": lambda _: "must be text",
    "bool_type": lambda _: "must be true or false",
}


def in_words(error: ErrorDetails, patterns: Mapping[str, str]) -> str:
    """What is wrong, to stand behind the name of the parameter, without a full stop.

    `patterns` says of regular expressions what they take.
    """
    about = error.get("ctx", {})
    if error["type"] == "string_pattern_mismatch" and about.get("pattern") in patterns:
        return patterns[about["pattern"]]
    if error["type"] in _WORDS:
        return _WORDS[error["type"]](about)
    return error["msg"].removeprefix("Value error, ")


def _number(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else str(value)
