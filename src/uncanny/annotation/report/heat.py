"""Where a detector looks, laid over the image, for a page."""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path
from typing import Final

from uncanny.detectors.provider import HEAT_MAPS
from uncanny.eval.common.pages.pictures import Layer, Shot
from uncanny.images.prepared import thumbnail
from uncanny.schema import Annotation

SIDE: Final = 480
_NAME: Final = re.compile(rf"{HEAT_MAPS}/[0-9a-f]+\.png")
_COLOR: Final = (255, 64, 0)
# So that the image is still seen where a detector looks most.
_MOST: Final = 0.75


def heat_layers(record: Annotation, shot: Shot, run: Path) -> tuple[Layer, ...]:
    """The picture of a record's heat map in the folder `run`; () where there is none that can be read."""
    name = (record.model_extra or {}).get("heat_map")
    # Of a run from somebody else no other file is opened.
    if not isinstance(name, str) or _NAME.fullmatch(name) is None or (run / name).is_symlink():
        return ()
    below = thumbnail(shot.path, SIDE, sha256=shot.sha256)
    data = None if below is None else _over(below, run / name)
    return () if data is None else (Layer("where it looks", data=data),)


def _over(below: bytes, heat: Path) -> bytes | None:
    from PIL import Image

    try:
        with Image.open(BytesIO(below)) as image, Image.open(heat, formats=("PNG",)) as grey:
            picture = image.convert("RGB")
            alpha = grey.convert("L").resize(picture.size).point(lambda value: value * _MOST)
    except (OSError, ValueError, Image.DecompressionBombError):
        return None
    picture.paste(Image.new("RGB", picture.size, _COLOR), mask=alpha)
    out = BytesIO()
    picture.save(out, "WEBP", quality=80, method=2)
    return out.getvalue()
