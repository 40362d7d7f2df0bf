"""JSON inside pages: it reads back as it was, and cannot end its script element, whatever a model wrote."""

from __future__ import annotations

from typing import Any

import orjson
from markupsafe import Markup

# Only strings can hold these characters in JSON, so that escaping them never touches its syntax.
_ESCAPES = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


def page_json(value: Any) -> Markup:
    """`value` as JSON for a `<script type="application/json">`."""
    return Markup(dumped(value).decode().translate(_ESCAPES))


def dumped(value: Any) -> bytes:
    """`value` as JSON. Whole numbers of more than 64 bits, which other tools may write, become floats."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return orjson.dumps(_within_bits(value))


def _within_bits(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _within_bits(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_within_bits(each) for each in value]
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        try:
            return float(value)
        except OverflowError:
            return None
    return value
