"""Images on their way to a service: which there are, under which names they go, and in which batches."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from uncanny.errors import UsageError
from uncanny.files import open_file, read_file
from uncanny.images.discover import SkippedInputs, discover
from uncanny.images.row_files import ROW_SUFFIXES
from uncanny.images.signature import MEDIA_TYPES, sniff
from uncanny.wording import display_path

Images = str | os.PathLike[str] | bytes | Mapping[str, bytes] | Sequence[str | os.PathLike[str] | bytes]
"""Image files and folders, the bytes of a file, bytes by name, or several of these."""

BATCH_IMAGES: Final = 50
BATCH_BYTES: Final = 16 * 1024 * 1024
_SUFFIXES: Final = {"JPEG": ".jpg", "TIFF": ".tif"}


@dataclass(frozen=True, slots=True)
class LocalImage:
    """An image as it is sent: under `name`, from a file or from memory."""

    name: str
    source: Path | bytes
    size: int
    sha256: str

    def read(self) -> bytes:
        """Raises UsageError where the file has gone or changed since its digest was taken."""
        if isinstance(self.source, bytes):
            return self.source
        try:
            data = read_file(self.source)
        except OSError as error:
            raise _unreadable(self.source, error) from error
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise UsageError(
                f"{self.source} changed during the upload", remedy="Upload it again when it is complete."
            )
        return data


@dataclass(frozen=True, slots=True)
class LocalImages:
    """All that is to be sent, each once, what could not be read, and what was passed over in folders."""

    images: tuple[LocalImage, ...]
    unreadable: tuple[tuple[str, str], ...]
    skipped: SkippedInputs


def collect(images: Images) -> LocalImages:
    """Find and digest the images.

    Names keep the folders that were named and all within them, as these can mean something (`real`,
    `generated`). Raises UsageError for a path that does not exist, and where there is no image.
    """
    paths: list[Path] = []
    memory: dict[str, bytes] = {}
    for each in [images] if isinstance(images, str | os.PathLike | bytes | Mapping) else images:
        if isinstance(each, Mapping):
            memory.update({str(name): bytes(data) for name, data in each.items()})
        elif isinstance(each, bytes):
            memory.setdefault(_name_of(each), each)
        elif isinstance(each, str | os.PathLike):
            paths.append(Path(each))
        else:
            raise UsageError(f"`images` has a {type(each).__name__} in it", remedy="Give paths or bytes.")
    for path in paths:
        if path.suffix.lower() in ROW_SUFFIXES and path.is_file():
            raise UsageError(
                f"{path} is a table, and tables cannot be uploaded",
                remedy="Put it into a folder that the service can read, or ask about its images here.",
            )
    discovered = discover(paths)
    taken: dict[str, LocalImage] = {}
    unreadable: list[tuple[str, str]] = []
    base = _base(paths)
    for path in discovered.files:
        name = _free(_name(path, base), taken)
        try:
            with open_file(path) as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                taken[name] = LocalImage(name, path, file.tell(), digest)
        except OSError as error:
            unreadable.append((str(path), error.strerror or str(error)))
    for name, data in memory.items():
        free = _free(name, taken)
        taken[free] = LocalImage(free, data, len(data), hashlib.sha256(data).hexdigest())
    if not taken:
        raise UsageError(
            "There is no image to upload",
            remedy="uncanny looks for files with an image extension, such as .png; pass other files by name.",
        )
    return LocalImages(tuple(taken.values()), tuple(unreadable), discovered.skipped)


def batches(images: Iterable[LocalImage]) -> Iterator[list[LocalImage]]:
    """The images in groups that a request takes."""
    batch: list[LocalImage] = []
    size = 0
    for image in images:
        if batch and (len(batch) == BATCH_IMAGES or size + image.size > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(image)
        size += image.size
    if batch:
        yield batch


def media_type(data: bytes) -> str:
    kind = sniff(data)
    return "application/octet-stream" if kind is None else MEDIA_TYPES[kind]


def _name_of(data: bytes) -> str:
    kind = sniff(data)
    suffix = ".bin" if kind is None else _SUFFIXES.get(kind, f".{kind.lower()}")
    return hashlib.sha256(data).hexdigest()[:16] + suffix


def _base(paths: Sequence[Path]) -> str:
    """The folder from which files are named: that in which all lies that was named."""
    parents = [os.path.dirname(os.path.abspath(path)) for path in paths]  # noqa: PTH100, PTH120
    try:
        return os.path.commonpath(parents) if parents else ""
    except ValueError:  # on several drives
        return ""


def _name(path: Path, base: str) -> str:
    whole = os.path.abspath(path)  # noqa: PTH100  links stay links
    return display_path(Path(os.path.relpath(whole, base) if base else path.name))


def _free(name: str, taken: Mapping[str, LocalImage]) -> str:
    if name not in taken:
        return name
    stem, dot, suffix = name.rpartition(".")
    number = 2
    while (free := f"{stem or name}-{number}{dot}{suffix if stem else ''}") in taken:
        number += 1
    return free


def _unreadable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"{path} cannot be read: {error.strerror or error}")
