"""The demo model's answers to the prompts that locate artifacts: the places of what is wrong in a picture.

Of a bundled scene it knows where they are and of which category, but for the listed mistakes; of any other
picture both are made up from the digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from uncanny.demo.annotate import Json
from uncanny.demo.data.mistakes import ARTIFACT_BOX_MISTAKES, ARTIFACT_CATEGORY_MISTAKES, DETECT_MISTAKES
from uncanny.demo.packed import box_as_asked
from uncanny.demo.recognition import RecognizedPrompt
from uncanny.demo.views import Place, SeenAnomaly, View, key_of
from uncanny.schema import ARTIFACT_CATEGORIES, ArtifactCategory

_RIGHT: Final = {"anomalous": 94, "clean": 6}
# How likely a picture seems that is taken for the other sort.
_WRONG: Final = {"anomalous": 35, "clean": 72}


def locate(prompt: RecognizedPrompt, views: Sequence[View]) -> Json:
    """The artifacts of the one category that is asked for."""
    wanted = prompt.text("category")
    artifacts = [each for each in _seen(views[0], prompt) if each.pop("category") == wanted]
    return {"artifacts": artifacts}


def locate_all(prompt: RecognizedPrompt, views: Sequence[View]) -> Json:
    """Those of all categories that are asked for."""
    asked = prompt.text("definitions")
    return {"artifacts": [each for each in _seen(views[0], prompt) if f'- "{each["category"]}":' in asked]}


def estimate(prompt: RecognizedPrompt, views: Sequence[View]) -> str:
    """How likely the picture is generated; the mistakes are those of detection."""
    scene, sha256, character = views[0].scene, views[0].sha256, prompt.character
    if scene is None:
        drawn = hashlib.sha256(f"likelihood:{sha256}".encode()).digest()[0] % 101
        if character is not None:
            drawn = character.chooses(range(101), "likelihood", sha256)
        return f"Likelihood: {drawn}"
    wrong = scene.id in DETECT_MISTAKES
    if character is None:
        return f"Likelihood: {(_WRONG if wrong else _RIGHT)[scene.role]}"
    number = (_WRONG if wrong or character.errs(scene.id, "source") else _RIGHT)[scene.role]
    # Real models say round numbers.
    moved = 5 * round((number + 24 * (character.draw("likelihood", scene.id) - 0.5)) / 5)
    return f"Likelihood: {min(100, max(0, moved))}"


def _seen(view: View, prompt: RecognizedPrompt) -> Iterator[dict[str, Any]]:
    character = prompt.character
    for anomaly in view.anomalies:
        place, category = _place(anomaly, view), _category(anomaly)
        if character is not None and character.errs(view.sha256, anomaly.name, "category"):
            category = character.other(ARTIFACT_CATEGORIES, category, view.sha256, anomaly.name)
        if place is not None:
            yield {"category": category, "note": anomaly.name, **box_as_asked(prompt, place)}


def _category(anomaly: SeenAnomaly) -> ArtifactCategory:
    known = ARTIFACT_CATEGORY_MISTAKES.get(anomaly.name, anomaly.category)
    if known is not None:
        return known
    digest = hashlib.sha256(anomaly.phenomenon.encode()).digest()
    return ARTIFACT_CATEGORIES[digest[0] % len(ARTIFACT_CATEGORIES)]


def _place(anomaly: SeenAnomaly, view: View) -> Place | None:
    if anomaly.place is not None and anomaly.name not in ARTIFACT_BOX_MISTAKES:
        return anomaly.place
    wanted = key_of(anomaly.objects[0])
    return next((each.place for each in view.objects if key_of(each.name) == wanted), anomaly.place)


ANSWERERS: Final[Mapping[str, Any]] = {"category": locate, "joint": locate_all, "likelihood": estimate}
"""Prompt → who answers it."""
