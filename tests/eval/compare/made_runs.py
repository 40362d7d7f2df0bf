"""Runs made up for comparisons: records with exactly the anomalies that a test is about."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from uncanny.schema import Annotation

WORDS = ("hand", "shadow", "mirror", "cup", "leg", "spoon", "lamp", "window", "wheel", "rope", "tree", "sign")


def sentence(rng: random.Random, words: int = 14) -> str:
    return " ".join(rng.choice(WORDS) + str(rng.randrange(1000)) for _ in range(words)) + "."


def anomaly(name: str, text: str | None = None, *, severity: int = 20, **more: Any) -> dict[str, Any]:
    """One that is similar to others with the same `text` only."""
    said = name if text is None else text
    made = random.Random(said)
    return {
        "name": name,
        "phenomenon": f"{said}: {sentence(made)}",
        "reasoning": f"{said}: {sentence(made)}",
        "severity": severity,
        **more,
    }


def record(image: str, anomalies: Iterable[Mapping[str, Any]] = (), **more: Any) -> dict[str, Any]:
    return {
        "image": image,
        "sha256": None,
        "width": 640,
        "height": 480,
        "status": "ok",
        "anomalies": [dict(each) for each in anomalies],
        "objects": [{"name": "cat", "description": "A cat."}],
        "errors": [],
        "model": "made/up",
        "prompts": "annotate@1",
        "usage": {"calls": 2, "input_tokens": 100, "cached_tokens": 0, "output_tokens": 10, "cost_usd": 0.1},
        **more,
    }


def as_records(records: Iterable[Mapping[str, Any]]) -> list[Annotation]:
    return [Annotation.model_validate(each) for each in records]


def written(path: Path, records: Iterable[Mapping[str, Any]]) -> Path:
    """A file of annotations."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in records))
    return path
