"""Uploaded images and files: received into a file of their own, checked, and kept under safe names.

A set of images is the folder `DATA/images/SET`, a file is `DATA/files/FILE/NAME`. The database says what
there is: what lies there besides was left by a kill between the two, and is removed by `sweep`.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Final, Self

from sqlalchemy import Connection, Row, delete, exists, insert, select, update

from uncanny.errors import ConflictError, ImageError, NotFoundError, StorageError, UsageError, writable
from uncanny.files import dump_json
from uncanny.images.columns import FILE_NAME, METADATA_LINES
from uncanny.images.decode import explain, header_size, without_warnings
from uncanny.images.encode import PixelPolicy
from uncanny.images.signature import Format, sniff
from uncanny.images.structure import check_structure
from uncanny.records.jsonl import append_whole, open_to_append
from uncanny.service import is_id, new_id
from uncanny.service.answers import ImageSet, SetPage, SetsPage, StoredFile, StoredImage
from uncanny.service.store.database import Also, Database, nothing
from uncanny.service.store.names import image_name, numbered, safe_name
from uncanny.service.store.tables import files as F
from uncanny.service.store.tables import image_sets as SETS
from uncanny.service.store.tables import images as I
from uncanny.service.store.tables import jobs as J

FILE_SUFFIXES: Final = (".jsonl", ".json", ".csv", ".parquet")
INCOMING: Final = "incoming"
ORIGINAL_NAME: Final = "original_name"
_HEAD_BYTES: Final = 4096
_YOUNG_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class UploadLimits:
    """Images and bytes of one request, images of a set, bytes and pixels of an image, bytes of a file."""

    request_images: int = 2_000
    request_bytes: int = 8 * 2**30
    set_images: int = 200_000
    image_bytes: int = PixelPolicy().max_file_bytes
    image_pixels: int = PixelPolicy().max_pixels
    file_bytes: int = 2 * 2**30


class Incoming:
    """A file on its way in: written piece by piece, gone at the end of the context unless it was kept."""

    def __init__(self, path: Path, most: int) -> None:
        self.path, self._most = path, most
        self.size = 0
        self._digest = sha256()
        self._file: BinaryIO | None = path.open("xb")

    @property
    def too_large(self) -> bool:
        return self.size > self._most

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()

    def write(self, data: bytes) -> None:
        """Beyond the limit nothing is kept any more. Raises StorageError where the disk takes no more."""
        assert self._file is not None
        self.size += len(data)
        if self.too_large:
            self._file.truncate(0)
            return
        self._digest.update(data)
        with _on_disk():
            self._file.write(data)

    def close(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            with _on_disk():
                file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(StorageError):
            self.close()
        self.path.unlink(missing_ok=True)


class UploadStore:
    """Image sets and files. Safe from threads and processes."""

    def __init__(self, database: Database, data: Path, limits: UploadLimits | None = None) -> None:
        self._database, self._data = database, data
        self.limits = limits or UploadLimits()

    def images_folder(self, set_id: str) -> Path:
        """Where the images of a set lie. Raises NotFoundError for what is no id."""
        if not is_id(set_id, "set"):
            raise _no_set(set_id)
        return self._data / "images" / set_id

    def file_folder(self, file_id: str) -> Path:
        """Where a file lies, under its own name. Raises NotFoundError for what is no id."""
        if not is_id(file_id, "file"):
            raise _no_file(file_id)
        return self._data / "files" / file_id

    def receive(self, most: int) -> Incoming:
        """Begin to receive a file of at most `most` bytes. Raises StorageError."""
        folder = self._data / INCOMING
        with _on_disk():
            folder.mkdir(exist_ok=True)
            return Incoming(folder / secrets.token_hex(16), most)

    # Image sets

    def new_set(self, *, name: str | None, by: str) -> ImageSet:
        set_id = new_id("set")
        with _on_disk():
            self.images_folder(set_id).mkdir(parents=True)
        with self._database.write() as connection:
            row = connection.execute(
                insert(SETS)
                .values(id=set_id, name=name, created_at=self._database.now(), created_by=by)
                .returning(SETS)
            ).one()
        return _image_set(row)

    def image_set(self, set_id: str) -> ImageSet:
        """Raises NotFoundError."""
        with self._database.read() as connection:
            row = connection.execute(select(SETS).where(SETS.c.id == set_id)).one_or_none()
        if row is None:
            raise _no_set(set_id)
        return _image_set(row)

    def sets(self, *, limit: int = 50, before: str | None = None) -> SetsPage:
        """The newest first, older than the set `before`.

        Raises NotFoundError where `before` is no set.
        """
        query = select(SETS).order_by(SETS.c.created_at.desc(), SETS.c.id.desc()).limit(limit + 1)
        with self._database.read() as connection:
            if before is not None:
                at = connection.execute(
                    select(SETS.c.created_at).where(SETS.c.id == before)
                ).scalar_one_or_none()
                if at is None:
                    raise _no_set(before)
                older = (SETS.c.created_at < at) | ((SETS.c.created_at == at) & (SETS.c.id < before))
                query = query.where(older)
            rows = connection.execute(query).all()
        page = [_image_set(row) for row in rows[:limit]]
        return SetsPage(sets=tuple(page), next=page[-1].id if len(rows) > limit else None)

    def images(self, set_id: str, *, limit: int = 100, after: str | None = None) -> SetPage:
        """A set and its images in order of their names, those after `after`. Raises NotFoundError."""
        image_set = self.image_set(set_id)
        query = select(I).where(I.c.image_set == set_id).order_by(I.c.name).limit(limit + 1)
        if after is not None:
            query = query.where(I.c.name > after)
        with self._database.read() as connection:
            rows = connection.execute(query).all()
        page = tuple(StoredImage(**row._mapping) for row in rows[:limit])
        return SetPage(**dict(image_set), images=page, next=page[-1].name if len(rows) > limit else None)

    def keep_image(self, set_id: str, incoming: Incoming, name: str) -> tuple[StoredImage, bool] | None:
        """Put what came in into the set; the image, and whether the set had it already.

        None where the set has as many images as it may: one that it has already is told also then. Nothing is
        decoded. Where its name cannot be a file's name here, a line of the set's metadata file has the
        original. Raises ImageError for what is not an
        image that is taken, NotFoundError, StorageError.
        """
        incoming.close()
        format, (width, height) = self._checked(incoming, name)
        with _on_disk(), self._database.write() as connection:
            kept = self._keep_image(connection, set_id, incoming, image_name(name, format), width, height)
            if kept is not None and not kept[1] and kept[0].name != name:
                # Records have the original as the column `original_name`.
                line = {FILE_NAME: kept[0].name, ORIGINAL_NAME: writable(name)}
                with open_to_append(self.images_folder(set_id) / METADATA_LINES) as file:
                    append_whole(file, dump_json(line) + b"\n")
            return kept

    def delete_set(self, set_id: str, also: Also = nothing) -> None:
        """Raises NotFoundError, ConflictError where a job that has not ended asks about its images."""
        with self._database.write() as connection:
            _check_unused(connection, set_id)
            if not connection.execute(delete(SETS).where(SETS.c.id == set_id)).rowcount:
                raise _no_set(set_id)
            also(connection)
        shutil.rmtree(self.images_folder(set_id), ignore_errors=True)

    # Files

    def keep_file(self, incoming: Incoming, name: str, *, by: str) -> StoredFile:
        """Keep what came in as a file. Raises UsageError for a suffix that no command reads, StorageError."""
        incoming.close()
        safe = PurePosixPath(safe_name(name)).name
        if PurePosixPath(safe).suffix.lower() not in FILE_SUFFIXES:
            raise UsageError(
                "Files of this kind are not accepted",
                remedy=f"Give one that ends in {', '.join(FILE_SUFFIXES)}.",
            )
        if incoming.too_large:
            raise UsageError(f"The file is larger than {self.limits.file_bytes:,} bytes")
        file_id = new_id("file")
        folder = self.file_folder(file_id)
        values = {"id": file_id, "name": safe, "sha256": incoming.sha256, "size": incoming.size}
        with _on_disk():
            folder.mkdir(parents=True)
            incoming.path.replace(folder / safe)
        with self._database.write() as connection:
            row = connection.execute(
                insert(F).values(**values, created_at=self._database.now(), created_by=by).returning(F)
            ).one()
        return StoredFile(**row._mapping)

    def file(self, file_id: str) -> StoredFile:
        """Raises NotFoundError."""
        with self._database.read() as connection:
            row = connection.execute(select(F).where(F.c.id == file_id)).one_or_none()
        if row is None:
            raise _no_file(file_id)
        return StoredFile(**row._mapping)

    def file_path(self, file_id: str) -> Path:
        """Where its content lies. Raises NotFoundError."""
        return self.file_folder(file_id) / self.file(file_id).name

    def delete_file(self, file_id: str, also: Also = nothing) -> None:
        """Raises NotFoundError, ConflictError where a job that has not ended reads it."""
        with self._database.write() as connection:
            _check_unused(connection, file_id)
            if not connection.execute(delete(F).where(F.c.id == file_id)).rowcount:
                raise _no_file(file_id)
            also(connection)
        shutil.rmtree(self.file_folder(file_id), ignore_errors=True)

    def sweep(self) -> None:
        """Remove what a kill left: half-received files, and folders and images that the database lacks.

        What is younger than an hour stays: another process may just be receiving it. What is more than an
        hour ahead is not young: the clock was set back since.
        """
        for path in (self._data / INCOMING).glob("*"):
            if _is_left(path):
                path.unlink(missing_ok=True)
        folders = [*(self._data / "files").glob("file_*"), *(self._data / "images").glob("set_*")]
        for folder in filter(_is_left, folders):
            is_file = folder.name.startswith("file_")
            try:
                (self.file if is_file else self.image_set)(folder.name)
            except NotFoundError:
                shutil.rmtree(folder, ignore_errors=True)
                continue
            if is_file:
                continue
            with self._database.read() as connection:
                known = set(
                    connection.execute(select(I.c.name).where(I.c.image_set == folder.name)).scalars()
                )
            for path in folder.rglob("*"):
                name = path.relative_to(folder).as_posix()
                if not path.is_dir() and _is_left(path) and name not in known and name != METADATA_LINES:
                    path.unlink(missing_ok=True)

    # Within

    @without_warnings()
    def _checked(self, incoming: Incoming, name: str) -> tuple[Format, tuple[int, int]]:
        if incoming.too_large:
            raise ImageError(
                f"the file is larger than {self.limits.image_bytes:,} bytes",
                kind="too_large",
                remedy="Make it smaller.",
            )
        if incoming.size == 0:
            raise ImageError("the file is empty", kind="empty", remedy="Was it cut off?")
        with incoming.path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
            file.seek(0)
            try:
                check_structure(file)
                width, height = header_size(file)
            except Exception as error:  # decoders raise all kinds of errors on hostile files
                raise explain(error, head, PurePosixPath(name).suffix.lower()) from error
        if width * height > self.limits.image_pixels:
            raise ImageError(
                f"the file declares {width:,} × {height:,} pixels, the limit is {self.limits.image_pixels:,}",
                kind="bomb",
                remedy="Make the picture smaller.",
            )
        format = sniff(head)
        if format is None or width < 1 or height < 1:
            raise ImageError("the file has no pixels", kind="damaged")
        return format, (width, height)

    def _keep_image(
        self, connection: Connection, set_id: str, incoming: Incoming, name: str, width: int, height: int
    ) -> tuple[StoredImage, bool] | None:
        # The row is locked, so that of two who add to one set each sees what the other has added.
        count = connection.execute(
            select(SETS.c.image_count).where(SETS.c.id == set_id).with_for_update()
        ).scalar_one_or_none()
        if count is None:
            raise _no_set(set_id)
        mine = I.c.image_set == set_id
        there = connection.execute(select(I).where(mine, I.c.sha256 == incoming.sha256)).one_or_none()
        if there is not None:
            return StoredImage(**there._mapping), True
        if count >= self.limits.set_images:
            return None
        folder = self.images_folder(set_id)
        for free in numbered(name):
            if connection.execute(select(exists().where(mine, I.c.name == free))).scalar_one():
                continue
            target = folder / free
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                if target.is_dir():
                    continue
                incoming.path.replace(target)
            except (FileExistsError, NotADirectoryError):  # a folder is called like an image of the set
                free = free.replace("/", "_")
                if connection.execute(select(exists().where(mine, I.c.name == free))).scalar_one():
                    continue
                incoming.path.replace(folder / free)
            break
        stored = StoredImage(
            name=free, sha256=incoming.sha256, size=incoming.size, width=width, height=height
        )
        connection.execute(insert(I).values(image_set=set_id, **dict(stored)))
        connection.execute(
            update(SETS)
            .where(SETS.c.id == set_id)
            .values(image_count=SETS.c.image_count + 1, image_bytes=SETS.c.image_bytes + incoming.size)
        )
        return stored, False


def _is_left(path: Path) -> bool:
    try:
        return abs(time.time() - path.lstat().st_mtime) > _YOUNG_S
    except FileNotFoundError:
        return False


def _check_unused(connection: Connection, upload_id: str) -> None:
    waiting = J.c.state.in_(("queued", "running"))
    job = connection.execute(
        select(J.c.id).where(waiting, J.c.params.contains(f'"upload:{upload_id}"', autoescape=True)).limit(1)
    ).scalar_one_or_none()
    if job is not None:
        raise ConflictError(f"Job {job} uses it and has not ended", remedy="Cancel that job first.")


def _image_set(row: Row[Any]) -> ImageSet:
    return ImageSet(**row._mapping, count=row.image_count, size=row.image_bytes)


def _no_set(set_id: str) -> NotFoundError:
    return NotFoundError(f"There is no set of images {set_id[:40]!r}", remedy="It may have been deleted.")


def _no_file(file_id: str) -> NotFoundError:
    return NotFoundError(f"There is no file {file_id[:40]!r}", remedy="It may have been deleted.")


@contextlib.contextmanager
def _on_disk() -> Iterator[None]:
    """Raises StorageError where the disk takes no more."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or os.strerror(error.errno or 0)
        raise StorageError(
            f"What was uploaded cannot be kept: {reason}", remedy="Free some disk space."
        ) from error
