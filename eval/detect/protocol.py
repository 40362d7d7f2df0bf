"""Detection in the table of protocols."""

from __future__ import annotations

from uncanny.eval.detect.parameters import DetectParameters
from uncanny.protocol import Input, Protocol

PROTOCOLS = (
    Protocol(
        "detect",
        ("detect",),
        "Real or generated",
        "Tell generated images from real ones, and say by what.",
        DetectParameters,
        Input("images", "images", "Upload images, or choose a folder of the server."),
        records="annotations.jsonl",
        tables=True,
        csv_head="uncanny.eval.detect.score:MODEL_COLUMNS",
        reviewed=True,
    ),
)
