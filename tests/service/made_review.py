"""Runs to be reviewed: real pictures, made-up findings."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
from PIL import Image

from tests.service.running import serving
from uncanny.records.reviews import Review, ReviewLog

SIZE = (400, 300)
COLOURS = ("teal", "maroon", "olive", "navy", "gray", "purple", "orange", "sienna", "black", "white")


def anomaly(name: str = "Cup floats", **changes: object) -> dict[str, Any]:
    return {
        "name": name,
        "phenomenon": f"{name}, as anybody can see",
        "reasoning": "things fall",
        "severity": 20,
        "objects": ["cup"],
        "box": [40, 30, 140, 120],
        "kind": "contact",
        "found_by": ["AttributeAnalyzer"],
        **changes,
    }


def make_run(
    folder: Path,
    images: Sequence[Sequence[dict[str, Any]]],
    names: Sequence[str] = (),
    size: tuple[int, int] = SIZE,
) -> Path:
    """A run with a picture for each of `images`, which are lists of anomalies."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for number, anomalies in enumerate(images):
        name = names[number] if number < len(names) else f"{number:03d}.png"
        file = folder / "images" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        colour = COLOURS[number % len(COLOURS)]
        picture = Image.new("RGB", size, colour)
        picture.putpixel((number % size[0], 0), (1, 2, 3))
        picture.save(file, "PNG")
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        record = {"image": f"images/{name}", "sha256": digest, "width": size[0], "height": size[1]}
        record |= {"status": "ok", "anomalies": list(anomalies), "objects": [], "errors": []}
        lines.append(orjson.dumps(record | {"model": "openai/gpt-4o", "prompts": "packed@1"}) + b"\n")
    (folder / "annotations.jsonl").write_bytes(b"".join(lines))
    (folder / "run.json").write_bytes(orjson.dumps({"format": 2, "task": "annotate"}))
    return folder


def log_of(run: Path) -> list[Review]:
    return list(ReviewLog.of_run(run).read())


@contextmanager
def served(run: Path, *options: str) -> Iterator[str]:
    """`uncanny review` as a user starts it; its address."""
    with serving("review", str(run), *options) as address:
        yield address
