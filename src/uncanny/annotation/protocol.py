"""Annotation in the table of protocols."""

from __future__ import annotations

from uncanny.annotation.parameters import AnnotateParameters
from uncanny.protocol import Input, Protocol

PROTOCOLS = (
    Protocol(
        "annotate",
        ("annotate",),
        "Find anomalies",
        "Find what is wrong in images.",
        AnnotateParameters,
        Input("images", "images", "Upload images, or choose a folder of the server.", bundled=False),
        records="annotations.jsonl",
        reviewed=True,
    ),
)
