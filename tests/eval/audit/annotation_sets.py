"""Annotation files and run folders, written as other tools write them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from uncanny.eval.audit.data.aggregate import Pairing
from uncanny.eval.audit.data.load import Generator, load_generators
from uncanny.eval.common.inputs.sources import AnnotationSource, read_sources

NAME, PROMPTS = "openai/any", "annotate@0123456789ab"
# Stands for the digest of an image of this set alone.
ANY = "0" * 64
POLICY = {"max_side": None, "format": "keep", "jpeg_quality": 95}


def record(image: str, severities: Sequence[int] = (), **other: Any) -> dict[str, Any]:
    """A record that counts, unless `other` says otherwise."""
    return {
        "image": image,
        "sha256": ANY,
        "width": 64,
        "height": 48,
        "status": "ok",
        "anomalies": [anomaly(severity) for severity in severities],
        "objects": [{"name": "hand", "description": "A hand."}],
        "errors": [],
        "model": NAME,
        "prompts": PROMPTS,
        **other,
    }


def anomaly(severity: int, name: str = "six fingers") -> dict[str, Any]:
    return {
        "name": name,
        "phenomenon": "A hand has six.",
        "reasoning": "Hands have five.",
        "severity": severity,
    }


def left_out(image: str, status: str) -> dict[str, Any]:
    error = {"agent": "perceiver", "step": 1, "kind": "refused", "message": "No."}
    # The anomalies of a partial record must not count either.
    anomalies = [anomaly(0)] if status == "partial" else []
    return record(image, status=status, errors=[error], anomalies=anomalies)


def written(path: Path, records: Iterable[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        each | {"sha256": sha256(f"{path}/{each['image']}".encode()).hexdigest()}
        if each.get("sha256") == ANY
        else each
        for each in records
    ]
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
    return path


def run_folder(path: Path, records: Iterable[dict[str, Any]], **manifest: Any) -> Path:
    """A finished run, unless `manifest` says otherwise."""
    written(path / "annotations.jsonl", records)
    content = {
        "state": "finished",
        "model": NAME,
        "roles": {},
        "plan": {"repeats": 3, "max_objects": 12},
        "pixels": {"policy": POLICY},
        "served_as": {NAME: ["any-2026-01-01"], "vllm/other": ["other"]},
        **manifest,
    }
    (path / "run.json").write_bytes(orjson.dumps(content))
    return path


def loaded(
    sources: Mapping[str, AnnotationSource], pair_by: str | None = None, **options: Any
) -> tuple[Generator, ...]:
    pairing = None if pair_by is None else Pairing.named(pair_by)
    return load_generators(read_sources(sources), pairing=pairing, **options)
