"""Small pictures for reports."""

from __future__ import annotations

import hashlib
from io import BytesIO
from pathlib import Path

from PIL import Image

from uncanny.images.decode import PIXELS, decode, read_header
from uncanny.images.file_bytes import read_image_file
from uncanny.images.plain import plain
from uncanny.images.policy import PixelPolicy


def thumbnail(
    path: Path, side: int = 320, policy: PixelPolicy | None = None, *, sha256: str | None = None
) -> bytes | None:
    """The picture upright as WebP, at most `side` pixels long and never enlarged; None when unreadable.

    Lossy: for people, not for models. Of `policy` only the limits on size count. With `sha256` it is None
    for a file of other bytes, too.
    """
    policy = policy or PixelPolicy()
    try:
        data = read_image_file(path, policy.max_file_bytes)
        if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
            return None
        header = read_header(data, policy.max_pixels)
        with PIXELS.hold(header.pixels):
            image, _, _ = plain(decode(data, header, draft=side))
            image.thumbnail((side, side), Image.Resampling.LANCZOS)
        image.info = {}
        out = BytesIO()
        image.save(out, "WEBP", quality=80, method=4)
    except Exception:  # a report goes without this picture, whatever is wrong with it
        return None
    return out.getvalue()
