"""`python -m uncanny.service.decoding_child`: decodes pictures as `decoding` asks, one after the other.

A request is a line of JSON on standard input, an answer a line of JSON and the bytes that it announces on
standard output. The process ends with its input, by a signal that it set itself when one picture takes too
long, or when it is killed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from uncanny.errors import ImageError, StorageError
from uncanny.images.decode import header_size
from uncanny.images.encode import PixelPolicy
from uncanny.images.file_bytes import read_image_file
from uncanny.images.prepared import measured, shrunk, thumbnail
from uncanny.images.signature import MEDIA_TYPES, Format, sniff
from uncanny.service.decoding import Asked

# What every browser shows as it is, turned as the file says.
SHOWN_BY_BROWSERS: Final[frozenset[Format]] = frozenset({"JPEG", "PNG", "WEBP", "GIF", "AVIF", "BMP"})
THUMBNAIL_SIDE: Final = 320
PREVIEW_SIDE: Final = 1600
FULL_SIDE: Final = 8192
# A file that is no larger is its own preview: a copy would come later and look worse.
_SMALL_BYTES: Final = 3_000_000
_SMALL_SIDE: Final = 2048
_QUALITY: Final = 88
_NICE: Final = 5

_Answer = tuple[dict[str, Any], bytes]
_NOTHING: Final[_Answer] = ({}, b"")


def main() -> None:
    """Answer requests until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is for the service
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, signal.SIG_DFL)
    os.nice(_NICE)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is not an answer
    for line in sys.stdin.buffer:
        make, path, digest, within, seconds, wait_s = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, wait_s)
        head, data = answer(Asked(make, path, digest, None if within is None else tuple(within)))
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        answers.write(json.dumps({**head, "bytes": len(data)}).encode() + b"\n" + data)
        answers.flush()


def answer(asked: Asked) -> _Answer:
    """What is made of one file; nothing where it cannot be shown."""
    path = Path(asked.path)
    within = None if asked.within is None else [Path(each) for each in asked.within]
    if asked.make == "size":
        return _measured(path, within)
    if asked.make == "thumbnail":
        small = thumbnail(path, THUMBNAIL_SIDE, sha256=asked.sha256, within=within)
        return _NOTHING if small is None else ({"media_type": "image/webp"}, small)
    if asked.make == "preview":
        data = bytes_of(path, asked.sha256, within)
        kind = None if data is None else sniff(data)
        if data is not None and kind in SHOWN_BY_BROWSERS and _is_small(data):
            return {"media_type": MEDIA_TYPES[kind]}, data
    return _copy(path, PREVIEW_SIDE if asked.make == "preview" else FULL_SIDE, asked.sha256, within)


def bytes_of(path: Path, digest: str | None, within: Sequence[Path] | None) -> bytes | None:
    """A file's bytes, None where they are not those of `digest` or cannot be read."""
    try:
        data = read_image_file(path, PixelPolicy().max_file_bytes, within)
    except (ImageError, StorageError):
        return None
    return data if digest in (None, sha256(data).hexdigest()) else None


def _measured(path: Path, within: Sequence[Path] | None) -> _Answer:
    try:
        return measured(path, within=within)._asdict(), b""
    except ImageError as error:
        return {"error": error.message, "kind": error.kind, "remedy": error.remedy}, b""
    except StorageError as error:
        return {"error": error.message, "kind": "io_error", "remedy": error.remedy}, b""


def _copy(path: Path, side: int, digest: str | None, within: Sequence[Path] | None) -> _Answer:
    """As JPEG, which is made in a third of the time; as WebP where something is transparent."""
    image = shrunk(path, side, sha256=digest, within=within)
    if image is None:
        return _NOTHING
    clear = image.mode in ("LA", "RGBA")
    out = BytesIO()
    try:
        image.save(out, "WEBP" if clear else "JPEG", quality=_QUALITY, method=2)
    except (OSError, ValueError):  # as one beyond the sides of the format
        return _NOTHING
    return {"media_type": "image/webp" if clear else "image/jpeg"}, out.getvalue()


def _is_small(data: bytes) -> bool:
    with suppress(Exception):  # decoders raise all kinds of errors on hostile files
        return len(data) <= _SMALL_BYTES and max(header_size(BytesIO(data))) <= _SMALL_SIDE
    return False


if __name__ == "__main__":
    main()
