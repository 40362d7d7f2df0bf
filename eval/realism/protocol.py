"""Realism of edits in the table of protocols."""

from __future__ import annotations

from uncanny.protocol import Input, Protocol

PROTOCOLS = (
    Protocol(
        "realism",
        ("realism", "run"),
        "Would it fool a viewer",
        "Find out which edited images would fool a viewer.",
        "uncanny.eval.realism.parameters:RealismParameters",
        Input("pairs", "pairs", "A file of pairs, or `scenes`. Or name two folders under “More options”."),
        prompts=("realism",),
        records="verdicts.jsonl",
        then=("report",),
        unit="pairs",
        page="uncanny.eval.realism.score:page_of",
        takes_more="uncanny.eval.common.parameters:PairFolders",
    ),
)
