"""Making, screening and asking about pairs in the table of protocols."""

from __future__ import annotations

from uncanny.protocol import Protocol

PROTOCOLS = (
    Protocol(
        "pairs_make",
        ("pairs", "make"),
        takes="uncanny.eval.pairs.parameters:MakeParameters",
        records="candidates.jsonl",
        report=False,
    ),
    Protocol(
        "pairs_screen",
        ("pairs", "screen"),
        takes="uncanny.eval.pairs.parameters:ScreenParameters",
        prompts=("pairs",),
        report=False,
    ),
    Protocol(
        "pairs_items", ("pairs", "items"), takes="uncanny.eval.pairs.parameters:ItemsParameters", report=False
    ),
)
