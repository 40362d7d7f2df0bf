"""One picture of all scenes, for the README: each pair side by side, the anomaly on the left.

The pictures without a partner come last.
"""

from __future__ import annotations

import json
from pathlib import Path

from PIL import Image, ImageOps

TILE = (300, 225)  # Pictures of other shapes are cropped to it.
GAP = 10
PAIRS_A_ROW = 2
PAPER = (255, 255, 255)


def write_contact_sheet(data: Path, out: Path) -> None:
    truths = [
        json.loads(path.read_text(encoding="utf-8")) for path in sorted((data / "truth").glob("*.json"))
    ]
    pairs: dict[str, dict[str, str]] = {}
    for truth in truths:
        pairs.setdefault(truth["pair_id"] or "", {})[truth["role"] if truth["pair_id"] else truth["id"]] = (
            truth["image"]
        )
    rows = -(-len(pairs) // PAIRS_A_ROW)
    width = PAIRS_A_ROW * (2 * TILE[0] + 3 * GAP)
    sheet = Image.new("RGB", (width, rows * (TILE[1] + GAP) + GAP), PAPER)
    for index, pair in enumerate(pairs[key] for key in sorted(pairs, key=lambda key: (not key, key))):
        left = (index % PAIRS_A_ROW) * (2 * TILE[0] + 3 * GAP) + GAP
        top = index // PAIRS_A_ROW * (TILE[1] + GAP) + GAP
        for column, name in enumerate(pair[role] for role in sorted(pair)):
            with Image.open(data / "images" / Path(name).name) as image:
                tile = ImageOps.fit(image.convert("RGB"), TILE, Image.Resampling.LANCZOS)
            sheet.paste(tile, (left + column * (TILE[0] + 2), top))
    out.parent.mkdir(parents=True, exist_ok=True)
    sheet.save(out, "WEBP", quality=82, method=6)
