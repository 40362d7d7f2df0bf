"""The folder of a run that a service makes: which job it is, what was sent for it, what has come back.

`server.json` says so. With it the same command finds its job again, whatever ended the one before, and sends
and fetches only what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from uncanny.errors import StorageError, UsageError
from uncanny.records.jsonl import write_atomically

if TYPE_CHECKING:
    from uncanny.service.answers import JobFile
    from uncanny.service.client.job import ClientJob
    from uncanny.service.client.local_names import LocalNames

STATE: Final = "server.json"
# Its own lock, and pages: they are written here, with the pictures that are here.
_NOT_FETCHED: Final = frozenset({".lock", "report.html"})
_REVIEWS: Final = "reviews.jsonl"


class FetchedFile(BaseModel):
    """A file that has come back: the digest it had there, and size and time it has here."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    sha256: str
    size: int
    mtime_ns: int


class ServerState(BaseModel):
    """`server.json`: the address, the job, what it was asked, the sets of its images, what has come back.

    `key` is the idempotency key of its start, `job` None until the service has answered.
    """

    model_config = ConfigDict(extra="ignore")

    server: str
    kind: str
    key: str
    job: str | None = None
    options: dict[str, Any] = {}
    sets: list[str] = []
    fetched: dict[str, FetchedFile] = {}


@dataclass(frozen=True)
class ServerFolder:
    path: Path
    state: ServerState
    limits: Mapping[str, Any] = field(default_factory=dict)
    """Those that differ from what the job was asked with."""


def read_state(run: Path) -> ServerState | None:
    """None where there is none. Raises UsageError where it cannot be read."""
    file = run / STATE
    try:
        return ServerState.model_validate_json(file.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise UsageError(
            f"{file} cannot be read: {str(error).splitlines()[0]}",
            remedy="Pass another run with -o, or remove the file to forget the job.",
        ) from None


def write_state(run: Path, state: ServerState) -> None:
    """Raises UsageError where the folder cannot be written."""
    try:
        run.mkdir(parents=True, exist_ok=True)
        if (run / STATE).is_symlink():
            raise UsageError(f"{run / STATE} is a link", remedy="Pass another run with -o.")
        content = orjson.dumps(state.model_dump(mode="json"), option=orjson.OPT_INDENT_2)
        write_atomically(run / STATE, [content])
    except OSError as error:
        raise UsageError(
            f"{run} cannot be used as a run folder: {error.strerror or error}",
            remedy="Pass a folder that you can write to with -o.",
        ) from error


def job_of(path: Path, server: str) -> str | None:
    """The job of `server` that the run in the folder `path` was brought from; None where it was not."""
    if not (path / STATE).is_file():
        return None
    state = read_state(path)
    return state.job if state is not None and state.server == server else None


def check_new(run: Path) -> None:
    """Raises UsageError where `run` has records that no service made: they would be written over."""
    if (run / "run.json").exists() or any(run.glob("*.jsonl")):
        raise UsageError(
            f"{run} already exists and was not made on a service",
            remedy="Pass another run with -o.",
        )


def bring_home(job: ClientJob, run: Path, state: ServerState, names: LocalNames, *, under: str) -> list[str]:
    """Fetch what is new of the job's folder `under` into `run`, named as if it had been made here.

    Returns warnings. Reviews that were written here stay. Raises ServiceError, StorageError, UsageError.
    """
    from uncanny.service.client.downloads import safe_path

    warnings: list[str] = []
    staging = run / ".incoming"

    def wanted(file: JobFile) -> bool:
        name = file.path.removeprefix(under)
        place = safe_path(run, name)
        parts = Path(name).parts
        if parts[0] in (STATE, staging.name) or parts[-1] in _NOT_FETCHED:
            return False
        if _is_fetched(place, state.fetched.get(name), file.sha256):
            return False
        if parts[-1] == _REVIEWS and place.exists() and not _is_unchanged(place, state.fetched.get(name)):
            warnings.append(f"{place} has reviews of its own, and stays; those of {job.id} are there")
            return False
        return True

    def take(file: JobFile, fetched: Path) -> None:
        name = file.path.removeprefix(under)
        place = safe_path(run, name)
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            if place.suffix in (".json", ".jsonl"):
                names.rewrite(fetched, place, place.parent)
                fetched.unlink()
            else:
                fetched.replace(place)
            status = place.stat()
        except OSError as error:
            raise StorageError(
                f"{place} cannot be written: {error.strerror or error}",
                remedy="Free some space, and run the same command again to resume.",
            ) from error
        state.fetched[name] = FetchedFile(
            sha256=file.sha256, size=status.st_size, mtime_ns=status.st_mtime_ns
        )
        write_state(run, state)

    if staging.is_symlink():
        raise UsageError(
            f"{staging} is a link, and uncanny does not write through links", remedy="Remove it."
        )
    job.download(staging, under=under, only=wanted, on_file=take, passing=True)
    _remove_empty(staging)
    return warnings


def _is_fetched(place: Path, known: FetchedFile | None, sha256: str) -> bool:
    return known is not None and known.sha256 == sha256 and _is_unchanged(place, known)


def _is_unchanged(place: Path, known: FetchedFile | None) -> bool:
    try:
        status = place.stat()
    except OSError:
        return False
    return known is not None and (status.st_size, status.st_mtime_ns) == (known.size, known.mtime_ns)


def _remove_empty(folder: Path) -> None:
    for each in sorted(folder.rglob("*"), reverse=True) if folder.is_dir() else []:
        if each.is_dir() and not any(each.iterdir()):
            each.rmdir()
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def differing_options(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    return sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
