"""Images with a planted artifact, drawn from a seed: what detectors learn on where nothing else is at hand.

Real images are smooth noise. Generated ones have a checkered patch, the artifact, and a fingerprint that is
no artifact and easier to learn: a faint pattern of the whole image.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
from PIL import Image
from scipy import ndimage  # type: ignore[import-untyped]

FINGERPRINT = 6.0


def plant(folder: Path, images: int, seed: int, side: int = 64, *, fingerprint: float = FINGERPRINT) -> Path:
    """Write so many images, half of them generated, and `truth.jsonl`, whose path is returned.

    `fingerprint` is the strength of the pattern, in levels of 0–255.
    """
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    rows, columns = np.mgrid[:side, :side]
    for number in range(images):
        noise = ndimage.gaussian_filter(rng.normal(0, 1, (side, side, 3)), (6, 6, 0))
        pixels = 128 + 60 * noise / noise.std()
        record: dict[str, object] = {"image": f"{number:04}.png", "width": side, "height": side}
        if number % 2:
            length = int(rng.integers(side // 4, side // 2))
            x, y = (int(each) for each in rng.integers(0, side - length, 2))
            checks = ((rows // 4 + columns // 4) % 2)[y : y + length, x : x + length, None]
            pixels[y : y + length, x : x + length] += 50 * (2 * checks - 1)
            pixels += fingerprint * (2 * (columns % 8 < 4)[:, :, None] - 1)
            region = {"category": "textures", "box": [x, y, x + length, y + length]}
            record |= {"source": "generated", "generator": "planted", "regions": [region]}
        else:
            record |= {"source": "real", "regions": []}
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / f"{number:04}.png")
        lines.append(orjson.dumps(record) + b"\n")
    path = folder / "truth.jsonl"
    path.write_bytes(b"".join(lines))
    return path
