"""The demo model in the role of the detection protocol: is it generated, then why, or what it shows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from uncanny.demo.annotate import quadruples
from uncanny.demo.prompts import Question
from uncanny.demo.scenes import scenes
from uncanny.demo.views import DETECT_MISTAKES, View
from uncanny.errors import RequestRejectedError

_NAMES: Final = ("source", "anomalies", "content")
# Real models say more than the word now and then, and rarely what is neither: one in 16.
_FORMS: Final = (
    *["{}"] * 12,
    "{}.",
    "**{}**",
    "Answer: {}",
    "It could be either; I cannot tell.",
)


def detect(question: Question, views: Sequence[View]) -> str:
    """The answer to one of the two turns; turn 2 answers what it is asked, whatever turn 1 said.

    Raises `RequestRejectedError` for a question that is not of the protocol.
    """
    view = views[0]
    match question.name:
        case "source":
            return _source(view)
        case "anomalies":
            return _listed(view)
        case "content":
            return _described(view)
    raise RequestRejectedError(
        f"The demo model was asked question {question.name!r}; it knows {', '.join(_NAMES)}",
        remedy="Say which in a line `Question: NAME`.",
    )


def _source(view: View) -> str:
    """For a bundled scene the truth but for the listed mistakes, else drawn from the digest."""
    scene = next((each for each in scenes() if each.id == view.scene), None)
    if scene is not None:
        return DETECT_MISTAKES.get(scene.id, "yes" if scene.role == "anomalous" else "no")
    drawn = hashlib.sha256(f"source:{view.sha256}".encode()).digest()
    return _FORMS[drawn[1] % len(_FORMS)].format(("yes", "no")[drawn[0] % 2])


def _listed(view: View) -> str:
    entries = [
        f"@{number}. Name: {row['name']}\nPhenomenon: {row['phenomenon']}\nReasoning: {row['reasoning']}\n"
        f"Severity Score: {row['severity']}"
        for number, row in enumerate(quadruples(view.anomalies, view.merged), 1)
    ]
    return "\n\n".join(entries) or "No anomalies found."


def _described(view: View) -> str:
    seen = [each for each in view.objects if each.listed_in(1)]
    names = ", ".join(each.name for each in seen) or "nothing that stands out"
    return " ".join([f"The picture shows {names}.", *(_sentence(each.description) for each in seen[:3])])


def _sentence(text: str) -> str:
    text = " ".join(text.split()).rstrip(".")
    return f"{text[:1].upper()}{text[1:]}."


ROLES = {"SourceDetector": detect}
