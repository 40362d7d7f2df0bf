"""The demo model's answers to the prompts of the packed schedule.

It sees large faults in the whole picture and small ones in enlarged parts, gives boxes in whatever form it is
asked for them, and keeps account of numbers. Where it is asked without a picture it goes by the texts it is
given.
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
# Shares of the picture: from what area of a fault it is plain, below which it is a doubt, and from what area
# of a thing its faults are seen without enlarging it. Confidence in what is doubted, in percent.
_PLAIN: Final = 0.05
_SMALL: Final = 0.005
_LARGE: Final = 0.1
_UNSURE: Final = 40


def look(prompt: RecognizedPrompt, views: Sequence[View]) -> Json:
    """What strikes the eye, and the picture's objects."""
    return {**scan(prompt, views), **perceive(prompt, views)}


def perceive(prompt: RecognizedPrompt, views: Sequence[View]) -> Json:
    """The picture's objects as this draft sees them, each with its box."""
    draft = 2 if prompt.name.endswith("2") else 1
    return {
        "inventory": [
            {
                "name": each.name,
                "description": each.description,
                "sort": _sort_of(each.name),
                **box_as_asked(prompt, each.place),
            }
            for each in views[0].objects
            if each.listed_in(draft)
        ]
    }


def _sort_of(name: str) -> str:
    words = key_of(name)
    return next((sort for sort in ("reflection", "shadow", "hand", "face") if sort in words), "thing")


def scan(prompt: RecognizedPrompt, views: Sequence[View]) -> Json:
    """What strikes the eye: what is large, wrong between things, or with things that no inventory has.

    Of what is small it is not sure.
    """
    return {
        "findings": [
            _fault(
                prompt,
                anomaly,
                list(anomaly.objects) or ["the scene"],
                min(_UNSURE, anomaly.confidence) if _share(anomaly) < _SMALL else anomaly.confidence,
                anomaly.place,
            )
            for anomaly in _striking(views[0])
        ],
    }


def _striking(view: View) -> list[SeenAnomaly]:
    shares = {key_of(each.name): _area(each.place) for each in view.objects if each.listed_in(1)}
    return [
        each
        for each in view.anomalies
        if each.kind == "relation"
        or _share(each) >= _PLAIN
        or all(shares.get(key_of(name), 1.0) >= _LARGE for name in each.objects[:1])
    ]


def _share(anomaly: SeenAnomaly) -> float:
    return _area(anomaly.place)


def _area(place: Place | None) -> float:
    """As a share of the picture; all of it where it is not known."""
    return 1.0 if place is None else (place[2] - place[0]) * (place[3] - place[1])


def attributes(prompt: RecognizedPrompt, views: Sequence[View]) -> Json:
    """What is wrong with things in enlarged parts, each by itself, and what becomes of doubts."""
    striking = _striking(views[0])
    hidden = [each for each in views[0].anomalies if each.kind == "attribute" and each not in striking]
    return {"findings": _in_parts(prompt, views, hidden, prompt.lines("listed"))}


def relations(prompt: RecognizedPrompt, views: Sequence[View]) -> Json:
    """What becomes of doubts about relations: it saw all of those in the whole picture."""
    return {"findings": _in_parts(prompt, views, (), prompt.lines("parts"))}


def _in_parts(
    prompt: RecognizedPrompt, views: Sequence[View], hidden: Sequence[SeenAnomaly], rows: Sequence[Json]
) -> list[dict[str, Any]]:
    """Each of the `hidden` anomalies in the first part that shows it; an entry for each doubt."""
    found: list[dict[str, Any]] = []
    left, enlarged = list(hidden), iter(views[1:])
    for row in rows:
        part = row.get("part")
        # Part 0 is the whole picture, which comes first.
        view = next(enlarged, views[0]) if part else views[0]
        window = view.window or (0.0, 0.0, 1.0, 1.0)
        for doubt in row.get("doubts", ()):
            anomaly = best_match(str(doubt.get("doubt", "")), view.anomalies)
            entry = (
                {"observed": "All is as it should be there.", "explanation": "Nothing is wrong with it."}
                | {"objects": [], "kind": "other", "confidence": 0, **box_as_asked(prompt, None)}
                if anomaly is None
                else _fault(
                    prompt,
                    anomaly,
                    list(anomaly.objects),
                    anomaly.confidence,
                    _within(anomaly.place, window),
                    row,
                )
            )
            found.append({"part": part, "doubt": doubt.get("id"), **entry})
        shown = {key_of(str(name)) for name in row.get("shows", ())}
        for anomaly in list(left):
            place = _within(anomaly.place, window)
            if place is not None or (anomaly.place is None and shown & {*map(key_of, anomaly.objects)}):
                left.remove(anomaly)
                entry = _fault(prompt, anomaly, list(anomaly.objects), anomaly.confidence, place, row)
                found.append({"part": part, "doubt": 0, **entry})
    return found


def _within(place: Place | None, window: Place) -> Place | None:
    """A place in shares of the window; None where its middle is outside."""
    if place is None:
        return None
    width, height = window[2] - window[0], window[3] - window[1]
    x0, x1 = ((x - window[0]) / width for x in (place[0], place[2]))
    y0, y1 = ((y - window[1]) / height for y in (place[1], place[3]))
    if not (0 <= (x0 + x1) / 2 <= 1 and 0 <= (y0 + y1) / 2 <= 1):
        return None
    return max(0.0, x0), max(0.0, y0), min(1.0, x1), min(1.0, y1)


def _fault(
    prompt: RecognizedPrompt,
    anomaly: SeenAnomaly,
    objects: list[str],
    confidence: int,
    place: Place | None,
    part: Json | None = None,
) -> dict[str, Any]:
    return {
        "objects": objects,
        "observed": anomaly.phenomenon,
        "explanation": anomaly.reasoning,
        "kind": anomaly.sort or "other",
        "confidence": confidence,
        **box_as_asked(prompt, place, part),
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
                    "confidence": 0,
                    "name": "",
                    "phenomenon": "",
                    "reasoning": "",
                    "realism": 0,
                    "kind": "other",
                    "objects": [],
                    "part": 0,
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
            "confidence": anomaly.confidence,
            "name": anomaly.name,
            "phenomenon": anomaly.phenomenon,
            "reasoning": anomaly.reasoning,
            "realism": _realism(anomaly, prompt.character),
            "kind": anomaly.sort or "other",
            "objects": list(anomaly.objects),
            "part": 0,
            **box_as_asked(prompt, anomaly.place),
        }
        for anomaly, numbers in seen.items()
    ]
    return {"entries": entries}


def _realism(anomaly: SeenAnomaly, character: Character | None) -> int:
    return anomaly.severity if character is None else character.severity(anomaly.severity, anomaly.phenomenon)


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


def box_as_asked(
    prompt: RecognizedPrompt, place: Place | None, part: Json | None = None
) -> dict[str, list[float]]:
    """A box under the key and in the numbers that the prompt asks for; empty where there is none.

    `part` is what the prompt says of the part that it is within.
    """
    key = prompt.text("box_key") or "box"
    rule = " ".join(map(prompt.text, ("box_rule", "part_rule", "inventory", "open_look")))
    if place is None:
        return {key: []}
    x0, y0, x1, y1 = place
    size = _PIXELS.search(rule)
    if part is not None and "width" in part and "height" in part:
        width, height = float(part["width"]), float(part["height"])
    elif size:
        width, height = float(size[1]), float(size[2])
    elif "0 to 999" in rule:
        width = height = 999.0
    else:
        width = height = 1.0 if "fractions" in rule else 1000.0
    numbers = [x0 * width, y0 * height, x1 * width, y1 * height]
    numbers = [round(number, 3) if width == 1 else round(number) for number in numbers]
    return {key: [numbers[1], numbers[0], numbers[3], numbers[2]] if key == "box_2d" else numbers}


ANSWERERS: Final[Mapping[str, Callable[[RecognizedPrompt, Sequence[View]], str | Json]]] = {
    "look": look,
    **dict.fromkeys(("perceive_1", "perceive_2"), perceive),
    "scan": scan,
    "attributes": attributes,
    "relations": relations,
    "integrate": integrate,
    "format": write,
}
"""Prompt → who answers it."""

WITHOUT_IMAGE: Final = ("format",)
