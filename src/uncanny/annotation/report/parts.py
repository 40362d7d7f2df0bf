"""The findings of an image as its card lists them, each with the part of the image that it is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uncanny.eval.common.confidence import is_sure
from uncanny.images.parts import around
from uncanny.schema import Annotation, Anomaly, Box


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding; `part` is what to show of the image enlarged, None where its place is not known.

    It `counts` unless the model is not sure enough of it, and is `seen` without a click.
    """

    anomaly: Anomaly
    part: Box | None
    counts: bool
    seen: bool


def findings_of(record: Annotation, min_confidence: float, listed: int) -> list[Finding]:
    """The findings of a record: those that count, from the confidence `min_confidence`, 0-1, then the others,
    each the least realistic first. The first `listed` are seen, and one more where there is only one more."""
    size = (record.width, record.height) if record.width and record.height else None
    ranked = sorted(record.anomalies, key=lambda each: (not is_sure(each, min_confidence), each.severity))
    n_sure = sum(is_sure(each, min_confidence) for each in ranked)
    n_seen = n_sure if n_sure <= listed + 1 else listed
    return [
        Finding(each, _part(record, each, size), place < n_sure, place < n_seen)
        for place, each in enumerate(ranked)
    ]


def entries(findings: Sequence[Finding], *, counts: bool) -> list[dict[str, Any]]:
    """Those that count, or the others, for the script of the page.

    `part` has the number of the part among those of all `findings`, and where it is; None without one.
    """
    chosen, number = [], 0
    for each in findings:
        part = None
        if each.part is not None:
            part, number = {"number": number, "box": each.part}, number + 1
        if each.counts is counts:
            anomaly = each.anomaly.model_dump(mode="json")
            chosen.append(anomaly | {"severity": each.anomaly.rated_severity, "part": part})
    return chosen


def _part(record: Annotation, finding: Anomaly, size: tuple[int, int] | None) -> Box | None:
    """Around the finding's box, else around the objects it names."""
    boxes = [each.box for each in record.objects if each.box and each.name in finding.objects]
    if finding.box is not None:
        boxes = [finding.box]
    if size is None or not boxes:
        return None
    left, top, right, bottom = zip(*boxes, strict=True)
    return around((min(left), min(top), max(right), max(bottom)), size)
