"""Reading a severity score: an integer from 0, completely unreal, to 100, fully realistic."""

from __future__ import annotations

import math
import re
import unicodedata

from uncanny.answers.excerpt import excerpt
from uncanny.errors import AnswerError

_NUMBER = re.compile(
    r"""(?:severity(?:\s++(?:score|rating|level))?|score)?\s*+[:=]?\s*+
        (?P<sign>[-+]?)(?P<digits>\d+)(?:\.(?P<decimals>\d+))?
        (?:\s*+(?:/|out\ of)\s*+(?P<scale>\d+)|\s*+%)?
        (?P<rest>.*)""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
# What may follow the number: a comment that is set apart and holds no other number outside parentheses.
_COMMENT = re.compile(
    r"\s*+(?:[.!]?\s*+|[.;,:\s]*+\([^()]*+\)\s*+\.?\s*+|[.;,:]?\s*+[-–—:;,.]\D*+)", re.DOTALL
)
# More than that is no severity and no comment on one.
_LONGEST = 2_000
_MARKUP = re.compile(r"[*_`\"“”]+")


def read_severity(value: object) -> int:
    """The severity `value` says, 0–100.

    Takes integers, integral floats, and text such as `20`, `20/100`, `5/100 (very unreal)`,
    `Severity: 20`, `20 - clearly impossible`. `20%` is 20: a percentage is by definition out of 100.
    Other scales (`7/10`), fractions (`0.2`), ranges (`20-30`) and words (`high`) are not converted, since
    what they mean here is a guess. Nothing is clipped and nothing has a default.

    Raises `AnswerError` for everything else; its message can be shown to the model.
    """
    if value is None:
        raise AnswerError("severity is missing")
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise AnswerError("severity must be an integer from 0 to 100")
    if isinstance(value, str):
        return _within(_from_text(value))
    if isinstance(value, float):
        if not math.isfinite(value) or not value.is_integer():
            raise AnswerError(f"severity {value!r} is not a whole number from 0 to 100")
        return _within(int(value))
    return _within(value)


def _from_text(text: str) -> int:
    shown = excerpt(text, 26)
    plain = _MARKUP.sub("", unicodedata.normalize("NFKC", text[:_LONGEST])).strip()[:_LONGEST]
    if not plain:
        raise AnswerError("severity is missing")
    found = _NUMBER.fullmatch(plain)
    if found is None or not _COMMENT.fullmatch(found["rest"]):
        raise AnswerError(f"severity {shown} is not a single whole number from 0 to 100")
    if found["scale"] is not None and found["scale"] != "100":
        raise AnswerError(f"severity {shown} is on another scale; give an integer from 0 to 100")
    if found["decimals"] is not None and found["decimals"].strip("0"):
        raise AnswerError(f"severity {shown} is not a whole number from 0 to 100")
    if len(found["digits"]) > 9:
        raise AnswerError(f"severity {shown} is outside 0–100")
    number = int(found["digits"])
    return -number if found["sign"] == "-" else number


def _within(number: int) -> int:
    if not 0 <= number <= 100:
        shown = str(number) if -(10**12) < number < 10**12 else "with so many digits"
        raise AnswerError(f"severity {shown} is outside 0–100")
    return number
