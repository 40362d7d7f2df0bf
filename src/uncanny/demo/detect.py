"""The demo model's answers to the prompts of detection: is it generated, then why, or what it shows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from uncanny.demo.annotate import as_text
from uncanny.demo.data.mistakes import DETECT_MISTAKES
from uncanny.demo.recognition import RecognizedPrompt
from uncanny.demo.views import View

# Real models leave the form that is asked for now and then, and rarely say what is neither: one in 16.
_FORMS: Final = (
    *["Verdict: {}"] * 11,
    "Verdict: {}.",
    "**Verdict:** {}",
    "Answer: {}",
    "{}",
    "It could be either; I cannot tell.",
)


def judge_source(prompt: RecognizedPrompt, views: Sequence[View]) -> str:
    """Turn 1, `Verdict: Yes` or `Verdict: No`.

    For a bundled scene the truth but for the listed mistakes, else made up; a model with a character errs
    more often.
    """
    scene, sha256, character = views[0].scene, views[0].sha256, prompt.character
    if scene is not None:
        right = "Verdict: Yes" if scene.role == "anomalous" else "Verdict: No"
        verdict = DETECT_MISTAKES.get(scene.id, right)
        if character is None or not character.errs(scene.id, "source"):
            return verdict
        return character.other(("Verdict: Yes", "Verdict: No"), verdict, scene.id, "source")
    if character is not None:
        word = character.chooses(("Yes", "No"), "source", sha256)
        return _FORMS[int(character.draw("form", sha256) * len(_FORMS))].format(word)
    digest = hashlib.sha256(f"source:{sha256}".encode()).digest()
    return _FORMS[digest[1] % len(_FORMS)].format(("Yes", "No")[digest[0] % 2])


def list_anomalies(_prompt: RecognizedPrompt, views: Sequence[View]) -> str:
    """Turn 2 after "yes": the picture's quadruples as text, whatever turn 1 said."""
    return as_text(views[0], "No anomalies found.")


def describe_content(_prompt: RecognizedPrompt, views: Sequence[View]) -> str:
    """Turn 2 after "no": the picture's objects, whatever turn 1 said."""
    objects = [each for each in views[0].objects if each.listed_in(1)]
    names = ", ".join(each.name for each in objects) or "nothing that stands out"
    return " ".join([f"The picture shows {names}.", *(_sentence(each.description) for each in objects[:3])])


def _sentence(text: str) -> str:
    text = " ".join(text.split()).rstrip(".")
    return f"{text[:1].upper()}{text[1:]}."


ANSWERERS = {"source": judge_source, "anomalies": list_anomalies, "content": describe_content}
"""Prompt → who answers it."""
