"""The multiple-choice questions in the table of protocols."""

from __future__ import annotations

from uncanny.eval.mcq.parameters import McqParameters
from uncanny.protocol import Input, Protocol

PROTOCOLS = (
    Protocol(
        "mcq",
        ("mcq", "run"),
        "Four questions",
        "Ask four questions about the artifact of each image.",
        McqParameters,
        Input("items", "items", "The questions: a file of items, a folder with one, or `scenes`."),
        records="answers.jsonl",
        then=("report",),
        unit="answers",
    ),
)
