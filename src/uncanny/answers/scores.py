"""The numbers that answers have: how real something is, and how sure the model is of it.

A severity is an integer from 0, completely unreal, to 100, fully realistic; one that cannot be read is an
error that a model can act upon. A confidence is a share, 0-1, and one that cannot be read is not known.
"""

from __future__ import annotations

import math
import re
import unicodedata

from uncanny.answers.json_text import excerpt
from uncanny.errors import AnswerError

_NUMBER = re.compile(
    r"""(?:(?:severity|realism)(?:\s++(?:score|rating|level))?|score)?\s*+[:=]?\s*+
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


def read_severity(value: object, name: str = "severity") -> int:
    """The severity `value` says, 0–100; errors call it `name`.

    Takes integers, integral floats, and text such as `20`, `20/100`, `5/100 (very unreal)`,
    `Severity: 20`, `Realism: 20`, `20 - clearly impossible`. `20%` is 20: a percentage is by definition out
    of 100. Other scales (`7/10`), fractions (`0.2`), ranges (`20-30`) and words (`high`) are not converted,
    since what they mean here is a guess. Nothing is clipped and nothing has a default.

    Raises `AnswerError` for everything else; its message can be shown to the model.
    """
    if value is None:
        raise AnswerError(f"{name} is missing")
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise AnswerError(f"{name} must be an integer from 0 to 100")
    if isinstance(value, str):
        return _within(_from_text(value, name), name)
    if isinstance(value, float):
        if not math.isfinite(value) or not value.is_integer():
            raise AnswerError(f"{name} {value!r} is not a whole number from 0 to 100")
        return _within(int(value), name)
    return _within(value, name)


def _from_text(text: str, name: str) -> int:
    shown = excerpt(text, 26)
    plain = _MARKUP.sub("", unicodedata.normalize("NFKC", text[:_LONGEST])).strip()[:_LONGEST]
    if not plain:
        raise AnswerError(f"{name} is missing")
    match = _NUMBER.fullmatch(plain)
    if match is None or not _COMMENT.fullmatch(match["rest"]):
        raise AnswerError(f"{name} {shown} is not a single whole number from 0 to 100")
    if match["scale"] is not None and match["scale"] != "100":
        raise AnswerError(f"{name} {shown} is on another scale; give an integer from 0 to 100")
    if match["decimals"] is not None and match["decimals"].strip("0"):
        raise AnswerError(f"{name} {shown} is not a whole number from 0 to 100")
    if len(match["digits"]) > 9:
        raise AnswerError(f"{name} {shown} is outside 0–100")
    number = int(match["digits"])
    return -number if match["sign"] == "-" else number


def _within(number: int, name: str) -> int:
    if not 0 <= number <= 100:
        shown = str(number) if -(10**12) < number < 10**12 else "with so many digits"
        raise AnswerError(f"{name} {shown} is outside 0–100")
    return number


_CONFIDENCE = re.compile(
    r"""(?:(?:confidence|certainty|probability|likelihood)(?:\s++(?:score|level))?)?\s*+[:=]?\s*+
        (?P<number>\d{1,4}(?P<decimals>\.\d{1,12})?)
        (?P<scale>\s*+(?:/|out\ of)\s*+100|\s*+%)?
        (?P<rest>.*)""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)


def read_confidence(value: object) -> float | None:
    """The confidence `value` says, 0-1; None where it says none that can be read.

    Whole numbers are out of 100: 85, "85", "85%", "85/100" and "85 - rather sure" are 0.85. A number with a
    decimal point from 0 to 1, which says neither, is the share itself: 0.85 and "0.85". Never an error: a
    finding is worth having without it.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str):
        plain = _MARKUP.sub("", unicodedata.normalize("NFKC", value[:_LONGEST])).strip()[:_LONGEST]
        match = _CONFIDENCE.fullmatch(plain)
        if match is None or not _COMMENT.fullmatch(match["rest"]):
            return None
        is_share = match["decimals"] is not None and match["scale"] is None
        number = float(match["number"])
    else:
        is_share, number = isinstance(value, float), value
    if is_share and 0 <= number <= 1:
        return number
    return number / 100 if 0 <= number <= 100 else None
