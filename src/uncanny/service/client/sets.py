"""Sets of images on a service: sending them, and what a set has and where that lies here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from uncanny.errors import ServiceError, UsageError
from uncanny.service.answers import RefusedImage, SentImages, SetPage
from uncanny.service.client.connection import Connection, FormFile
from uncanny.service.client.uploads import LocalImage, LocalImages, batches, media_type
from uncanny.wording import counted

_FIELD: Final = "files"
_A_PAGE: Final = 1000
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
