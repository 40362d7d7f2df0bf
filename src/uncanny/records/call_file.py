"""`calls.jsonl`: one line for every call, in blocks of one image."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from io import FileIO
from pathlib import Path

import orjson

from uncanny.records.jsonl import append_whole, is_deleted, open_to_append, write_atomically

_BLOCK = 1 << 20


class CallFile:
    """Append-only. An image's block is written just before its record, so only the last can be an orphan."""

    def __init__(self, path: Path, recorded: Callable[[str], bool]) -> None:
        """Opens the file and drops an incomplete last line and calls of an image without a record.

        Raises UsageError.
        """
        self.path = path
        self._file = open_to_append(path)
        self._drop_orphans(recorded)

    def append(self, block: bytes) -> None:
        """Raises StorageError."""
        append_whole(self._file, block)

    def close(self, *, write: bool = True) -> None:
        """With `write` put the file back where it was deleted meanwhile. Raises OSError where that fails."""
        try:
            if write and is_deleted(self._file):
                write_atomically(self.path, _content(self._file))
        finally:
            self._file.close()

    def _drop_orphans(self, recorded: Callable[[str], bool]) -> None:
        size = os.fstat(self._file.fileno()).st_size
        window = _BLOCK
        while True:
            start = max(0, size - window)
            tail = os.pread(self._file.fileno(), size - start, start)
            kept = self._keep(tail, recorded)
            if kept or not start:
                break
            window *= 4
        if start + kept < size:
            os.ftruncate(self._file.fileno(), start + kept)
        if kept and not tail[:kept].endswith(b"\n"):
            append_whole(self._file, b"\n")

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


def _content(file: FileIO) -> Iterator[bytes]:
    offset = 0
    while block := os.pread(file.fileno(), _BLOCK, offset):
        offset += len(block)
        yield block
