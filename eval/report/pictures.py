"""The pictures on the page, as WebP data URIs: a thumbnail each, larger ones while there is room."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from uncanny.images import thumbnail

THUMBNAIL_SIDE = 320
LARGE_SIDE = 900
_THREADS = 4


@dataclass(frozen=True, slots=True)
class Picture:
    """Data URIs; `small` is None when the file cannot be read, `large` also when the page is full."""

    small: str | None
    large: str | None


@dataclass(frozen=True, slots=True)
class Shot:
    """A file to be shown; with `sha256` only if it has these bytes, and with "" never.

    So a page shows what was judged, and the records of a run from somebody else cannot bring just any file of
    this machine into it.
    """

    path: Path
    sha256: str | None = None


def pictures(shots: Sequence[Shot], budget: int) -> list[Picture]:
    """Encode the files in their order.

    `budget` is in bytes of data URI. Thumbnails are always made; larger pictures for the first files only,
    until the budget is used up.
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        small = list(pool.map(lambda shot: _data_uri(shot, THUMBNAIL_SIDE), shots))
        left = budget - sum(len(uri) for uri in small if uri)
        large: list[str | None] = []
        for start in range(0, len(shots), _THREADS):
            if left <= 0:
                break
            some = zip(shots[start : start + _THREADS], small[start : start + _THREADS], strict=True)
            for uri in pool.map(lambda pair: pair[1] and _data_uri(pair[0], LARGE_SIDE), list(some)):
                left -= len(uri or "")
                large.append(uri if left >= 0 else None)
    large += [None] * (len(shots) - len(large))
    return [Picture(one, other) for one, other in zip(small, large, strict=True)]


def _data_uri(shot: Shot, side: int) -> str | None:
    encoded = thumbnail(shot.path, side, sha256=shot.sha256)
    return None if encoded is None else "data:image/webp;base64," + b64encode(encoded).decode()
