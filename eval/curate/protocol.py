"""Filtering images and prompts in the table of protocols."""

from __future__ import annotations

from uncanny.protocol import Protocol

PROTOCOLS = (
    Protocol(
        "filter",
        ("curate", "filter"),
        takes="uncanny.eval.curate.parameters:FilterParameters",
        prompts=("curate",),
        report=False,
    ),
)
