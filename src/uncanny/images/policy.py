"""What the user asks of the pixels, and what the provider takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from uncanny.errors import UsageError


@dataclass(frozen=True, slots=True)
class PixelPolicy:
    """What the user asks. The default sends every file's own bytes wherever the provider takes them.

    `max_side` is the longest side in pixels, None for no limit. `format` "keep" converts only what has to be
    converted. `jpeg_quality` is 1–100 and used only where a JPEG is written. `max_pixels` is width × height
    as the file declares it, checked before anything is decoded; `max_file_bytes` is checked before the file
    is read. Raises `UsageError` for values out of range.
    """

    max_side: int | None = None
    format: Literal["keep", "png", "jpeg"] = "keep"
    jpeg_quality: int = 95
    max_pixels: int = 100_000_000
    max_file_bytes: int = 100 * 2**20

    def __post_init__(self) -> None:
        if self.format not in ("keep", "png", "jpeg"):
            raise UsageError(f"image format {self.format!r} is none of keep, png, jpeg")
        if not 1 <= self.jpeg_quality <= 100:
            raise UsageError(f"JPEG quality {self.jpeg_quality!r} is outside 1–100")
        for name, value in (
            ("longest side", self.max_side),
            ("most pixels", self.max_pixels),
            ("most bytes of a file", self.max_file_bytes),
        ):
            if value is not None and value < 1:
                raise UsageError(f"{name} {value!r} is below 1")


@dataclass(frozen=True, slots=True)
class SendLimits:
    """What the provider takes: media types such as `image/png`, bytes and longest side; None is no limit."""

    media_types: frozenset[str]
    max_bytes: int | None
    max_side: int | None
