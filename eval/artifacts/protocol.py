"""Locating artifacts in the table of protocols."""

from __future__ import annotations

from uncanny.eval.artifacts.parameters import ArtifactsParameters
from uncanny.protocol import Input, Protocol

PROTOCOLS = (
    Protocol(
        "artifacts",
        ("artifacts", "run"),
        "Locate artifacts",
        "Locate the artifacts of images, by seven categories.",
        ArtifactsParameters,
        Input("images", "images", "Upload images, or choose a folder of the server."),
        records="artifacts.jsonl",
        report=False,
    ),
)
