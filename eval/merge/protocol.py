"""Merging of runs in the table of protocols."""

from __future__ import annotations

from uncanny.protocol import Input, Protocol

PROTOCOLS = (
    Protocol(
        "merge",
        ("merge",),
        "Merge runs",
        "Merge runs of several models over the same images into one. Each finding says which runs have it.",
        "uncanny.eval.merge.parameters:MergeParameters",
        Input("runs", "named", "Two runs or more over the same images, as NAME=…", bundled=False, least=2),
        records="annotations.jsonl",
        reviewed=True,
        record="uncanny.schema:Annotation",
        page="uncanny.annotation.report.page:page_of",
        then=("report",),
    ),
)
