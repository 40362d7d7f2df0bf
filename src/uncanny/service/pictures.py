"""The pictures of a page: the file's own bytes where browsers show them, else a copy; previews for the queue.

A picture is asked for by the key of its image, never by a path, and is shown only if its file has the bytes
that were judged: the records of a run from somebody else can name any file of this machine.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import Final

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import Response

from uncanny.errors import ImageError, StorageError
from uncanny.images import PixelPolicy, shrunk
from uncanny.images.decode import header_size
from uncanny.images.file_bytes import read_image_file
from uncanny.images.signature import MEDIA_TYPES, Format, sniff
from uncanny.service.assets import KEPT

# What every browser shows as it is, turned as the file says.
_SHOWN_BY_BROWSERS: Final[frozenset[Format]] = frozenset({"JPEG", "PNG", "WEBP", "GIF", "AVIF", "BMP"})
PREVIEW_SIDE: Final = 1600
FULL_SIDE: Final = 8192
# A file that is no larger is its own preview: a copy would come later and look worse.
_SMALL_BYTES: Final = 3_000_000
_SMALL_SIDE: Final = 2048
_QUALITY: Final = 88
_KEPT_BYTES: Final = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Picture:
    """The file of an image: `sha256` is what it must have to be shown, "" never, None any."""

    path: Path
    sha256: str | None


@dataclass(frozen=True, slots=True)
class Shown:
    """Bytes that a browser shows, and what they are."""

    data: bytes
    media_type: str


class Pictures:
    """Makes pictures and keeps the latest previews in memory. Blocking; may be used by several threads."""

    def __init__(self) -> None:
        self._previews: OrderedDict[str, Shown] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def full(self, picture: Picture) -> Shown | None:
        """The picture in all its pixels; None where it cannot be shown."""
        data = _bytes_of(picture)
        if data is None:
            return None
        kind = sniff(data)
        if kind in _SHOWN_BY_BROWSERS:
            return Shown(data, MEDIA_TYPES[kind])
        return self._kept(f"full {sha256(data).hexdigest()}", lambda: _copy(picture, FULL_SIDE))

    def preview(self, picture: Picture) -> Shown | None:
        """The picture as large as a screen; None where it cannot be shown."""
        key = f"preview {picture.path} {picture.sha256}"

        def make() -> Shown | None:
            data = _bytes_of(picture)
            if data is None:
                return None
            kind = sniff(data)
            if kind in _SHOWN_BY_BROWSERS and _is_small(data):
                return Shown(data, MEDIA_TYPES[kind])
            return _copy(picture, PREVIEW_SIDE)

        return self._kept(key, make)

    def _kept(self, key: str, make: Callable[[], Shown | None]) -> Shown | None:
        with self._lock:
            if key in self._previews:
                self._previews.move_to_end(key)
                return self._previews[key]
        shown = make()
        if shown is None:
            return None
        with self._lock:
            if key not in self._previews:
                self._previews[key] = shown
                self._size += len(shown.data)
            while self._size > _KEPT_BYTES and len(self._previews) > 1:
                self._size -= len(self._previews.popitem(last=False)[1].data)
        return shown


def serve_pictures(
    app: FastAPI,
    path: str,
    picture: Callable[[Request], Picture | None],
    missing: str = "The picture cannot be shown.",
) -> None:
    """Add `/image` and `/preview`, each with `path` behind it: the picture that a request asks for.

    Addresses are to change with the picture: browsers keep what they get. Where there is none, 404 says
    what is `missing`.
    """
    pictures = Pictures()

    def answer(shown: Shown | None) -> Response:
        if shown is None:
            raise HTTPException(404, missing)
        return Response(shown.data, media_type=shown.media_type, headers=dict(KEPT))

    @app.get(f"/image{path}")
    def full(request: Request) -> Response:
        file = picture(request)
        return answer(None if file is None else pictures.full(file))

    @app.get(f"/preview{path}")
    def preview(request: Request) -> Response:
        file = picture(request)
        return answer(None if file is None else pictures.preview(file))


def _bytes_of(picture: Picture) -> bytes | None:
    if picture.sha256 == "":
        return None
    try:
        data = read_image_file(picture.path, PixelPolicy().max_file_bytes)
    except (ImageError, StorageError):
        return None
    return data if picture.sha256 in (None, sha256(data).hexdigest()) else None


def _copy(picture: Picture, side: int) -> Shown | None:
    """As JPEG, which is made in a third of the time; as WebP where something is transparent."""
    image = shrunk(picture.path, side, sha256=picture.sha256)
    if image is None:
        return None
    clear = image.mode in ("LA", "RGBA")
    out = BytesIO()
    try:
        image.save(out, "WEBP" if clear else "JPEG", quality=_QUALITY, method=2)
    except (OSError, ValueError):  # as one beyond the sides of the format
        return None
    return Shown(out.getvalue(), "image/webp" if clear else "image/jpeg")


def _is_small(data: bytes) -> bool:
    try:
        return len(data) <= _SMALL_BYTES and max(header_size(BytesIO(data))) <= _SMALL_SIDE
    except Exception:  # decoders raise all kinds of errors on hostile files
        return False
