"""Realism of edits in the table of protocols."""

from __future__ import annotations

from uncanny.eval.common.parameters import PairFolders
from uncanny.eval.realism.parameters import RealismParameters
from uncanny.protocol import Input, Protocol

PROTOCOLS = (
    Protocol(
        "realism",
        ("realism", "run"),
        "Would it fool a viewer",
        "Find out which edited images would fool a viewer.",
        RealismParameters,
        Input("pairs", "pairs", "A file of pairs, or `scenes`. Or name two folders under “More options”."),
        records="verdicts.jsonl",
        then=("report",),
        unit="pairs",
        more=PairFolders,
    ),
)
