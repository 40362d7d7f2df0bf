"""Image files: found, checked, and made ready to send byte for byte."""

from uncanny.images.discover import Found, Skipped, SkippedInputs, SkipReason, discover
from uncanny.images.file_bytes import RecordedFile, changed_files
from uncanny.images.naming import display_path
from uncanny.images.policy import PixelPolicy, SendLimits
from uncanny.images.prepared import PreparedImage, prepare, stored_size
from uncanny.images.thumbnail import thumbnail

__all__ = [
    "Found",
    "PixelPolicy",
    "PreparedImage",
    "RecordedFile",
    "SendLimits",
    "SkipReason",
    "Skipped",
    "SkippedInputs",
    "changed_files",
    "discover",
    "display_path",
    "prepare",
    "stored_size",
    "thumbnail",
]
