"""Pairs made for a test: files on disk, and the file that names them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray
from PIL import Image

Pixels = NDArray[np.uint8]


def squares(*boxes: tuple[int, int, int], side: int = 256) -> Pixels:
    """White squares, given as row, column and side, on black."""
    image = np.zeros((side, side, 3), dtype=np.uint8)
    for row, column, size in boxes:
        image[row : row + size, column : column + size] = 255
    return image


def save(path: Path, pixels: NDArray[Any], **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **options)
    return path


def write_pairs(path: Path, *records: dict[str, Any]) -> Path:
    path.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))
    return path


def known_cases(folder: Path) -> Path:
    """The three cases whose figures are known; the first has a mask of the square that was to change."""
    save(folder / "black.png", squares())
    save(folder / "one.png", squares((100, 100, 40)))
    save(folder / "two.png", squares((50, 50, 20), (50, 120, 20)))
    save(folder / "corner.png", squares((0, 0, 20)))
    mask = np.zeros((256, 256), dtype=np.uint8)
    mask[100:140, 100:140] = 255
    save(folder / "mask.png", mask)
    records = (
        {
            "id": name,
            "original": "black.png",
            "edited": f"{name}.png",
            "mask": "mask.png" if name == "one" else None,
            "label": "wall",
            "edited_label": f"wall with {name}",
            "method": "squares",
        }
        for name in ("one", "two", "corner")
    )
    return write_pairs(folder / "edits.jsonl", *records)


def bad_set(folder: Path) -> Path:
    """A good pair, and one of each kind of bad input."""
    known_cases(folder)
    save(folder / "small.png", squares(side=100))
    save(folder / "empty-mask.png", np.zeros((256, 256), dtype=np.uint8))
    save(folder / "small-mask.png", np.full((100, 100), 255, dtype=np.uint8))
    (folder / "torn.png").write_bytes((folder / "one.png").read_bytes()[:300])
    (folder / "text.png").write_text("no image")
    pair = {"original": "one.png", "edited": "two.png"}
    return write_pairs(
        folder / "bad.jsonl",
        {"id": "good", **pair},
        {"id": "sizes", "original": "one.png", "edited": "small.png"},
        {"id": "missing", "original": "one.png", "edited": "nowhere.png"},
        {"id": "torn", "original": "torn.png", "edited": "one.png"},
        {"id": "text", "original": "text.png", "edited": "one.png"},
        {"id": "folder", "original": ".", "edited": "one.png"},
        {"id": "mask size", **pair, "mask": "small-mask.png"},
        {"id": "mask empty", **pair, "mask": "empty-mask.png"},
        {"id": "mask missing", **pair, "mask": "nowhere.png"},
        {"id": "mask rle", **pair, "mask": {"size": [256, 256], "counts": "%%"}},
        {"id": "black", "original": "one.png", "edited": "black.png"},
        {"id": "same", "original": "one.png", "edited": "one.png"},
    )
