"""Image files: found in folders, checked whole, and made ready to send byte for byte."""

from uncanny.images.discover import Discovered, Skipped, SkippedInputs, SkipReason, discover
from uncanny.images.encode import PixelPolicy, SendLimits
from uncanny.images.file_bytes import RecordedFile, changed_files
from uncanny.images.path_names import display_path
from uncanny.images.prepared import PreparedImage, prepare, read_rgb, shrunk, stored_size, thumbnail

__all__ = [
    "Discovered",
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
    "read_rgb",
    "shrunk",
    "stored_size",
    "thumbnail",
]
