"""The multiple-choice questions in the table of protocols."""

from __future__ import annotations

from uncanny.protocol import Input, Protocol

PROTOCOLS = (
    Protocol(
        "mcq",
        ("mcq", "run"),
        "Four questions",
        "Benchmark models on four questions about an artifact.",
        "uncanny.eval.mcq.parameters:McqParameters",
        Input("items", "items", "The questions: a file of items, a folder with one, or `scenes`."),
        prompts=("mcq",),
        records="answers.jsonl",
        then=("report",),
        unit="answers",
        page="uncanny.eval.mcq.run:page_of",
    ),
    Protocol("mcq_review", ("mcq", "review"), takes="uncanny.parameters:Parameters", report=False),
    Protocol("mcq_people", ("mcq", "people"), takes="uncanny.parameters:Parameters", report=False),
)
