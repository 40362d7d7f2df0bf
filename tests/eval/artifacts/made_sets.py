"""Truths and predictions of the size that a hand can work out, in memory and as files."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

SIZE = {"width": 8, "height": 8}
SQUARE = [[1, 1], [3, 1], [3, 3], [1, 3]]


def image(name: str, *regions: dict[str, Any], **keys: Any) -> dict[str, Any]:
    """A record of an 8 × 8 image."""
    return {"image": name, **SIZE, "regions": list(regions), **keys}


def polygon(
    category: str = "semantics", points: list[list[float]] | None = None, **keys: Any
) -> dict[str, Any]:
    return {"category": category, "polygon": SQUARE if points is None else points, **keys}


def box(
    category: str | None = "semantics", corners: Iterable[float] = (1, 1, 6, 6), **keys: Any
) -> dict[str, Any]:
    return {"category": category, "box": list(corners), **keys}


def point(category: str, x: float, y: float) -> dict[str, Any]:
    return {"category": category, "point": [x, y]}


def write_lines(path: Path, records: Iterable[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def labelme(name: str, *shapes: dict[str, Any], **keys: Any) -> dict[str, Any]:
    """A labelme document of an 8 × 8 image."""
    return {
        "version": "5.4.1",
        "flags": {},
        "shapes": list(shapes),
        "imagePath": name,
        "imageData": None,
        "imageHeight": 8,
        "imageWidth": 8,
        **keys,
    }


def shape(label: str, points: Any, kind: str = "polygon", **keys: Any) -> dict[str, Any]:
    return {"label": label, "points": points, "group_id": None, "shape_type": kind, "flags": {}, **keys}


def write_labelme(folder: Path, *documents: dict[str, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    for document in documents:
        (folder / f"{Path(document['imagePath']).stem}.json").write_text(json.dumps(document))
    return folder
