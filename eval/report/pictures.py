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


def pictures(files: Sequence[Path], budget: int) -> list[Picture]:
    """Encode `files` in their order.

    `budget` is in bytes of data URI. Thumbnails are always made; larger pictures for the first files only,
    until the budget is used up.
    """
    with ThreadPoolExecutor(_THREADS) as pool:
        small = list(pool.map(lambda file: _data_uri(file, THUMBNAIL_SIDE), files))
        left = budget - sum(len(uri) for uri in small if uri)
        large: list[str | None] = []
        for start in range(0, len(files), _THREADS):
            if left <= 0:
                break
            some = zip(files[start : start + _THREADS], small[start : start + _THREADS], strict=True)
            for uri in pool.map(lambda pair: pair[1] and _data_uri(pair[0], LARGE_SIDE), list(some)):
                left -= len(uri or "")
                large.append(uri if left >= 0 else None)
    large += [None] * (len(files) - len(large))
    return [Picture(one, other) for one, other in zip(small, large, strict=True)]


def _data_uri(file: Path, side: int) -> str | None:
    encoded = thumbnail(file, side)
    return None if encoded is None else "data:image/webp;base64," + b64encode(encoded).decode()
