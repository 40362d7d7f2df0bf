"""The pictures of a page: the file's own bytes where browsers show them, else a copy; previews for the queue.

A picture is asked for by the key of its image, never by a path, and is shown only if its file has the bytes
that were judged: the records of a run from somebody else can name any file of this machine. What has to be
decoded is decoded elsewhere (`decoding`), and no thread of the server waits for it.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

from fastapi import FastAPI, HTTPException, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response

from uncanny.errors import ImageError
from uncanny.images.signature import MEDIA_TYPES, sniff
from uncanny.service.assets import KEPT
from uncanny.service.decoding import DECODERS, Asked, BusyError, Decoders, Made, Make, names_of
from uncanny.service.decoding_child import SHOWN_BY_BROWSERS, bytes_of

_KEPT_BYTES: Final = 64 * 2**20
# Files that took too long are not tried again while they stay as they are.
_MOST_REFUSED: Final = 10_000
# How often it is asked whether a viewer is gone.
_LOOK_S: Final = 1.0
BUSY: Final = "Too many pictures are being made. Try again in a moment."
# Inode, size and moment of the last change.
_Stamp = tuple[int, int, int] | None


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


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who waits for a picture: one of a `party`, which takes turns with others, until it is `gone`."""

    party: str = ""
    gone: Callable[[], Awaitable[bool]] | None = None


NOBODY: Final = Viewer()


class Pictures:
    """Has pictures made and keeps the latest in memory. May be used by several threads and event loops.

    They lie in one of the real `folders`, where these are given.
    """

    def __init__(self, folders: Sequence[Path] | None = None, decoders: Decoders = DECODERS) -> None:
        self._folders, self._decoders = folders, decoders
        self._kept: OrderedDict[tuple[Asked, _Stamp], Shown] = OrderedDict()
        self._refused: OrderedDict[tuple[Asked, _Stamp], None] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    async def full(self, picture: Picture, viewer: Viewer = NOBODY) -> Shown | None:
        """The picture in all its pixels; None where it cannot be shown."""
        own = await run_in_threadpool(self._own, picture)
        return await self._made("copy", picture, viewer) if own is None else own

    async def preview(self, picture: Picture, viewer: Viewer = NOBODY) -> Shown | None:
        """The picture as large as a screen; None where it cannot be shown."""
        return await self._made("preview", picture, viewer)

    async def thumbnail(self, picture: Picture, viewer: Viewer = NOBODY) -> Shown | None:
        """The picture as large as in a list; None where it cannot be shown."""
        return await self._made("thumbnail", picture, viewer)

    def _own(self, picture: Picture) -> Shown | None:
        """The file as it is, where browsers show it."""
        if picture.sha256 == "":
            return None
        data = bytes_of(picture.path, picture.sha256, self._folders)
        kind = None if data is None else sniff(data)
        return Shown(data, MEDIA_TYPES[kind]) if data is not None and kind in SHOWN_BY_BROWSERS else None

    async def _made(self, make: Make, picture: Picture, viewer: Viewer) -> Shown | None:
        if picture.sha256 == "":
            return None
        asked = Asked(make, os.fspath(picture.path), picture.sha256, names_of(self._folders))
        key = asked, await run_in_threadpool(_stamp, picture.path)
        with self._lock:
            if key in self._refused:
                return None
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        try:
            made = await _answered(self._decoders, asked, viewer)
        except ImageError:
            with self._lock:
                self._refused[key] = None
                if len(self._refused) > _MOST_REFUSED:
                    self._refused.popitem(last=False)
            return None
        except BusyError as error:
            raise HTTPException(503, BUSY, headers={"Retry-After": "10"}) from error
        except OSError:
            return None
        if made is None or "media_type" not in made.head:
            return None
        shown = Shown(made.data, made.head["media_type"])
        with self._lock:
            if key not in self._kept:
                self._kept[key] = shown
                self._size += len(shown.data)
            while self._size > _KEPT_BYTES and len(self._kept) > 1:
                self._size -= len(self._kept.popitem(last=False)[1].data)
        return shown


def serve_pictures(
    app: FastAPI,
    path: str,
    picture: Callable[[Request], Picture | None],
    missing: str = "The picture cannot be shown.",
    pictures: Pictures | None = None,
) -> None:
    """Add `/image` and `/preview`, each with `path` behind it: the picture that a request asks for.

    Addresses are to change with the picture: browsers keep what they get. Where there is none, 404 says
    what is `missing`.
    """
    made = pictures or Pictures()

    def add(name: str, show: Callable[[Picture, Viewer], Awaitable[Shown | None]]) -> None:
        @app.get(f"/{name}{path}")
        async def shown(request: Request) -> Response:
            file = await run_in_threadpool(picture, request)
            viewer = Viewer(request.client.host if request.client else "", request.is_disconnected)
            made = None if file is None else await show(file, viewer)
            if made is None:
                raise HTTPException(404, missing)
            return Response(made.data, media_type=made.media_type, headers=dict(KEPT))

    add("image", made.full)
    add("preview", made.preview)


async def _answered(decoders: Decoders, asked: Asked, viewer: Viewer) -> Made | None:
    """What is made; None if the viewer is gone. A request that others wait for too goes on."""
    loop, done = asyncio.get_running_loop(), asyncio.Event()

    def tell(_: Future[Made]) -> None:
        with suppress(RuntimeError):  # the server has ended meanwhile
            loop.call_soon_threadsafe(done.set)

    future = decoders.ask(asked, viewer.party)
    try:
        future.add_done_callback(tell)
        while not done.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(done.wait(), None if viewer.gone is None else _LOOK_S)
            if not done.is_set() and viewer.gone is not None and await viewer.gone():
                return None
        return future.result()
    finally:
        decoders.leave(asked, future)


def _stamp(path: Path) -> _Stamp:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None  # also a picture in a row of a table
    return status.st_ino, status.st_size, status.st_mtime_ns
