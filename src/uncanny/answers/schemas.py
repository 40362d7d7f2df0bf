"""The forms as JSON schema, within what OpenAI, Anthropic and vLLM all take for constrained output.

That is: every key required, no additional ones, and no defaults, bounds, tuples or patterns.
"""

from __future__ import annotations

from typing import Any

from uncanny.answers.forms import FORMS
from uncanny.answers.listform import ItemField, ListForm


def own_schema(form: ListForm[Any]) -> dict[str, Any]:
    """The schema of one form's answer, `{form.key: [item, …]}`."""
    item = _closed({each.name: _field(each) for each in form.fields})
    return _closed({form.key: {"type": "array", "items": item}})


def shared_schema(forms: tuple[ListForm[Any], ...] = FORMS) -> dict[str, Any]:
    """One schema for all `forms`, by default the pipeline's five: `{"answer": <any one of them>}`."""
    return _closed({"answer": {"anyOf": [own_schema(form) for form in forms]}})


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _field(field: ItemField) -> dict[str, Any]:
    schema: dict[str, Any]
    match field.kind:
        case "text":
            schema = {"type": "string"}
        case "names":
            schema = {"type": "array", "items": {"type": "string"}}
        case "severity":
            schema = {"type": "integer"}
    return {**schema, "description": field.note} if field.note else schema
