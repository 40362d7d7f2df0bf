"""What an answer that is a list of items looks like, defined once for JSON, labelled text and schemas.

A form is made by `make_form`; those of the annotation pipeline's structured steps stand below. As JSON schema
a form keeps within what OpenAI, Anthropic and vLLM all take for constrained output: every key required, no
additional ones, and no defaults, bounds, tuples or patterns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, create_model

from uncanny.answers.boxes import BOX_KEYS
from uncanny.schema import Anomaly, Name, SceneObject, Text

T = TypeVar("T", bound=BaseModel)

# Some ten times what the longest answers list. A longer list repeats itself, or is meant to do harm.
MAX_ITEMS = 500
MAX_NAMES = 100

FieldKind = Literal["text", "names", "ids", "severity", "confidence", "number", "numbers", "choice", "box"]


@dataclass(frozen=True, slots=True)
class ItemField:
    """One field of an item.

    `kind` is what it holds: a string, a list of names, or of names and numbers (`ids`), a severity, a
    confidence, whole numbers, one of `choices`, or a box. A confidence that cannot be read is not known.
    `labels` are other words models use for it, as JSON keys or as labels in text; the field's own name always
    counts and needs no entry. Labels are compared by their letters and digits alone, in any case. `key` is
    the name it is asked for by, where that is not its own. A choice is offered as one of `offered`; `choices`
    has all words it may come as, in lower case, with what each stands for. A word that is none of them is an
    error where the field is required, else nothing is known.
    """

    name: str
    kind: FieldKind = "text"
    labels: tuple[str, ...] = ()
    required: bool = True
    note: str = ""
    key: str | None = None
    offered: tuple[str, ...] = ()
    choices: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def asked_as(self) -> str:
        """The name it has in prompts and schemas."""
        return self.key or self.name


@dataclass(frozen=True, slots=True, eq=False)
class ListForm(Generic[T]):
    """A JSON object with one key that holds a list of `MAX_ITEMS` items at most; made by `make_form`.

    `fields` are in the order in which models are to write them. `title` names the field that an unlabelled
    heading gives (`1. Extra finger`), None where a heading says nothing certain. `nouns` are the words for
    the items in answers such as "no anomalies found". `item` validates one item, `answer` and `wrapped` a
    whole JSON answer, bare or as `{"answer": …}`; they are built once, since that costs milliseconds. They
    serve where `plain`: all fields are asked for by their own names, and taken as they come. Two forms are
    equal where they are the same object.
    """

    key: str
    model: type[T]
    fields: tuple[ItemField, ...]
    nouns: tuple[str, ...]
    title: str | None
    item: TypeAdapter[T] = field(repr=False)
    answer: TypeAdapter[Any] = field(repr=False)
    wrapped: TypeAdapter[Any] = field(repr=False)
    by_label: dict[str, ItemField] = field(repr=False)

    @property
    def plain(self) -> bool:
        return all(
            each.key is None and each.kind in ("text", "names", "severity", "number", "numbers")
            for each in self.fields
        )


def make_form(
    key: str,
    model: type[T],
    fields: tuple[ItemField, ...],
    *,
    nouns: tuple[str, ...] = (),
    title: str | None = None,
    check: Callable[[T], T] | None = None,
) -> ListForm[T]:
    """Build a form. `check` tightens what `model` alone lets pass; it raises ValueError.

    Two fields must not share a label: ValueError.
    """
    checked: Any = Annotated[model, AfterValidator(check)] if check else model
    items: Any = Annotated[tuple[checked, ...], Field(max_length=MAX_ITEMS)]
    answer = create_model(f"{model.__name__}Answer", **{key: (items, ...)})  # type: ignore[call-overload]
    wrapped = create_model(f"{model.__name__}Wrapped", answer=(answer, ...))
    by_label: dict[str, ItemField] = {}
    for item_field in fields:
        for label in dict.fromkeys((item_field.name, item_field.asked_as, *item_field.labels)):
            if by_label.setdefault(label_key(label), item_field) is not item_field:
                raise ValueError(f"label {label!r} of field {item_field.name!r} belongs to another field too")
    return ListForm(
        key=key,
        model=model,
        fields=fields,
        nouns=nouns or (key,),
        title=title,
        item=TypeAdapter(checked),
        answer=TypeAdapter(answer),
        wrapped=TypeAdapter(wrapped),
        by_label=by_label,
    )


def with_box_key(form: ListForm[T], key: str) -> ListForm[T]:
    """The form with its boxes asked for under `key`, as a model knows them."""
    fields = tuple(
        replace(each, key=None if key == each.name else key) if each.kind == "box" else each
        for each in form.fields
    )
    return replace(form, fields=fields)


_PARENTHESES = re.compile(r"[(（][^()（）]*[)）]")
_NOT_WORD = re.compile(r"[\W_]+")


def label_key(label: str) -> str:
    """A label reduced to what tells it from others: `Severity Score (0-100)` and `severity_score` are one."""
    return _NOT_WORD.sub(" ", _PARENTHESES.sub(" ", label)).strip().casefold()


Names = Annotated[tuple[Name, ...], Field(min_length=1, max_length=MAX_NAMES)]


class AnswerItem(BaseModel):
    """Base of what a model lists."""

    model_config = ConfigDict(frozen=True, defer_build=True)


class AttributeFinding(AnswerItem):
    """One thing about an object itself that cannot be real."""

    name: Name
    observed: Text
    explanation: Text


class RelationFinding(AnswerItem):
    """One relation between objects that cannot be real. `objects` names at least one."""

    objects: Names
    observed: Text
    reasoning: Text


class Finding(AnswerItem):
    """One finding about an object, merged from its attributes and relations."""

    object: Name
    phenomenon: Text
    explanation: Text


def _described(item: SceneObject) -> SceneObject:
    description = item.description.strip()
    if not description:
        raise ValueError("description must not be empty")
    return item if description == item.description else item.model_copy(update={"description": description})


def _named(anomaly: Anomaly) -> Anomaly:
    if len(anomaly.objects) > MAX_NAMES:
        raise ValueError(f"objects must not name more than {MAX_NAMES}")
    objects = tuple(name for name in (each.strip() for each in anomaly.objects) if name)
    return anomaly if objects == anomaly.objects else anomaly.model_copy(update={"objects": objects})


BOX_FIELD = ItemField("box", kind="box", labels=BOX_KEYS[1:], required=False)
_NAME = ItemField("name", labels=("title", "anomaly name", "object name", "attribute name"))
_OBSERVED = ItemField(
    "observed",
    labels=("observation", "observed phenomenon", "phenomenon", "what is observed", "observed issue"),
)
_EXPLANATION = ItemField("explanation", labels=("reasoning", "reason", "why", "rationale", "justification"))
_REASONING = ItemField("reasoning", labels=("explanation", "reason", "why", "rationale", "justification"))
_PHENOMENON = ItemField(
    "phenomenon",
    labels=(
        "observed phenomenon",
        "phenomena",
        "observed",
        "observation",
        "description",
        "visual phenomenon",
    ),
)
_SEVERITY = ItemField(
    "severity",
    kind="severity",
    key="realism",
    labels=(
        "severity score",
        "score",
        "severity rating",
        "severity level",
        "realism score",
        "realism rating",
        "realism level",
    ),
    note="whole number from 0, cannot be, to 100, fully realistic",
)
CONFIDENCE_FIELD = ItemField(
    "confidence",
    kind="confidence",
    labels=("certainty", "probability", "confidence score", "confidence level", "likelihood"),
    required=False,
    note="whole number from 0 to 100: how likely it is that this is there and is a fault",
)
_OBJECT_LABELS = ("objects involved", "involved objects", "objects concerned", "related objects", "object")

OBJECTS: ListForm[SceneObject] = make_form(
    "objects",
    SceneObject,
    (_NAME, ItemField("description", labels=("details", "appearance"))),
    nouns=("objects",),
    title="name",
    check=_described,
)
ATTRIBUTES: ListForm[AttributeFinding] = make_form(
    "attributes",
    AttributeFinding,
    (_NAME, _OBSERVED, _EXPLANATION),
    nouns=("attributes", "attribute anomalies", "anomalies"),
    title="name",
)
RELATIONS: ListForm[RelationFinding] = make_form(
    "relations",
    RelationFinding,
    (ItemField("objects", kind="names", labels=_OBJECT_LABELS), _OBSERVED, _REASONING),
    nouns=("relations", "relation anomalies", "relational anomalies", "anomalies"),
)
FINDINGS: ListForm[Finding] = make_form(
    "findings",
    Finding,
    (ItemField("object", labels=("object name", "objects")), _PHENOMENON, _EXPLANATION),
    nouns=("findings", "anomalies"),
)
"""Answers that list findings, as the scanner and the integrator of the schedule `paper` get them."""
ANOMALIES: ListForm[Anomaly] = make_form(
    "anomalies",
    Anomaly,
    (
        _NAME,
        _PHENOMENON,
        _REASONING,
        _SEVERITY,
        ItemField("objects", kind="names", labels=_OBJECT_LABELS, required=False),
    ),
    nouns=("anomalies", "semantic anomalies"),
    title="name",
    check=_named,
)

LISTED: ListForm[Anomaly] = make_form(
    "anomalies",
    Anomaly,
    (*ANOMALIES.fields, CONFIDENCE_FIELD),
    nouns=ANOMALIES.nouns,
    title="name",
    check=_named,
)
"""`ANOMALIES`, each with how sure the model is, as the schedule `single` asks for them."""

FORMS: tuple[ListForm[Any], ...] = (OBJECTS, ATTRIBUTES, RELATIONS, FINDINGS, ANOMALIES)


def own_schema(*forms: ListForm[Any]) -> dict[str, Any]:
    """The schema of an answer with the lists of `forms`, `{"answer": {form.key: [item, …]}}`, as prompts show
    it."""
    lists = [_bare(form)["properties"] for form in forms]
    return _closed({"answer": _closed({key: items for each in lists for key, items in each.items()})})


def shared_schema(forms: tuple[ListForm[Any], ...] = FORMS) -> dict[str, Any]:
    """One schema for all `forms`, by default the paper pipeline's five: `{"answer": <any one of them>}`."""
    return _closed({"answer": {"anyOf": [_bare(form) for form in forms]}})


def _bare(form: ListForm[Any]) -> dict[str, Any]:
    item = _closed({each.asked_as: _field(each) for each in form.fields})
    return _closed({form.key: {"type": "array", "items": item}})


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
        case "names" | "ids":
            schema = {"type": "array", "items": {"type": "string"}}
        case "severity" | "confidence" | "number":
            schema = {"type": "integer"}
        case "numbers":
            schema = {"type": "array", "items": {"type": "integer"}}
        case "box":
            schema = {"type": "array", "items": {"type": "number"}}
        case "choice":
            schema = {"type": "string", "enum": list(field.offered)}
    return {**schema, "description": field.note} if field.note else schema
