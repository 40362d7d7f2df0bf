"""Pictures for tests of pairs, small and with detail in one place, and runs over them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

import uncanny
from uncanny.eval.pairs.data import Candidate, Hint, MadePair, Original
from uncanny.eval.pairs.outcome import Outcome
from uncanny.pairs import MakeRun
from uncanny.schema import Anomaly, Box

SIZE = (96, 72)


def picture(seed: int = 0, size: tuple[int, int] = SIZE) -> NDArray[np.uint8]:
    """A smooth background with a chequered patch, another one for each seed."""
    width, height = size
    y, x = np.mgrid[0:height, 0:width]
    pixels = np.stack([x * 2, y * 2, (x + y) + 10 * (seed % 10)], axis=2).astype(np.uint8)
    left, top = 30 + 3 * (seed % 5), 24 + 2 * (seed % 4)
    patch = np.random.default_rng(seed).integers(0, 2, (10, 10)) * 255
    pixels[top : top + 20, left : left + 20] = np.kron(patch, np.ones((2, 2)))[..., None].astype(np.uint8)
    return pixels


def pictures(folder: Path, number: int = 1, *, captions: bool = False) -> Path:
    """A folder of so many pictures, perhaps with captions."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed in range(number):
        Image.fromarray(picture(seed)).save(folder / f"picture-{seed}.png")
    if captions:
        rows = [f"picture-{seed}.png,A tiled patch number {seed} on a slope" for seed in range(number)]
        (folder / "metadata.csv").write_text("\n".join(["file_name,caption", *rows]) + "\n")
    return folder


def made(folder: Path, number: int = 1, **options: Any) -> MakeRun:
    """Candidates of so many pictures by the demo inpainter, in `folder/pairs`."""
    images = pictures(folder / "pictures", number)
    return uncanny.pairs.make(images, inpainter="demo", out=folder / "pairs", **options)


def mask_file(path: Path, box: tuple[int, int, int, int], size: tuple[int, int] = SIZE) -> Path:
    """A mask with one box in it."""
    mask = np.zeros((size[1], size[0]), dtype=np.uint8)
    mask[box[1] : box[3], box[0] : box[2]] = 255
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(mask).save(path)
    return path


def kept_outcome(box: Box, size: tuple[int, int], name: str = "the fault") -> Outcome:
    """A kept pair in an image of this size whose fault is at `box`, without files."""
    hint = Hint(source="object", name=name, box=box)
    given: dict[str, Any] = {"model": "demo", "seed": 0, "guidance": 10, "strength": 0.6, "steps": 20}
    candidate = Candidate(id=f"{name}-1-1", region=hint, edited="edited/a.png", **given)
    original = Original(
        image="a.png",
        sha256="0" * 64,
        width=size[0],
        height=size[1],
        status="ok",
        original="originals/a.png",
        model="demo",
        prompts="edits@1",
    )
    finding = Anomaly(name=name, phenomenon="It is bent.", reasoning="It is straight.", severity=20, box=box)
    return Outcome(MadePair(Path(), original, candidate), finding=finding)
