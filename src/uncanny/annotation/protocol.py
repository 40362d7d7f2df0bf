"""Annotation in the table of protocols."""

from __future__ import annotations

from uncanny.protocol import Input, Protocol

PROTOCOLS = (
    Protocol(
        "annotate",
        ("annotate",),
        "Find anomalies",
        "Find what is wrong in images, and why.",
        "uncanny.annotation.parameters:AnnotateParameters",
        Input("images", "images", "Upload images, or choose a folder of the server.", bundled=False),
        prompts=("packed", "annotate", "single"),
        records="annotations.jsonl",
        reviewed=True,
        record="uncanny.schema:Annotation",
        page="uncanny.annotation.report.page:page_of",
    ),
)
