"""Images on their way to a service: under which names they go, in which batches, and into which sets."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from uncanny.errors import ServiceError, UsageError
from uncanny.files import open_file, read_file
from uncanny.images.discover import SkippedInputs, discover
from uncanny.images.row_files import ROW_SUFFIXES
from uncanny.images.signature import MEDIA_TYPES, sniff
from uncanny.service.answers import RefusedImage, SentImages, SetPage
from uncanny.service.client.connection import Connection, FormFile
from uncanny.wording import counted, display_path

Images = str | os.PathLike[str] | bytes | Mapping[str, bytes] | Sequence[str | os.PathLike[str] | bytes]
"""Image files and folders, the bytes of a file, bytes by name, or several of these."""

BATCH_IMAGES: Final = 50
BATCH_BYTES: Final = 16 * 1024 * 1024
_FIELD: Final = "files"
_A_PAGE: Final = 1000
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


OnSent = Callable[[int, int], object]
"""Is told how many images of how many are there."""


@dataclass(frozen=True, slots=True)
class UploadedImage:
    """An image on a service: `name` in the set `set`, and where it was sent from, None for bytes."""

    set: str
    name: str
    sha256: str
    size: int
    source: Path | None = None


@dataclass(frozen=True, slots=True, repr=False)
class UploadedImages:
    """Images on a service, as an input of jobs. `refused` are those it did not take, and why.

    `sent` counts those that were not there before. Several files with the same content lie in several sets: a
    set has each content once.
    """

    images: tuple[UploadedImage, ...]
    refused: tuple[RefusedImage, ...] = ()
    sent: int = 0

    def __repr__(self) -> str:
        refused = f", {len(self.refused):,} refused" if self.refused else ""
        return f"<{counted(len(self.images), 'image')} in {', '.join(self.sets)}{refused}>"

    @property
    def sets(self) -> tuple[str, ...]:
        """The ids of the sets they lie in: one, but for files with the same content."""
        return tuple(dict.fromkeys(image.set for image in self.images))

    @property
    def references(self) -> tuple[str, ...]:
        """As the `images` of a job."""
        return tuple(f"upload:{each}" for each in self.sets)


def upload_images(
    connection: Connection,
    local: LocalImages,
    *,
    into: Sequence[str] = (),
    on_sent: OnSent = lambda _sent, _of: None,
    on_set: Callable[[str], object] = lambda _id: None,
) -> UploadedImages:
    """Send what is not there yet, in batches: into the sets `into`, then into new ones.

    An image that the service refuses, or that cannot be read, is in `refused`, and the others go on. `on_set`
    hears the id of each new set as soon as there is one. Raises UsageError where no image is taken,
    ServiceError where the connection stays broken: the sets keep what they have.
    """
    refused = [RefusedImage(name=path, code="unreadable", message=why) for path, why in local.unreadable]
    images: list[UploadedImage] = []
    done = new = 0
    on_sent(done, len(local.images))
    for number, layer in enumerate(_layers(local.images)):
        filling = _Set(connection, into[number] if number < len(into) else None)
        missing = [image for image in layer if not filling.has(image)]
        done += len(layer) - len(missing)
        new += len(missing)
        on_sent(done, len(local.images))
        for batch in batches(missing):
            if filling.send(batch):
                on_set(filling.id)
            done += len(batch)
            on_sent(done, len(local.images))
        images += filling.images(layer)
        refused += filling.refused
    if not images:
        why = "; ".join(f"{each.name}: {each.message}" for each in refused[:3])
        raise UsageError(f"{connection.shown} accepted no images: {why or 'there are none'}")
    return UploadedImages(tuple(images), tuple(refused), new)


def _layers(images: Iterable[LocalImage]) -> list[list[LocalImage]]:
    """The images so that no two of a layer have the same content."""
    layers: list[list[LocalImage]] = []
    times: dict[str, int] = {}
    for image in images:
        layer = times.get(image.sha256, 0)
        times[image.sha256] = layer + 1
        if layer == len(layers):
            layers.append([])
        layers[layer].append(image)
    return layers


class _Set:
    """A set while it is filled; what it has is known by content."""

    def __init__(self, connection: Connection, set_id: str | None) -> None:
        self._connection = connection
        self._id = set_id
        self._there: dict[str, str] = {}
        self.refused: list[RefusedImage] = []
        if set_id is not None:
            self._read(set_id)

    @property
    def id(self) -> str:
        assert self._id is not None
        return self._id

    def has(self, image: LocalImage) -> bool:
        return image.sha256 in self._there

    def send(self, batch: Iterable[LocalImage]) -> bool:
        """Whether the set was made for it."""
        form: list[FormFile] = []
        for image in batch:
            try:
                data = image.read()
            except UsageError as error:
                self.refused.append(RefusedImage(name=image.name, code="unreadable", message=error.message))
                continue
            form.append((_FIELD, (image.name, data, media_type(data))))
        if not form:
            return False
        where = "images" if self._id is None else f"images/{self._id}"
        answer = self._connection.write("POST", where, SentImages, files=form)
        assert answer is not None
        is_new, known = self._id is None, self._id or answer.id
        if answer.id != known:
            raise ServiceError(f"{self._connection.shown} put images of {known} into {answer.id}")
        self._id = known
        self._there |= {image.sha256: image.name for image in answer.images}
        self.refused += answer.refused
        return is_new

    def images(self, local: Iterable[LocalImage]) -> list[UploadedImage]:
        """Those of `local` that the set has."""
        taken = []
        for image in local:
            name = self._there.get(image.sha256)
            if name is not None:
                source = image.source if isinstance(image.source, Path) else None
                taken.append(UploadedImage(self.id, name, image.sha256, image.size, source))
        return taken

    def _read(self, set_id: str) -> None:
        for page in self._connection.pages(f"images/{set_id}", SetPage, {"limit": _A_PAGE}):
            self._there |= {image.sha256: image.name for image in page.images}
