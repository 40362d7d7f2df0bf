"""The demo model's answers to the prompts of the packed schedule.

It looks at several objects at once, gives boxes in whatever form it is asked for them, and keeps account of
numbers. Where it is asked without a picture it goes by the texts it is given.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from uncanny.demo.annotate import Json
from uncanny.demo.character import Character
from uncanny.demo.recognition import RecognizedPrompt
from uncanny.demo.views import Place, SeenAnomaly, View, best_match, key_of, known_anomalies

_PIXELS: Final = re.compile(r"(\d+) pixels wide and (\d+) pixels high")
_LISTED: Final = re.compile(r"^(\d+)\. (.+)$", re.MULTILINE)


def perceive(prompt: RecognizedPrompt, views: Sequence[View]) -> Json:
    """The picture's objects as this draft sees them, each with its box."""
    draft = 2 if prompt.name.endswith("2") else 1
    return {
        "objects": [
            {"name": each.name, "description": each.description, **box_as_asked(prompt, each.place)}
            for each in views[0].objects
            if each.listed_in(draft)
        ]
    }


def scan(prompt: RecognizedPrompt, views: Sequence[View]) -> Json:
    """What strikes the eye: what is wrong between things, and with things that no inventory has."""
    view = views[0]
    listed = {key_of(each.name) for each in view.objects if each.listed_in(1)}
    striking = [a for a in view.anomalies if a.kind == "relation" or not listed & {*map(key_of, a.objects)}]
    return {
        "findings": [_fault(prompt, list(each.objects) or ["the scene"], each) for each in striking],
    }


def attributes(prompt: RecognizedPrompt, views: Sequence[View]) -> Json:
    """What is wrong with the objects of a batch, each by itself."""
    return {
        "findings": [
            _fault(prompt, [str(row.get("id"))], anomaly)
            for row in prompt.lines("objects")
            for anomaly in views[0].at(str(row.get("name", "")), "attribute")
        ]
    }


def relations(prompt: RecognizedPrompt, views: Sequence[View]) -> Json:
    """What is wrong between objects of a batch and others."""
    numbers = {key_of(name): int(number) for number, name in _LISTED.findall(prompt.text("scene"))}
    entries = []
    for row in prompt.lines("objects"):
        for anomaly in views[0].at(str(row.get("name", "")), "relation"):
            others = [numbers[key_of(name)] for name in anomaly.objects if key_of(name) in numbers]
            named = [*map(str, dict.fromkeys([row.get("id"), *others]))]
            entries.append(_fault(prompt, named, anomaly))
    return {"findings": entries}


def _fault(prompt: RecognizedPrompt, objects: list[str], anomaly: SeenAnomaly) -> dict[str, Any]:
    return {
        "objects": objects,
        "observed": anomaly.phenomenon,
        "explanation": anomaly.reasoning,
        **box_as_asked(prompt, anomaly.place),
    }


def integrate(prompt: RecognizedPrompt, views: Sequence[View]) -> Json:
    """The findings by what they are about; what the picture does not show is dropped."""
    seen: dict[SeenAnomaly, list[int]] = {}
    entries: list[dict[str, Any]] = []
    for row in prompt.lines("findings"):
        number, text = row.get("id"), str(row.get("phenomenon", ""))
        anomaly = best_match(text, views[0].anomalies)
        if anomaly is None:
            entries.append(
                {
                    "ids": [number],
                    "why": "The picture does not show it.",
                    "decision": "drop",
                    "phenomenon": "",
                    "reasoning": "",
                    **box_as_asked(prompt, None),
                }
            )
        else:
            seen.setdefault(anomaly, []).append(int(str(number)))
    entries += [
        {
            "ids": numbers,
            "why": "It is there to be seen.",
            "decision": "keep",
            "phenomenon": anomaly.phenomenon,
            "reasoning": anomaly.reasoning,
            **box_as_asked(prompt, anomaly.place),
        }
        for anomaly, numbers in seen.items()
    ]
    return {"entries": entries}


def write(prompt: RecognizedPrompt, _views: Sequence[View]) -> Json:
    """Final texts, one for each fault; of what no bundled scene has, name and realism are made up."""
    return {"anomalies": [_text(row, prompt.character) for row in prompt.lines("findings")]}


def _text(row: Json, character: Character | None) -> dict[str, Any]:
    phenomenon = str(row.get("phenomenon", ""))
    known = known_anomalies().get(phenomenon)
    severity = known.severity if known else hashlib.sha256(phenomenon.encode()).digest()[0] % 101
    return {
        "ids": [row.get("id")],
        "name": known.name if known else " ".join(phenomenon.split()[:6]) or "Something",
        "phenomenon": "",
        "reasoning": "",
        "realism": severity if character is None else character.severity(severity, phenomenon),
        "kind": (known.sort if known else None) or "other",
        "objects": row.get("objects", []),
    }


def box_as_asked(prompt: RecognizedPrompt, place: Place | None) -> dict[str, list[float]]:
    """A box under the key and in the numbers that the prompt asks for; empty where there is none."""
    key, rule = prompt.text("box_key") or "box", prompt.text("box_rule")
    if place is None:
        return {key: []}
    x0, y0, x1, y1 = place
    size = _PIXELS.search(rule)
    if size:
        width, height = float(size[1]), float(size[2])
    elif "0 to 999" in rule:
        width = height = 999.0
    else:
        width = height = 1.0 if "fractions" in rule else 1000.0
    numbers = [x0 * width, y0 * height, x1 * width, y1 * height]
    numbers = [round(number, 3) if width == 1 else round(number) for number in numbers]
    return {key: [numbers[1], numbers[0], numbers[3], numbers[2]] if key == "box_2d" else numbers}


ANSWERERS: Final[Mapping[str, Callable[[RecognizedPrompt, Sequence[View]], str | Json]]] = {
    **dict.fromkeys(("perceive_1", "perceive_2"), perceive),
    "scan": scan,
    "attributes": attributes,
    "relations": relations,
    "integrate": integrate,
    "format": write,
}
"""Prompt → who answers it."""

WITHOUT_IMAGE: Final = ("format",)
