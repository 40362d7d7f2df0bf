"""Rendering one POV-Ray scene: the picture, and the region of every part from flat-coloured passes."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from regions import Regions

POV = Path(__file__).parent / "pov"
SIZE = (768, 576)
GLASS = {"r05"}
ID_STEP = 8  # common.inc paints part n with the red level 8·n.

# A part is where all of these (pass, number) pairs hold, so that a reflection is "seen in the mirror".
Parts = dict[str, list[tuple[int, int]]]


def _povray(pair: str, anomalous: bool, id_pass: int, size: tuple[int, int], out: Path) -> None:
    # One thread: with more, radiosity samples arrive in another order and the pixels differ from run to run.
    # Glass costs many rays a sample, so that scene has fewer samples a pixel.
    soft = ["+A0.2", "+AM2", "+R2"] if pair in GLASS else ["+A0.1", "+AM2", "+R3"]
    quality = soft if id_pass == 0 else ["-A", "File_Gamma=1.0"]
    declares = [f"Declare=Anomalous={int(anomalous)}", f"Declare=IdPass={id_pass}"]
    width, height = (f"+W{size[0]}", f"+H{size[1]}")
    command = [
        "povray",
        f"+I{pair}.pov",
        f"+O{out}",
        "+FN8",
        "-D",
        "+WT1",
        width,
        height,
        *quality,
        *declares,
    ]
    done = subprocess.run(command, cwd=POV, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"povray failed on {pair}.pov:\n{done.stderr[-2000:]}")


def render(
    pair: str, anomalous: bool, parts: Parts, size: tuple[int, int] = SIZE
) -> tuple[Image.Image, Regions]:
    """The picture and, for each part, a boolean array of the picture's size."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.png"

        def shot(id_pass: int) -> Image.Image:
            _povray(pair, anomalous, id_pass, size, out)
            with Image.open(out) as image:
                return image.convert("RGB")

        picture = shot(0)
        passes = {number for pairs in parts.values() for number, _ in pairs}
        numbers = {p: np.rint(np.asarray(shot(p))[..., 0] / ID_STEP).astype(int) for p in passes}
    regions = {
        name: np.logical_and.reduce([numbers[p] == n for p, n in pairs]) for name, pairs in parts.items()
    }
    return picture, regions
