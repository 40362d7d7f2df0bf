"""Runs with a model of known mistakes over made-up images, and a reviewer who knows the truth."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import uncanny
from uncanny.eval.metrics.audit import audit_metrics
from uncanny.records.reviews import ReviewLog, completion, new_review
from uncanny.records.sample import read_sample
from uncanny.schema import KINDS, Annotation, Anomaly


def fault(name: str, severity: int = 10, confidence: float | None = 0.9, **more: Any) -> Anomaly:
    texts = {"name": name, "phenomenon": f"{name} is there", "reasoning": "it cannot be"}
    return Anomaly.model_validate({**texts, "severity": severity, "confidence": confidence, **more})


def image_of(name: str, found: Sequence[Anomaly] = (), digest: int = 0) -> Annotation:
    return Annotation(
        image=name,
        sha256=f"{digest:064x}",
        width=8,
        height=8,
        status="ok",
        anomalies=tuple(found),
        model="m",
        prompts="p@1",
    )


def write(folder: Path, records: Sequence[Annotation]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = b"".join(each.model_dump_json(exclude_none=True).encode() + b"\n" for each in records)
    (folder / "annotations.jsonl").write_bytes(lines)
    return folder


def judge(run: Path, records: Mapping[str, Annotation], truth: Mapping[str, Sequence[Anomaly]]) -> None:
    """Somebody who knows the truth judges what is left of the sample: accepts what is true, adds what is not
    there."""
    sample = read_sample(run)
    assert sample is not None
    done = {each.image for each in ReviewLog.of_run(run).read() if each.type == "complete"}
    lines = []
    for drawn in sample.images:
        if drawn.image in done:
            continue
        record, true = records[drawn.image], list(truth[drawn.image])
        for place, each in enumerate(record.anomalies):
            right = any(each.name == other.name for other in true)
            lines.append(new_review(record, place, each, "ann", "accept" if right else "reject"))
        for place, each in enumerate(true, start=len(record.anomalies)):
            if all(each.name != other.name for other in record.anomalies):
                lines.append(new_review(record, place, None, "ann", "accept", version=each))
        lines.append(completion(record, "ann"))
    ReviewLog.of_run(run).append(lines)


def biased(
    images: int,
    seed: int,
    *,
    faults: Sequence[int] = (0, 0, 0, 1, 1, 2),
    made_up: float = 0.5,
    found: float = 0.7,
) -> tuple[dict[str, Annotation], dict[str, list[Anomaly]]]:
    """What a model says of images with so many `faults`, each as often, and the truth.

    The share `found` of them is found, and in the share `made_up` of the images one is made up; the model is
    unsure of these.
    """
    draw = random.Random(seed)
    records, truth = {}, {}
    for number in range(images):
        name = f"{number:05d}.png"
        true = [fault(f"true {k}", 10, kind=KINDS[k]) for k in range(draw.choice(faults))]
        named = [each for each in true if draw.random() < found]
        if draw.random() < made_up:
            named.append(fault("made up", 30, draw.uniform(0.5, 0.7), kind="light"))
        records[name], truth[name] = image_of(name, named, number), true
    return records, truth


def judged_run(folder: Path, images: int, seed: int, *, size: int, **kind: Any) -> Mapping[str, float]:
    """Such a run with a judged sample of `size`, none of 0; returns its true figures."""
    records, truth = biased(images, seed, **kind)
    write(folder, [*records.values()])
    if size:
        uncanny.sample(folder, size=size, seed=seed)
        judge(folder, records, truth)
    return true_figures(truth)


def true_figures(truth: Mapping[str, Sequence[Anomaly]]) -> dict[str, float]:
    counts = np.array([len(each) for each in truth.values()])
    sums = np.array([sum(one.severity for one in each) for each in truth.values()])
    mai, af, cap, _ = audit_metrics(counts, sums)
    assert mai is not None
    assert af is not None
    assert cap is not None
    return {"visible": float((counts > 0).mean()), "af": af, "mai": mai, "cap": cap}
