"""What every form is made with: the door a format implements, and the job it is done for."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final
from urllib.parse import quote

from uncanny.exports.data import ExportImage
from uncanny.exports.parameters import ExportParameters
from uncanny.images.signature import sniff
from uncanny.records.jsonl import LinesByImage

IMAGES: Final = "images"
_SUFFIXES: Final = {"JPEG": ".jpg"}
# What a copy is called: the beginning of its digest.
COPY_NAME: Final = re.compile(r"([0-9a-f]{32})\.[a-z0-9]{1,5}")


@dataclass(slots=True)
class ExportJob:
    """What the formats of one export share.

    `place` is the folder that everything will lie in, `work` where it is written first. `calls` are the
    lines of `calls.jsonl`, read as they are wanted. `notes` counts what a format could not take, by format.
    """

    place: Path
    work: Path
    parameters: ExportParameters
    calls: Callable[[], LinesByImage]
    notes: dict[str, Counter[str]] = field(default_factory=dict)
    copied: dict[str, str] = field(default_factory=dict)
    missing: int = 0

    def note(self, format: str, what: str) -> None:
        self.notes.setdefault(format, Counter())[what] += 1

    def take_picture(self, image: ExportImage) -> None:
        """Copy the picture of an image, or see whether it is where the record says. To be called once each.

        A copy is named by its bytes: pictures of the same name do not get into each other's way, and what
        a file was called leads nowhere. Raises OSError where it cannot be written.
        """
        if not self.parameters.copy_pictures:
            try:
                self.missing += not image.file.is_file()
            except OSError:  # as for a name that no file can have
                self.missing += 1
            return
        data = image.read()
        if data is None:
            self.missing += 1
            return
        format = sniff(data)
        suffix = _SUFFIXES.get(format or "", f".{(format or 'bin').lower()}")
        name = (image.record.sha256 or sha256(data).hexdigest())[:32] + suffix
        target = self.work / IMAGES / name
        if not target.exists():
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(data)
        self.copied[image.record.image] = name

    def picture(self, image: ExportImage) -> Path:
        """Where the picture of an image will be found."""
        name = self.copied.get(image.record.image)
        return image.file if name is None else self.place / IMAGES / name

    def upload_name(self, image: ExportImage) -> str:
        """What a picture is called that is uploaded with its folder: a record's name leads out of none."""
        name = self.copied.get(image.record.image)
        parts = image.record.image.split("/")
        return name or "/".join(part for part in parts if part not in ("", ".", ".."))

    def upload_path(self, image: ExportImage) -> str:
        """Where a picture lies that is uploaded with its folder, from that folder's parent for a copy."""
        folder_of_copy = f"{IMAGES}/" if image.record.image in self.copied else ""
        return folder_of_copy + self.upload_name(image)

    def reference(self, image: ExportImage, folder: Path) -> str:
        """What a file in `folder` calls the picture: by its path from there, or after `image_prefix`."""
        picture = self.picture(image)
        if self.parameters.image_prefix is not None:
            return self.parameters.image_prefix + quote(self.upload_path(image))
        return Path(os.path.relpath(picture.absolute(), folder.absolute())).as_posix()


class FormatWriter(ABC):
    """One form of one export. `target` is what it writes, a file or a folder, `place` where that will lie."""

    name: str

    def __init__(self, target: Path, place: Path, job: ExportJob) -> None:
        """Raises UsageError where a package is missing, or the options do not go with the form."""
        self.target, self.place, self.job = target, place, job

    @abstractmethod
    def add(self, image: ExportImage) -> None:
        """Raises OSError, UsageError."""

    @abstractmethod
    def finish(self) -> None:
        """Complete what is written. Raises OSError."""

    @abstractmethod
    def close(self) -> None:
        """Let go of open files, also where the export failed on the way."""

    def note(self, what: str) -> None:
        """Count something that this form could not take."""
        self.job.note(self.name, what)

    def reference(self, image: ExportImage) -> str:
        folder = self.place if self.target.is_dir() else self.place.parent
        return self.job.reference(image, folder)
