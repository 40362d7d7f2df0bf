"""Where an edit differs from its original, as a small picture: dark where they are alike."""

from __future__ import annotations

from io import BytesIO
from typing import Final

from uncanny.eval.common.pictures import Shot
from uncanny.images import shrunk

SIDE: Final = 640
# So many times the difference of a channel: one step in twenty of the range is seen well.
AMPLIFIED: Final = 5


def difference(original: Shot | None, edited: Shot | None) -> bytes | None:
    """The difference of two pictures as WebP, at most `SIDE` pixels long; None where one cannot be read.

    The largest difference of the three channels at each pixel, times `AMPLIFIED`, from black for none to
    white. Of two sizes the edited one is brought to that of the original.
    """
    import numpy as np
    from PIL import Image

    if original is None or edited is None:
        return None
    first = shrunk(original.path, SIDE, sha256=original.sha256)
    second = shrunk(edited.path, SIDE, sha256=edited.sha256)
    if first is None or second is None:
        return None
    left = np.asarray(first.convert("RGB"), dtype=np.int16)
    right = np.asarray(second.convert("RGB").resize(first.size), dtype=np.int16)
    apart = np.minimum(np.abs(left - right).max(axis=2) * AMPLIFIED, 255).astype(np.uint8)
    out = BytesIO()
    Image.fromarray(apart).save(out, "WEBP", quality=80, method=2)
    return out.getvalue()
