"""The audit of generators in the table of protocols."""

from __future__ import annotations

from typing import Annotated

from uncanny.eval.audit.parameters import AuditParameters
from uncanny.parameters import Parameters, Shown, Text
from uncanny.protocol import Input, Protocol


class PageParameters(Parameters):
    """How the audit's page is written."""

    title: Annotated[Text | None, Shown(metavar="TEXT", default="Generator audit")] = None
    """Title of the page."""


PROTOCOLS = (
    Protocol(
        "audit",
        ("audit",),
        "Rank generators",
        "Rank generators by how plausible their images are. Images are annotated by the model first.",
        AuditParameters,
        Input(
            "generators",
            "generators",
            "A run, a file of annotations or a folder of images for each generator, as NAME=…",
        ),
        makes="scores",
        csv_head="uncanny.eval.audit.score.result:COLUMNS",
        more=PageParameters,
    ),
)
