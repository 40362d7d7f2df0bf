"""Detection in the table of protocols."""

from __future__ import annotations

from uncanny.protocol import Input, Protocol

PROTOCOLS = (
    Protocol(
        "detect",
        ("detect",),
        "Real or generated",
        "Ask whether images are generated or real, and why.",
        "uncanny.eval.detect.parameters:DetectParameters",
        Input("images", "images", "Upload images, or choose a folder of the server."),
        prompts=("detect",),
        records="annotations.jsonl",
        tables=True,
        csv_head="uncanny.eval.detect.score:MODEL_COLUMNS",
        reviewed=True,
        record="uncanny.schema:Detection",
        page="uncanny.eval.detect.run:page_of",
    ),
)
