"""The demo model's answers to the prompts of the annotation protocol, from inventory to quadruples.

First steps answer in prose as long as a model's, which ends in numbered findings, one field a line. Second
steps that see no image read those lines back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from uncanny.demo.recognition import RecognizedPrompt
from uncanny.demo.views import SeenAnomaly, View, best_match, key_of, word_overlap

Json = Mapping[str, Any]

_FIELD = re.compile(r"^[ \t]*(?:\d+\.[ \t]*)?(Object|Phenomenon|Explanation):(.+)$", re.MULTILINE)
_SAME_FAULT = 0.6

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
_MERGE_LOOK = (
    "I read the findings about {name} from both analyses, side by side. Findings that describe the same "
    "thing in other words are merged into one, and the merged one keeps the wording that says more about "
    "where it is seen. Findings that contradict each other would be resolved in favour of the one with "
    "evidence; claims that only say that something looks odd, without saying what and where, are left "
    "out. Each entry below keeps its source: the analysis of the object by itself, the analysis of its "
    "relations, or both."
)


def perceive(prompt: RecognizedPrompt, views: Sequence[View]) -> Json:
    """The picture's objects as this draft sees them."""
    return {
        "objects": [
            {"name": each.name, "description": each.description}
            for each in views[0].objects
            if each.listed_in(int(prompt.name.rpartition("_")[2]))
        ]
    }


def look_at_attributes(prompt: RecognizedPrompt, views: Sequence[View]) -> str:
    """Notes on one object by itself."""
    name = _object_name(prompt)
    entries = [
        f"Name: {each.name}\n   Observed: {_line(each.phenomenon)}\n   Explanation: {_line(each.reasoning)}"
        for each in views[0].at(name, "attribute")
    ]
    return _notes(_ATTRIBUTE_LOOK.format(name=name), entries, f"{name} shows nothing that could not be real.")


def verify_attributes(prompt: RecognizedPrompt, views: Sequence[View]) -> Json:
    """What is wrong with one object by itself, whatever the notes say."""
    anomalies = views[0].at(_object_name(prompt), "attribute")
    rows = [{"name": a.name, "observed": a.phenomenon, "explanation": a.reasoning} for a in anomalies]
    return {"attributes": rows}


def look_at_relations(prompt: RecognizedPrompt, views: Sequence[View]) -> str:
    """Notes on one object among the others."""
    name = _object_name(prompt)
    names = [_field(row, "name") for row in prompt.records("objects")]
    others = ", ".join(other for other in names if other not in ("", name)) or "nothing else"
    entries = [
        f"Objects: {', '.join(each.objects)}\n   Observed: {_line(each.phenomenon)}\n"
        f"   Reasoning: {_line(each.reasoning)}"
        for each in views[0].at(name, "relation")
    ]
    look = _RELATION_LOOK.format(name=name, others=others)
    return _notes(look, entries, f"{name} fits with everything around it.")


def verify_relations(prompt: RecognizedPrompt, views: Sequence[View]) -> Json:
    """What is wrong between one object and others, whatever the notes say."""
    anomalies = views[0].at(_object_name(prompt), "relation")
    rows = [
        {"objects": list(a.objects), "observed": a.phenomenon, "reasoning": a.reasoning} for a in anomalies
    ]
    return {"relations": rows}


def merge_findings(prompt: RecognizedPrompt, _views: Sequence[View]) -> str:
    """Notes with one object's findings of both analyses, from their texts alone."""
    name = _field(prompt.record("object"), "name")
    merged: list[tuple[str, str, str]] = [
        (_field(row, "observed"), _field(row, "explanation"), "attributes")
        for row in prompt.records("attributes")
    ]
    for row in prompt.records("relations"):
        observed, reasoning = _field(row, "observed"), _field(row, "reasoning")
        overlaps = (word_overlap(known, observed) >= _SAME_FAULT for known, _, _ in merged)
        same = next((index for index, overlap in enumerate(overlaps) if overlap), None)
        if same is None:
            merged.append((observed, reasoning, "relations"))
        else:
            merged[same] = (*merged[same][:2], "both")
    entries = [
        f"Object: {name}\n   Phenomenon: {observed}\n   Explanation: {explanation}\n   Source: {source}"
        for observed, explanation, source in merged
        if observed
    ]
    return _notes(_MERGE_LOOK.format(name=name), entries, f"No finding about {name} remains.")


def list_findings(prompt: RecognizedPrompt, _views: Sequence[View]) -> Json:
    """The numbered findings of the notes; an incomplete one is left out."""
    findings: list[dict[str, str]] = []
    for key, value in _FIELD.findall(prompt.text("notes")):
        if key == "Object":
            findings.append({})
        if findings:
            findings[-1][key.lower()] = value.strip()
    return {"findings": [row for row in findings if row.keys() == {"object", "phenomenon", "explanation"}]}


def format_anomalies(prompt: RecognizedPrompt, views: Sequence[View]) -> Json:
    """All objects' findings as quadruples; what the image does not show is dropped."""
    view = views[0]
    matches = (best_match(_field(row, "phenomenon"), view.anomalies) for row in prompt.records("findings"))
    anomalies = list(dict.fromkeys(match for match in matches if match is not None))
    return {"anomalies": quadruples(anomalies, view.merged)}


def scan_scene(_prompt: RecognizedPrompt, views: Sequence[View]) -> Json:
    """What is wrong between things, not within one."""
    anomalies = [a for a in views[0].anomalies if a.kind == "relation" or not a.objects]
    return {
        "findings": [
            {"object": ", ".join(a.objects), "phenomenon": a.phenomenon, "explanation": a.reasoning}
            for a in anomalies
        ]
    }


def quadruples(anomalies: Sequence[SeenAnomaly], merged: int | None) -> list[dict[str, Any]]:
    """Anomalies as quadruples, folded into `merged` of them; None: one for each."""
    groups = min(merged or len(anomalies), len(anomalies))
    return [_quadruple(anomalies[start::groups]) for start in range(groups)]


def as_text(view: View, nothing: str, *, confidence: bool = False) -> str:
    """The picture's quadruples as numbered text, `nothing` where there are none.

    With `confidence` each says how sure the model is of the first anomaly in it.
    """
    # The first of several that are folded into one stand ahead, in the order of the quadruples.
    rows = zip(quadruples(view.anomalies, view.merged), view.anomalies, strict=False)
    entries = [
        f"@{number}. Name: {row['name']}\nPhenomenon: {row['phenomenon']}\nReasoning: {row['reasoning']}\n"
        f"Realism: {row['severity']}" + (f"\nConfidence: {lead.confidence}" if confidence else "")
        for number, (row, lead) in enumerate(rows, 1)
    ]
    return "\n\n".join(entries) or nothing


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


def _object_name(prompt: RecognizedPrompt) -> str:
    return _field(prompt.record("object"), "name") or "the object"


def _field(record: Json, key: str) -> str:
    value = record.get(key)
    return _line(value) if isinstance(value, str) else ""


def _notes(look: str, entries: Sequence[str], nothing: str) -> str:
    numbered = "\n".join(f"{number}. {entry}" for number, entry in enumerate(entries, 1))
    return f"{look}\n\n{numbered or nothing}"


def _line(text: str) -> str:
    return " ".join(text.split())


ANSWERERS: Mapping[str, Callable[[RecognizedPrompt, Sequence[View]], str | Json]] = {
    **dict.fromkeys(("perceive_1", "perceive_2", "perceive_3"), perceive),
    "attribute_look": look_at_attributes,
    "attribute_verify": verify_attributes,
    "relation_look": look_at_relations,
    "relation_verify": verify_relations,
    "integrate_merge": merge_findings,
    "integrate_list": list_findings,
    "format": format_anomalies,
    "scan": scan_scene,
}
"""Prompt → who answers it."""
WITHOUT_IMAGE = ("integrate_merge", "integrate_list")
