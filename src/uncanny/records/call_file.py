"""`calls.jsonl`: one line for every call, in blocks of one image."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import orjson

from uncanny.records.jsonl import append_whole, open_to_append

_BLOCK = 1 << 20


class CallFile:
    """Append-only. An image's block is written just before its record, so only the last can be an orphan."""

    def __init__(self, path: Path, recorded: Callable[[str], bool]) -> None:
        """Opens the file and drops an incomplete last line and calls of an image without a record."""
        self._file = open_to_append(path)
        self._drop_orphans(recorded)

    def append(self, block: bytes) -> None:
        """Raises UsageError."""
        append_whole(self._file, block)

    def close(self) -> None:
        self._file.close()

    def _drop_orphans(self, recorded: Callable[[str], bool]) -> None:
        size = os.fstat(self._file.fileno()).st_size
        window = _BLOCK
        while True:
            start = max(0, size - window)
            tail = os.pread(self._file.fileno(), size - start, start)
            kept = self._keep(tail[: tail.rfind(b"\n") + 1], recorded)
            if kept or not start:
                break
            window *= 4
        if start + kept < size:
            os.ftruncate(self._file.fileno(), start + kept)

    @staticmethod
    def _keep(lines: bytes, recorded: Callable[[str], bool]) -> int:
        """Bytes of `lines` up to the last call of an image that has a record."""
        end = len(lines)
        while end:
            start = lines.rfind(b"\n", 0, end - 1) + 1
            try:
                image = orjson.loads(lines[start:end])["image"]
            except (orjson.JSONDecodeError, KeyError, TypeError):
                image = None
            if isinstance(image, str) and recorded(image):
                break
            end = start
        return end
