"""The demo model in the roles of the annotation protocol, from perceiver to formatter.

First steps answer in prose that ends in numbered findings, one field a line; second steps that see no image
read those lines back.

The demo model's first-step texts: as long as a model's, and readable line by line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from uncanny.demo.prompts import Question
from uncanny.demo.views import SeenAnomaly, View, best_match, key_of, likeness

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


_ATTRIBUTE_LOOK = (
    "Shape and structure: I followed the outline of {name} all the way round and looked at every place "
    "where one part meets another, since that is where a generated picture tends to come apart. "
    "Proportion: I compared the parts with each other and with what such a thing usually measures. "
    "Function: I asked whether each part could do what it is there for, and whether it could be used, "
    "opened, held or moved as one would expect. Physical possibility: I looked for weight without "
    "support, for matter that fills the same space twice, and for shadows and reflections that no light "
    "could cast. Anatomy: where living bodies are concerned, I counted limbs, fingers and joints and "
    "checked which way they bend. What I do not list below looked sound, or was too small or too far "
    "hidden to judge."
)
_RELATION_LOOK = (
    "Placement and perspective: I compared where {name} stands with the ground it stands on, and its size "
    "with that of what is beside, before and behind it: {others}. Contact: I looked at every place where "
    "it touches something else and asked whether it rests, hangs, leans or is held there in a way that "
    "could last. Occlusion: I checked that what is nearer hides what is farther, and never the other way "
    "round. Light: I compared shadows and reflections with those of the neighbours. Logic: I asked "
    "whether these things would be found together like this, and whether one could have brought about the "
    "state of the other. Pairs and groups that I do not list below fit together, or cannot be judged from "
    "this picture."
)
_INTEGRATOR_LOOK = (
    "I read the findings about {name} from both analyses, side by side. Findings that describe the same "
    "thing in other words are merged into one, and the merged one keeps the wording that says more about "
    "where it is seen. Findings that contradict each other would be resolved in favour of the one with "
    "evidence; claims that only say that something looks odd, without saying what and where, are left "
    "out. Each entry below keeps its source: the analysis of the object by itself, the analysis of its "
    "relations, or both."
)


def attribute_prose(name: str, findings: Sequence[tuple[str, str, str]]) -> str:
    """Notes on one object from (name, observed, explanation) findings."""
    rows = [f"Name: {n}\n   Observed: {_line(o)}\n   Explanation: {_line(e)}" for n, o, e in findings]
    return _notes(_ATTRIBUTE_LOOK.format(name=name), rows, f"{name} shows nothing that could not be real.")


def relation_prose(
    name: str, others: Sequence[str], findings: Sequence[tuple[Sequence[str], str, str]]
) -> str:
    """Notes on one object among others from (objects, observed, reasoning) findings."""
    around = ", ".join(other for other in others if other != name) or "nothing else"
    rows = [
        f"Objects: {', '.join(n)}\n   Observed: {_line(o)}\n   Reasoning: {_line(r)}" for n, o, r in findings
    ]
    look = _RELATION_LOOK.format(name=name, others=around)
    return _notes(look, rows, f"{name} fits with everything around it.")


def integrator_prose(name: str, findings: Sequence[tuple[str, str, str]]) -> str:
    """A merged list from (phenomenon, explanation, source) findings of one object."""
    rows = [
        f"Object: {name}\n   Phenomenon: {_line(p)}\n   Explanation: {_line(e)}\n   Source: {source}"
        for p, e, source in findings
    ]
    return _notes(_INTEGRATOR_LOOK.format(name=name), rows, f"No finding about {name} remains.")


def _notes(look: str, rows: Sequence[str], nothing: str) -> str:
    listed = "\n".join(f"{number}. {row}" for number, row in enumerate(rows, 1))
    return f"{look}\n\n{listed or nothing}"


def _line(text: str) -> str:
    return " ".join(text.split())
