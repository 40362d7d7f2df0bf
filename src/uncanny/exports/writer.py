"""What every form is made with: the door a format implements, and the job it is done for."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Final, Literal
from urllib.parse import quote

from uncanny.exports.data import ExportImage
from uncanny.exports.parameters import ExportParameters
from uncanny.images.signature import sniff
from uncanny.records.jsonl import LinesByImage

IMAGES: Final = "images"

# What a copy is called: the beginning of its digest.
COPY_NAME: Final = re.compile(r"([0-9a-f]{32})\.[a-z0-9]{1,5}")


@dataclass(slots=True)
class ExportJob:
    """What the formats of one export share.

    `place` is the folder that everything will lie in, `work` where it is written first. `calls` are the
    lines of `calls.jsonl`, read as they are wanted. `notes` counts what a format could not take, by format.
    `files` are open until all formats are complete, or one has failed.
    """

    place: Path
    work: Path
    parameters: ExportParameters
    calls: Callable[[], LinesByImage]
    notes: dict[str, Counter[str]] = field(default_factory=dict)
    copied: dict[str, str] = field(default_factory=dict)
    missing: int = 0
    files: ExitStack = field(default_factory=ExitStack)

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
        if (data := image.read()) is None:
            self.missing += 1
            return
        format = sniff(data) or "bin"
        suffix = {"JPEG": ".jpg"}.get(format, f".{format.lower()}")
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
    """One form of one export, called `name`.

    `target` is what it writes, a file or a folder, and `place` is where that will lie.
    """

    def __init__(self, name: str, target: Path, place: Path, job: ExportJob) -> None:
        self.name, self.target, self.place, self.job = name, target, place, job
        self.start()

    @abstractmethod
    def start(self) -> None:
        """Open files. Raises UsageError if a package is missing, or the options do not fit the format."""

    @abstractmethod
    def add(self, image: ExportImage) -> None:
        """Raises OSError, UsageError."""

    def finish(self) -> None:  # noqa: B027  # most files need no end
        """Write what comes last. Raises OSError."""

    def open(self, path: Path | None = None, mode: Literal["w", "wb"] = "wb", **text: str) -> IO[Any]:
        """The target, or a file in it, to be written; the job closes it."""
        return self.job.files.enter_context((path or self.target).open(mode, **text))  # type: ignore[call-overload]

    def note(self, what: str) -> None:
        """Count something that this form could not take."""
        self.job.notes.setdefault(self.name, Counter())[what] += 1

    def reference(self, image: ExportImage) -> str:
        folder = self.place if self.target.is_dir() else self.place.parent
        return self.job.reference(image, folder)
