"""Uploaded images and files: what there is and where it lies."""

from __future__ import annotations

from pathlib import Path

from uncanny.service.store.database import Database


class UploadStore:
    """Image sets in `DATA/images/SET`, files in `DATA/files/FILE/NAME`."""

    def __init__(self, database: Database, data: Path) -> None:
        self._database, self._data = database, data

    def images_folder(self, set_id: str) -> Path:
        """Where the images of a set lie."""
        return self._data / "images" / set_id

    def file_folder(self, file_id: str) -> Path:
        """Where a file lies, under its own name."""
        return self._data / "files" / file_id
