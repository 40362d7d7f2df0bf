"""A form from the parameters of a kind of job, and parameters from what somebody filled in.

Fields come from the JSON schema of the parameters' model, so that a new parameter has its field without a
line here. What a field could not be is said by the model; the form only brings texts into their types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args

from pydantic import BaseModel, ValidationError

from uncanny.parameters import in_words
from uncanny.service.jobs.params import PATTERNS
from uncanny.service.jobs.references import Reference, Weights
from uncanny.wording import rendered, shown

Widget = Literal["text", "number", "choice", "choices", "flag", "lines", "pairs", "images", "input", "inputs"]

# Fields that take the name of a model, any name.
ONE_MODEL: Final = ("model", "fallback", "inpainter")
_YES_NO: Final = ("yes", "no")


@dataclass(frozen=True, slots=True)
class FormField:
    """A parameter as a form asks for it. `value` is what stands in it at first, as text; of a flag "on"."""

    name: str
    label: str
    help: str
    widget: Widget
    required: bool
    first: bool
    value: str = ""
    named: bool = False
    values: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    default: str = ""
    least: float | None = None
    most: float | None = None
    whole: bool = False
    numbers: bool = False
    group: str = ""
    names: Mapping[str, str] | None = None

    @property
    def id(self) -> str:
        return f"f-{self.name}"

    @property
    def filled(self) -> bool:
        return bool(self.value or self.values)


@dataclass(frozen=True, slots=True)
class Filled:
    """What somebody filled in: parameters as JSON, and what is wrong by field, "" for what is of none."""

    params: Mapping[str, Any]
    wrong: Mapping[str, str]


def form_fields(
    model: type[BaseModel],
    params: Mapping[str, Any] | None = None,
    weights: Sequence[str] | None = None,
    models: Sequence[str] = (),
) -> list[FormField]:
    """The fields of a form, those that are needed first, with the values of `params` in them.

    `weights` are the folders of weights that
    can be chosen; where there are none their fields are left out, and with None they take any text. `models`
    are proposed where one model is asked for.
    """
    references = {
        name for name, field in model.model_fields.items() if _is_made_of(field.annotation, Reference)
    }
    loaded = {name for name, field in model.model_fields.items() if _is_made_of(field.annotation, Weights)}
    schema = model.model_json_schema()
    required = set(schema.get("required", ()))
    fields = [
        _field(
            name,
            _resolved(part, schema),
            name in required,
            (params or {}).get(name),
            name in references - loaded,
        )
        for name, part in schema.get("properties", {}).items()
        if weights is None or weights or name not in loaded
    ]
    if weights:
        fields = [
            replace(field, widget="choice", choices=tuple(weights)) if field.name in loaded else field
            for field in fields
        ]
    fields = [replace(field, choices=tuple(models)) if field.name in ONE_MODEL else field for field in fields]
    return sorted(fields, key=lambda field: (not field.required, not field.first))


def read_form(model: type[BaseModel], values: Sequence[tuple[str, str]]) -> Filled:
    """Parameters from the names and values of a form, those left at their default left out."""
    by_name: dict[str, list[str]] = {}
    for name, value in values:
        by_name.setdefault(name, []).append(value)
    params: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    for field in form_fields(model):
        texts = by_name.get(field.name, [])
        value = _read(field, texts)
        if value is not None:
            params[field.name] = value
        if isinstance(value, dict) and (twice := _repeated(texts)) is not None:
            wrong[field.name] = f"{shown(twice)} is there twice: give each a name of its own."
    try:
        model.model_validate(params)
    except ValidationError as error:
        wrong = _wrong(error) | wrong
    return Filled(params, wrong)


def _wrong(error: ValidationError) -> dict[str, str]:
    wrong: dict[str, str] = {}
    for each in error.errors(include_input=False, include_url=False):
        field = str(each["loc"][0]) if each["loc"] else ""
        text = "This is needed." if each["type"] == "missing" else sentence(in_words(each, PATTERNS))
        wrong.setdefault(field, text)
    return wrong


def sentence(text: str) -> str:
    """What is wrong with a field, as the form shows it below the field."""
    text = rendered(text, "service")
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "!", "?")) else ".")


def _resolved(part: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """A property without references, and without null as one of its types."""
    part = dict(part)
    while "$ref" in part:
        name = part.pop("$ref").rpartition("/")[2]
        part = {**schema["$defs"][name], **part}
    for key in ("anyOf", "oneOf", "allOf"):
        options = [_resolved(each, schema) for each in part.get(key, ()) if each.get("type") != "null"]
        if options:
            part.pop(key)
            # Of several forms a form asks for the richest: a list where one or several are taken.
            richest = max(options, key=lambda each: each.get("type") in ("array", "object"))
            part = {**richest, **part}
    if "items" in part and isinstance(part["items"], Mapping):
        part["items"] = _resolved(part["items"], schema)
    return part


def _field(name: str, part: Mapping[str, Any], required: bool, value: Any, is_reference: bool) -> FormField:
    items = part.get("items", {})
    choices = part.get("enum") or items.get("enum") or ([part["const"]] if "const" in part else [])
    default = part.get("default")
    widget = _widget(name, part, bool(choices), is_reference)
    if "x-on" in part:  # a switch that is on unless somebody turns it off
        widget, choices = "choice", list(_YES_NO)
    return FormField(
        name=name,
        label=part.get("x-label") or name.replace("_", " ").capitalize(),
        help=" ".join(
            [
                part.get("description", ""),
                *([f"Default: {part['x-default']}."] if "x-default" in part else []),
            ]
        ),
        widget=widget,
        required=required,
        first=required or "x-first" in part,
        value=_text(value, widget),
        named=part.get("type") == "object",
        values=tuple(map(str, value)) if isinstance(value, list) else (),
        choices=tuple(map(str, choices)),
        default="" if default is None else _text(default, widget),
        least=_number(part, "minimum", "exclusiveMinimum"),
        most=_number(part, "maximum", "exclusiveMaximum"),
        whole=part.get("type") == "integer",
        numbers=items.get("type") in ("integer", "number"),
        group=part.get("x-group", ""),
        names=part.get("x-names"),
    )


def _widget(name: str, part: Mapping[str, Any], has_choices: bool, is_reference: bool) -> Widget:
    kind = part.get("type")
    if name == "images":
        return "images"
    if is_reference:
        return "inputs" if kind in ("array", "object") else "input"
    if kind == "boolean":
        return "flag"
    if has_choices:
        return "choices" if kind == "array" else "choice"
    if kind in ("integer", "number"):
        return "number"
    if kind == "array":
        return "lines"
    return "pairs" if kind == "object" else "text"


def _is_made_of(annotation: Any, wanted: type[Reference]) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, wanted):
        return True
    return any(_is_made_of(each, wanted) for each in get_args(annotation))


def _number(part: Mapping[str, Any], *names: str) -> float | None:
    return next((part[name] for name in names if isinstance(part.get(name), int | float)), None)


def _text(value: Any, widget: Widget) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return ("on" if value else "") if widget == "flag" else _YES_NO[not value]
    if isinstance(value, Mapping):
        return "\n".join(f"{key}={each}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return ("," if widget == "choices" else "\n").join(map(str, value))
    return str(value)


def _read(field: FormField, texts: Sequence[str]) -> Any:
    """The value of a field as JSON has it; None where it is left at its default."""
    if field.widget == "flag":
        return True if "on" in texts else None
    if field.widget == "choices":
        return [each for each in texts if each] or None
    text = "\n".join(texts).strip()
    if not text:
        return None
    if field.choices == _YES_NO:
        return text == "yes"
    if field.widget == "number":
        return _as_number(text)
    if field.named or field.widget == "pairs":
        return dict(_pair(line) for line in text.splitlines() if line.strip())
    if field.widget in ("lines", "images", "inputs"):
        if field.numbers:
            return [_as_number(each) for each in text.replace(",", " ").split()]
        return [line.strip() for line in text.splitlines() if line.strip()]
    return text


def _as_number(text: str) -> int | float | str:
    for read in (int, float):
        try:
            return read(text)
        except ValueError:
            continue
    return text


def _repeated(texts: Sequence[str]) -> str | None:
    """The first name that two lines have, of which one would be lost."""
    names = [_pair(line)[0] for line in "\n".join(texts).splitlines() if line.strip()]
    return next((name for name in names if name and names.count(name) > 1), None)


def _pair(line: str) -> tuple[str, str]:
    key, equals, value = line.partition("=")
    return (key.strip(), value.strip()) if equals else ("", line.strip())
