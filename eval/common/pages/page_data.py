"""JSON inside pages: it reads back as it was, and cannot end its script element, whatever a model wrote."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from uncanny.files.json_values import dump_json

# Only strings can hold these characters in JSON, so that escaping them never touches its syntax.
_ESCAPES = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


def page_json(value: Any) -> Markup:
    """`value` as JSON for a `<script type="application/json">`."""
    return Markup(dump_json(value).decode().translate(_ESCAPES))
