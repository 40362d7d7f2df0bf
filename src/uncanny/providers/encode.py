"""Images made ready to be sent: the costly encoding happens here, once an image."""

from __future__ import annotations

import base64

import orjson

from uncanny.providers.base import SentImage


def encode_image(*, sha256: str, media_type: str, width: int, height: int, data: bytes) -> SentImage:
    """Encode the bytes of an image file; `sha256` is their digest, `width` and `height` are in pixels."""
    encoded = base64.b64encode(data)
    # Base64 and media types need no JSON escapes, so the quotes are all that is missing.
    data_url = b"".join((b'"data:', media_type.encode("ascii"), b";base64,", encoded, b'"'))
    return SentImage(
        sha256=sha256,
        media_type=media_type,
        width=width,
        height=height,
        base64=encoded,
        data_url=orjson.Fragment(data_url),
    )
