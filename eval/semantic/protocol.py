"""Semantic scores in the table of protocols."""

from __future__ import annotations

from uncanny.protocol import Input, Protocol

PROTOCOLS = (
    Protocol(
        "semantic",
        ("semantic",),
        "Score by meaning",
        "Score predicted anomalies against the ground truth.",
        "uncanny.eval.semantic.parameters:SemanticParameters",
        Input("predictions", "named", "Runs or files with anomalies, each as NAME=…"),
        makes="scores",
        csv_head="uncanny.eval.semantic.score.result:COLUMNS",
        records="images.jsonl",
        records_at="per_image",
    ),
)
