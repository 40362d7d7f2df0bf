"""The pictures embedded in a flat table, written out byte for byte."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from uncanny.errors import ImageError, UsageError
from uncanny.eval.mcq.flat_row import Row, RowFault, structured
from uncanny.eval.mcq.problems import shown
from uncanny.images import PixelPolicy
from uncanny.images.file_bytes import read_image_file
from uncanny.images.signature import sniff


class ImageFolder:
    """Writes pictures under names made from their content, and can take back what it wrote.

    The same bytes are written once. Raises UsageError where the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: list[Path] = []
        self._known: set[str] = set()

    def put(self, data: bytes) -> str:
        """The file's name relative to the folder's parent."""
        kind = sniff(data)
        suffix = "bin" if kind is None else {"JPEG": "jpg"}.get(kind, kind.lower())
        name = f"{hashlib.sha256(data).hexdigest()[:24]}.{suffix}"
        if name not in self._known:
            self._write(self._folder / name, data)
            self._known.add(name)
        return f"{self._folder.name}/{name}"

    def _write(self, path: Path, data: bytes) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if path.exists() and path.read_bytes() == data:
                return
            self._made.append(path)
            path.write_bytes(data)
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror or error}") from error

    def take_back(self) -> None:
        """Remove what was written, and the folder where that leaves it empty."""
        for path in self._made:
            path.unlink(missing_ok=True)
        if self._folder.is_dir() and not any(self._folder.iterdir()):
            self._folder.rmdir()


def picture(row: Row, column: str, folder: Path) -> bytes | None:
    """The bytes of a picture cell; None where it is empty.

    A cell is `{bytes, path}`, bytes, a `data:` URL, or a path below `folder`, which is the table's own; the
    older `<column>_path` is understood. Raises RowFault, also for a path that leads out of the folder.
    """
    value = row.get(column)
    if value is None:
        value = row.get(f"{column}_path")
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = structured({column: value}, column)
    if isinstance(value, Mapping):
        held = value.get("bytes")
        value = held if held is not None else value.get("path")
        if isinstance(held, str):
            value = f"data:;base64,{held}"
    if value is None or isinstance(value, bytes):
        return value or None
    if not isinstance(value, str):
        raise RowFault(column, f"{shown(value)} is no picture; give its bytes or its path")
    return _from_text(value, column, folder)


def _from_text(value: str, column: str, folder: Path) -> bytes:
    if value.startswith("data:"):
        try:
            return base64.b64decode(value.partition(",")[2], validate=True)
        except (binascii.Error, ValueError) as error:
            raise RowFault(column, f"not valid base64 ({error})") from error
    try:
        place = (folder / value).resolve()
        if not place.is_relative_to(folder.resolve()):
            raise RowFault(column, f"the path {shown(value)} leads out of the table's folder")
        return read_image_file(place, PixelPolicy().max_file_bytes)
    except ImageError as error:
        raise RowFault(column, f"{shown(value)}: {error.message}") from error
    except (OSError, ValueError, RuntimeError) as error:
        raise RowFault(column, f"{shown(value)} is no path that can be read") from error


def pictures(row: dict[str, Any], folder: Path) -> tuple[bytes, bytes | None]:
    """The image and the stored Q3 overlay, if any. Raises RowFault."""
    image = picture(row, "image", folder)
    if image is None:
        raise RowFault("image", "the row has no picture; embed its bytes or give its path")
    return image, picture(row, "q3_overlay_image", folder)
