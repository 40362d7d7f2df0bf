"""Comparisons of runs in the table of protocols."""

from __future__ import annotations

from uncanny.protocol import Input, Protocol

PROTOCOLS = (
    Protocol(
        "compare",
        ("compare",),
        "Compare runs",
        "Show what changed between runs over the same images. Each is compared with the first.",
        "uncanny.eval.compare.parameters:CompareParameters",
        Input("runs", "named", "Two runs or more over the same images, as NAME=…", bundled=False, least=2),
        makes="scores",
        csv_head="uncanny.eval.compare.score.result:COLUMNS",
    ),
)
