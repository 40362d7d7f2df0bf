"""Small pictures beside an edit: where it differs from its original, dark where alike; masks, heat maps."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Final

from uncanny.eval.common.pages.pictures import Shot
from uncanny.images.prepared import shrunk

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SIDE: Final = 640
# So many times the difference of a channel: one step in twenty of the range is seen well.
AMPLIFIED: Final = 5


def difference(original: Shot | None, edited: Shot | None) -> bytes | None:
    """The difference of two pictures as WebP, at most `SIDE` pixels long; None where one cannot be read.

    The largest difference of the three channels at each pixel, times `AMPLIFIED`, from black for none to
    white. Of two sizes the edited one is brought to that of the original.
    """
    import numpy as np

    if original is None or edited is None:
        return None
    first = shrunk(original.path, SIDE, sha256=original.sha256)
    second = shrunk(edited.path, SIDE, sha256=edited.sha256)
    if first is None or second is None:
        return None
    left = np.asarray(first.convert("RGB"), dtype=np.int16)
    right = np.asarray(second.convert("RGB").resize(first.size), dtype=np.int16)
    apart = np.minimum(np.abs(left - right).max(axis=2) * AMPLIFIED, 255).astype(np.uint8)
    return grey_picture(apart)


def grey_picture(pixels: NDArray[np.uint8] | NDArray[np.bool_]) -> bytes | None:
    """Grey pixels, shape (height, width), as WebP, at most `SIDE` pixels long; None where there are none.

    A mask becomes white on black.
    """
    from PIL import Image

    if not pixels.size:
        return None
    image = Image.fromarray(pixels).convert("L")
    image.thumbnail((SIDE, SIDE))
    out = BytesIO()
    image.save(out, "WEBP", quality=80, method=2)
    return out.getvalue()
