"""What models really found in pictures with known faults: `python -m benchmarks.calls.answered RUN…`.

The runs are of `uncanny annotate` over pictures of the bundled sets, under any names: what is wrong in them
is known by their digests. Others count as what the user says of them, with `NAME=fault` or `NAME=clean`.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.common import figure

if TYPE_CHECKING:
    from uncanny.schema import Annotation, Anomaly, Box

SURE = 0.5
# A box is at a fault where it has this share of the fault in it, or the fault that share of the box.
AT = 0.3


class Told(NamedTuple):
    """One picture: whether its fault was found and at which confidence, and what else was claimed."""

    faulty: bool
    found: float | None
    others: list[float]


def share(inner: Box, outer: Box) -> float:
    width = min(inner[2], outer[2]) - max(inner[0], outer[0])
    height = min(inner[3], outer[3]) - max(inner[1], outer[1])
    if width <= 0 or height <= 0:
        return 0.0
    return width * height / ((inner[2] - inner[0]) * (inner[3] - inner[1]))


def confidence(anomaly: Anomaly) -> float:
    return 1.0 if anomaly.confidence is None else anomaly.confidence


def told(record: Annotation, said: Mapping[str, str]) -> Told | None:
    """None where nothing is known of the picture."""
    from uncanny.demo.scenes import scene_by_sha256

    picture = scene_by_sha256(record.sha256 or "")
    name = Path(record.image).name
    if picture is None and name not in said:
        return None
    found, others = list[float](), list[float]()
    for anomaly in record.anomalies:
        boxes = [each.box for each in picture.anomalies] if picture else []
        box = anomaly.box
        # Without a box, and in pictures that only the user knows, whoever reads the list decides.
        at_fault = bool(boxes or said.get(name) == "fault") and (
            box is None or not boxes or any(max(share(box, b), share(b, box)) >= AT for b in boxes)
        )
        (found if at_fault else others).append(confidence(anomaly))
    faulty = bool(picture.anomalies) if picture else said[name] == "fault"
    return Told(faulty, max(found, default=None), others)


def show(run: Path, said: Mapping[str, str]) -> None:
    import uncanny

    records: Sequence[Annotation] = list(uncanny.AnnotateRun(run).annotations)
    pictures = [each for record in records if (each := told(record, said)) is not None]
    faulty = [each for each in pictures if each.faulty]
    found = sum(each.found is not None and each.found >= SURE for each in faulty)
    doubted = sum(each.found is not None and each.found < SURE for each in faulty)
    alarms = sum(other >= SURE for each in pictures for other in each.others)
    fates: Counter[str] = Counter()
    rose = fell = 0
    for record in records:
        for each in (record.model_extra or {}).get("candidates", ()):
            fates[each["fate"]] += 1
            first, last = each.get("first_confidence"), each.get("confidence")
            if first is not None and last is not None:
                rose, fell = rose + (last > first), fell + (last < first)
    calls = sum(record.usage.calls for record in records)
    tokens = sum(record.usage.input_tokens or 0 for record in records)
    figure(f"{run}, found at {SURE} or more", found, "", len(faulty), "faults", wanted=None, higher=True)
    figure(f"{run}, found below it", doubted, "", len(faulty), "faults", wanted=None, higher=True)
    figure(f"{run}, false alarms", alarms, "", len(pictures), "pictures", wanted=None)
    figure(f"{run}, input tokens a picture", tokens / max(len(records), 1))
    print(f"  {calls} calls; closer looks raised {rose} doubts and lowered {fell}; fates: {dict(fates)}")


def main() -> None:
    said = dict(each.split("=", 1) for each in sys.argv[1:] if "=" in each)
    for run in (each for each in sys.argv[1:] if "=" not in each):
        show(Path(run), said)


if __name__ == "__main__":
    main()
