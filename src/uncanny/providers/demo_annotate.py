"""The demo model in the roles of the annotation protocol, from perceiver to formatter.

First steps answer in prose that ends in numbered findings, one field a line; second steps that see no image
read those lines back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from uncanny.providers.demo_prose import attribute_prose, integrator_prose, relation_prose
from uncanny.providers.demo_question import Question
from uncanny.providers.demo_view import SeenAnomaly, View, best_match, key_of, likeness

Json = Mapping[str, Any]

_FIELD = re.compile(r"^[ \t]*(?:\d+\.[ \t]*)?(Object|Phenomenon|Explanation):(.+)$", re.MULTILINE)
_SAME = 0.6


def perceive(question: Question, views: Sequence[View]) -> Json:
    """List the image's objects as this draft sees them."""
    return {
        "objects": [
            {"name": seen.name, "description": seen.description}
            for seen in views[0].objects
            if seen.listed_in(question.draft)
        ]
    }


def analyse_attributes(question: Question, views: Sequence[View]) -> str | Json:
    """Look at one object by itself."""
    name, found = _found(question, views[0], "attribute")
    if question.step == 1:
        return attribute_prose(name, [(a.name, a.phenomenon, a.reasoning) for a in found])
    rows = [{"name": a.name, "observed": a.phenomenon, "explanation": a.reasoning} for a in found]
    return {"attributes": rows}


def reason_relations(question: Question, views: Sequence[View]) -> str | Json:
    """Look at one object among the others."""
    name, found = _found(question, views[0], "relation")
    if question.step == 1:
        others = [other for row in question.rows("objects") if (other := _said(row, "name"))]
        return relation_prose(name, others, [(a.objects, a.phenomenon, a.reasoning) for a in found])
    rows = [{"objects": list(a.objects), "observed": a.phenomenon, "reasoning": a.reasoning} for a in found]
    return {"relations": rows}


def integrate(question: Question, _views: Sequence[View]) -> str | Json:
    """Merge one object's findings, from their texts alone."""
    if question.step > 1:
        return {"findings": _read_findings(question)}
    name = _said(question.data("object"), "name")
    merged: list[tuple[str, str, str]] = [
        (_said(row, "observed"), _said(row, "explanation"), "attributes")
        for row in question.rows("attributes")
    ]
    for row in question.rows("relations"):
        observed, reasoning = _said(row, "observed"), _said(row, "reasoning")
        same = next((i for i, (seen, _, _) in enumerate(merged) if likeness(seen, observed) >= _SAME), None)
        if same is None:
            merged.append((observed, reasoning, "relations"))
        else:
            merged[same] = (*merged[same][:2], "both")
    return integrator_prose(name, [row for row in merged if row[0]])


def format_anomalies(question: Question, views: Sequence[View]) -> Json:
    """Turn all objects' findings into quadruples; what the image does not show is dropped."""
    view = views[0]
    found: list[SeenAnomaly] = []
    for row in question.rows("findings"):
        anomaly = best_match(_said(row, "phenomenon"), view.anomalies)
        if anomaly is not None and anomaly not in found:
            found.append(anomaly)
    return {"anomalies": quadruples(found, view.merged)}


def quadruples(found: Sequence[SeenAnomaly], merged: int | None) -> list[dict[str, Any]]:
    """Anomalies as quadruples, folded into `merged` of them; None: one for each."""
    groups = min(merged or len(found), len(found))
    return [_quadruple(found[start::groups]) for start in range(groups)]


def scan_scene(_question: Question, views: Sequence[View]) -> Json:
    """Look at the whole image: finds what is wrong between things, not within one."""
    found = [a for a in views[0].anomalies if a.kind == "relation" or not a.objects]
    return {
        "findings": [
            {"object": ", ".join(a.objects), "phenomenon": a.phenomenon, "explanation": a.reasoning}
            for a in found
        ]
    }


def _found(question: Question, view: View, kind: Any) -> tuple[str, list[SeenAnomaly]]:
    name = _said(question.data("object"), "name")
    return name or "the object", view.at(name, kind)


def _said(row: Json, key: str) -> str:
    value = row.get(key)
    return " ".join(value.split()) if isinstance(value, str) else ""


def _read_findings(question: Question) -> list[dict[str, str]]:
    """The numbered findings of the notes; an incomplete one is left out."""
    findings: list[dict[str, str]] = []
    for field, value in _FIELD.findall(question.text("notes")):
        if field == "Object":
            findings.append({})
        if findings:
            findings[-1][field.lower()] = value.strip()
    return [row for row in findings if row.keys() == {"object", "phenomenon", "explanation"}]


def _quadruple(group: Sequence[SeenAnomaly]) -> dict[str, Any]:
    lead = group[0]
    objects = list({key_of(name): name for anomaly in group for name in anomaly.objects}.values())
    also = [anomaly.name for anomaly in group[1:]]
    return {
        "name": lead.name,
        "phenomenon": lead.phenomenon + (f"; the same is seen as: {', '.join(also)}" if also else ""),
        "reasoning": lead.reasoning,
        "severity": lead.severity,
        "objects": objects,
    }


ROLES = {
    "ObjectPerceiver": perceive,
    "AttributeAnalyzer": analyse_attributes,
    "RelationReasoner": reason_relations,
    "AnomalyIntegrator": integrate,
    "AnomalyFormatter": format_anomalies,
    "SceneScanner": scan_scene,
}
