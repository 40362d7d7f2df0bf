"""Measuring edits in the table of protocols."""

from __future__ import annotations

from uncanny.eval.edits.parameters import MeasureParameters
from uncanny.protocol import Input, Protocol

PROTOCOLS = (
    Protocol(
        "edits_measure",
        ("edits", "measure"),
        "Measure edits",
        "Measure how much edits changed, and where.",
        MeasureParameters,
        Input("pairs", "pairs", "A file of pairs, or `scenes`. Or name two folders under “More options”."),
        makes="scores",
        csv_head="uncanny.eval.edits.result:HEADS",
        records="edits.jsonl",
        records_at="out",
    ),
)
