"""The answers of the annotation pipeline's structured steps."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from uncanny.answers.listform import MAX_NAMES, ItemField, ListForm, make_form
from uncanny.schema import Anomaly, Name, SceneObject, Text

Names = Annotated[tuple[Name, ...], Field(min_length=1, max_length=MAX_NAMES)]


class _Item(BaseModel):
    model_config = ConfigDict(frozen=True)


class AttributeFinding(_Item):
    """One thing about an object itself that cannot be real."""

    name: Name
    observed: Text
    explanation: Text


class RelationFinding(_Item):
    """One relation between objects that cannot be real. `objects` names at least one."""

    objects: Names
    observed: Text
    reasoning: Text


class Finding(_Item):
    """One finding about an object, merged from its attributes and relations."""

    object: Name
    phenomenon: Text
    explanation: Text


def _described(found: SceneObject) -> SceneObject:
    description = found.description.strip()
    if not description:
        raise ValueError("description must not be empty")
    return (
        found if description == found.description else found.model_copy(update={"description": description})
    )


def _named(anomaly: Anomaly) -> Anomaly:
    if len(anomaly.objects) > MAX_NAMES:
        raise ValueError(f"objects must not name more than {MAX_NAMES}")
    objects = tuple(name for name in (each.strip() for each in anomaly.objects) if name)
    return anomaly if objects == anomaly.objects else anomaly.model_copy(update={"objects": objects})


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
    labels=("severity score", "score", "severity rating", "severity level", "realism score"),
    note="integer from 0, completely unreal, to 100, fully realistic",
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

FORMS: tuple[ListForm[Any], ...] = (OBJECTS, ATTRIBUTES, RELATIONS, FINDINGS, ANOMALIES)
