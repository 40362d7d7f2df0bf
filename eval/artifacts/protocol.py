"""Locating artifacts in the table of protocols."""

from __future__ import annotations

from uncanny.protocol import Input, Protocol

PROTOCOLS = (
    Protocol(
        "artifacts",
        ("artifacts", "run"),
        "Locate artifacts",
        "Locate artifacts of seven categories, and score them.",
        "uncanny.eval.artifacts.parameters:ArtifactsParameters",
        Input("images", "images", "Upload images, or choose a folder of the server."),
        prompts=("artifacts",),
        records="artifacts.jsonl",
        report=False,
    ),
)
