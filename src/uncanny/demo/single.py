"""The demo model's answer to the prompt of the single schedule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from uncanny.demo.annotate import quadruples
from uncanny.demo.recognition import RecognizedPrompt
from uncanny.demo.views import View


def list_all(_prompt: RecognizedPrompt, views: Sequence[View]) -> str:
    """The picture's quadruples as text."""
    view = views[0]
    entries = [
        f"@{number}. Name: {row['name']}\nPhenomenon: {row['phenomenon']}\nReasoning: {row['reasoning']}\n"
        f"Realism: {row['severity']}"
        for number, row in enumerate(quadruples(view.anomalies, view.merged), 1)
    ]
    return "\n\n".join(entries) or "No anomalies."


ANSWERERS: Final = {"list": list_all}
