"""Verdicts of people on made-up runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.eval.compare.made_runs import record, written
from uncanny.records.reviews import Decision


def run_folder(folder: Path, images: Mapping[str, Iterable[Mapping[str, Any]]], **more: Any) -> Path:
    """A run with a record of each image, which has these findings."""
    written(
        folder / "annotations.jsonl",
        [record(image, found, model=f"made/{folder.name}", **more) for image, found in images.items()],
    )
    return folder


def reviewed(folder: Path, verdicts: Iterable[tuple[str, int, Decision]], reviewer: str = "ann") -> Path:
    """The run with verdicts on findings, by image and place."""
    lines = [
        {
            "image": image,
            "anomaly": place,
            "decision": decision,
            "reviewer": reviewer,
            "at": "2026-01-01T00:00:00Z",
        }
        for image, place, decision in verdicts
    ]
    written(folder / "reviews.jsonl", lines)
    return folder
