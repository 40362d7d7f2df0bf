"""The audit of generators in the table of protocols."""

from __future__ import annotations

from uncanny.protocol import Input, Protocol

PROTOCOLS = (
    Protocol(
        "audit",
        ("audit",),
        "Rank generators",
        "Rank generators by how plausible their images are. Images are annotated by the model first.",
        "uncanny.eval.audit.parameters:AuditParameters",
        Input(
            "generators",
            "generators",
            "A run, a file of annotations or a folder of images for each generator, as NAME=…",
        ),
        makes="scores",
        csv_head="uncanny.eval.audit.score.result:COLUMNS",
        takes_more="uncanny.eval.audit.parameters:AuditPageParameters",
    ),
)
