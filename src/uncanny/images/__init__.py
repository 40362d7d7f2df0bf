"""Image files: found, checked, and made ready to send byte for byte."""

from uncanny.images.discover import Found, Skipped, SkippedInputs, SkipReason, discover
from uncanny.images.naming import display_path
from uncanny.images.policy import PixelPolicy, SendLimits
from uncanny.images.prepared import PreparedImage, prepare, stored_size
from uncanny.images.thumbnail import thumbnail

__all__ = [
    "Found",
    "PixelPolicy",
    "PreparedImage",
    "SendLimits",
    "SkipReason",
    "Skipped",
    "SkippedInputs",
    "discover",
    "display_path",
    "prepare",
    "stored_size",
    "thumbnail",
]
