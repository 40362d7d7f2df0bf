"""Data inside the page: JSON that cannot end its script element, whatever a model wrote."""

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
    return Markup(orjson.dumps(value).decode().translate(_ESCAPES))
