"""Files of a job, brought to this machine: begun ones go on, digests are checked, none is ever half there.

Names come from the server and are not trusted: nothing is written outside the folder that was named, and
nothing through a link in it.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Final

import httpx2

from uncanny.errors import ServiceError, StorageError, UncannyError, UsageError
from uncanny.service.answers import JobFile
from uncanny.service.client.connection import Connection
from uncanny.wording import shown

PARTIAL: Final = ".part"
MARK: Final = ".uncanny-job"
# What a folder has that a run was made in, here or with `--server`.
_RUN_FILES: Final = ("run.json", "server.json")
_CHUNK: Final = 1024 * 1024
_MOST_DEPTH: Final = 20
_MOST_ATTEMPTS: Final = 5
_RESERVED: Final = frozenset(
    {"con", "prn", "aux", "nul", *(f"{name}{n}" for name in ("com", "lpt") for n in range(1, 10))}
)


def safe_path(folder: Path, name: str) -> Path:
    """Where the file that the server calls `name` goes. Raises ServiceError where that is not in `folder`."""
    pieces = name.split("/")
    wrong = (
        not name
        or len(name) > 1000
        or len(pieces) > _MOST_DEPTH
        or any(each in ("", ".", "..") or len(os.fsencode(each)) > 250 for each in pieces)
        or any(ord(char) < 32 or char in "\\:\x7f" for char in name)
        or any(each.split(".")[0].lower() in _RESERVED or each[-1] in ". " for each in pieces)
        or pieces[-1].endswith(PARTIAL)
        or PurePosixPath(name).is_absolute()
    )
    if wrong:
        raise ServiceError(
            f"The server names a file {shown(name)}, which could lie anywhere",
            remedy="Nothing of that name was written. Is this server one to trust?",
        )
    place = folder
    for each in pieces[:-1]:
        place = place / each
        if place.is_symlink():
            raise UsageError(
                f"{place} is a link, and uncanny does not write through links", remedy="Pass another folder."
            )
    place = place / pieces[-1]
    if place.is_symlink() or (place.exists() and not place.is_file()):
        raise UsageError(f"{place} already exists and is not a file", remedy="Pass another folder.")
    return place


def take_folder(folder: Path, job_id: str, places: Iterable[tuple[JobFile, Path]]) -> None:
    """Make `folder` the one of this job's files, which it says in itself from now on.

    Raises UsageError where it is a file, another job's folder or a run's own, or has other files in the way;
    StorageError where it cannot be made.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(
            f"{folder} is a file", remedy="Pass a folder; uncanny creates it if it does not exist."
        )
    mark = folder / MARK
    try:
        if mark.is_file():
            other = mark.read_text(encoding="utf-8", errors="replace").strip()
            if other != job_id:
                raise UsageError(
                    f"{folder} has the files of another job, {shown(other)}", remedy="Pass another folder."
                )
            return
        if any((folder / name).exists() for name in _RUN_FILES):
            raise UsageError(f"{folder} is the folder of another run", remedy="Pass another folder.")
        for file, place in places:
            if place.exists() and not has(place, file):
                raise UsageError(f"{place} already exists and differs", remedy="Pass another folder.")
        folder.mkdir(parents=True, exist_ok=True)
        mark.write_text(f"{job_id}\n", encoding="utf-8")
    except OSError as error:
        raise StorageError(
            f"{folder} cannot be written to: {error.strerror or error}",
            remedy="Free some space or pass another folder, and download again.",
        ) from error


def has(file: Path, remote: JobFile) -> bool:
    """Whether `file` is what the server has, by its size and its digest."""
    try:
        return file.stat().st_size == remote.size and _digest(file) == remote.sha256
    except OSError:
        return False


def fetch(connection: Connection, source: str, remote: JobFile, target: Path) -> None:
    """Bring the file that lies at `source` to `target`, whole or not at all.

    What an earlier, broken attempt left in the part file beside `target` is not asked for again. Raises
    ServiceError where the connection stays broken or what comes is not what the server says it has;
    StorageError where the disk does not take it.
    """
    partial = target.with_name(f".{target.name}{PARTIAL}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        attempts = 0
        while (error := _go_on(connection, source, remote, partial)) is not None:
            attempts += 1
            if attempts == _MOST_ATTEMPTS:
                raise error
        if _digest(partial) != remote.sha256:
            partial.unlink()
            raise ServiceError(
                f"{remote.path} does not arrive as the server has it",
                remedy="If the job is still running, download again when it has ended.",
            )
        partial.replace(target)
    except OSError as error:
        raise StorageError(
            f"{target} cannot be written: {error.strerror or error}",
            remedy="Free some space or pass another folder, and download again to resume.",
        ) from error


def _go_on(connection: Connection, source: str, remote: JobFile, partial: Path) -> UncannyError | None:
    """Fetch what is missing of the part file. Returns why it is not whole yet, None where it is."""
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
    with os.fdopen(descriptor, "wb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UsageError(f"{partial} is not a regular file", remedy="Remove it.")
        begun = file.seek(0, os.SEEK_END)
        if begun > remote.size:
            begun = file.seek(0)
            file.truncate()
        if begun == remote.size:
            return None
        headers = {"Range": f"bytes={begun}-"} if begun else {}
        with connection.stream(source, headers=headers) as response:
            if response.status_code != 206:
                begun = file.seek(0)
                file.truncate()
            missing = remote.size - begun
            try:
                for chunk in response.iter_raw(_CHUNK):
                    missing -= len(chunk)
                    if missing < 0:
                        file.seek(0)
                        file.truncate()
                        raise ServiceError(f"{remote.path} is longer than the server says it is")
                    file.write(chunk)
            except httpx2.HTTPError as error:
                return connection.lost(error)
        file.flush()
        os.fsync(file.fileno())
    return ServiceError(f"{remote.path} ends early", remedy="Download again to resume.") if missing else None


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
