"""What a run handed in: `batches.jsonl` says it of batches, before and after, `background.jsonl` of calls.

So a kill in between loses no batch, and hands none in twice. The folder `batches/` has the lines and the
results of batches, under the tags of these, for as long as they are needed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from uncanny.errors import StorageError
from uncanny.files import open_file
from uncanny.records.jsonl import write_atomically
from uncanny.records.run_folder import check_no_links
from uncanny.records.shared_log import SharedLog

BatchEvent = Literal["submitting", "submitted", "done", "uploaded", "deleted"]
Key = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
# A part of addresses.
ProviderId = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,200}$")]
Most = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class BatchEntry(BaseModel):
    """A line of `batches.jsonl`: what happens to the batch that we call `tag`, or to an image.

    `submitting` comes before it is handed in, with the `model`, a digest of the address of its `server`,
    the `keys` of its lines in the answer cache, and the most `tokens` and US dollars it can take; `submitted`
    after that, with the provider's `id` of it; `done` when its answers are in the cache, or it was not taken.
    Both come again when a session ends early, with the keys whose answers were `booked`, so counted.

    `uploaded` has `model` and `server`, the sha256 of the `image` as sent, and the provider's `id` of the
    file; `deleted` comes when it is not there any more.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    tag: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")] | None = None
    event: BatchEvent
    at: datetime
    model: str | None = None
    server: str | None = None
    keys: tuple[Key, ...] = ()
    booked: tuple[Key, ...] = ()
    tokens: Most = 0
    cost_usd: Most = 0
    image: Key | None = None
    id: ProviderId | None = None


class BackgroundEntry(BaseModel):
    """A line of `background.jsonl`: the question `key` was handed in, or is `done`.

    `id` is the provider's of the response, `model` and `server` as in a `BatchEntry`. The price depends on
    `window`. `booked` says that the answer was counted and could not be kept.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    key: Key
    at: datetime
    id: ProviderId
    model: str
    server: str
    window: str | None = None
    done: bool = False
    booked: bool = False


class BackgroundLog:
    """The file `background.jsonl` of a run. Creating the object touches nothing on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._log = SharedLog(path, BackgroundEntry, lock=".background.lock", what="calls in the background")

    def note(self, entry: BackgroundEntry) -> None:
        """Append an entry; it is on disk when this returns. Raises StorageError."""
        self._log.append([entry])

    def under_way(self) -> dict[str, BackgroundEntry]:
        """What is not done, by key. Raises UsageError."""
        entries: dict[str, BackgroundEntry] = {}
        for entry in self._log.read():
            if entry.done:
                entries.pop(entry.key, None)
            else:
                entries[entry.key] = entry
        return entries


class BatchFiles:
    """The folder at `path`, and `batches.jsonl` beside it. Creating the object touches nothing on disk."""

    def __init__(self, path: Path) -> None:
        self.journal = path.with_suffix(".jsonl")
        self._path = path
        self._log = SharedLog(self.journal, BatchEntry, lock=".batches.lock", what="batches")

    def open(self) -> None:
        """Make the folder. Raises UsageError for links in it, StorageError."""
        with self._written():
            check_no_links(self._path, writes=True)
            self._path.mkdir(exist_ok=True)

    def note(self, *entries: BatchEntry) -> None:
        """Append all entries or none; they are on disk when this returns. Raises StorageError."""
        self._log.append(entries)

    def under_way(self) -> dict[str, BatchEntry]:
        """Batches that are not done, by tag, with the provider's id where it is known. Raises UsageError."""
        entries: dict[str, BatchEntry] = {}
        for entry in self._log.read():
            if entry.tag is None:
                continue
            if entry.event == "submitting":
                entries[entry.tag] = entry
            elif entry.event == "done":
                entries.pop(entry.tag, None)
            elif entry.tag in entries:
                entries[entry.tag] = entries[entry.tag].model_copy(update={"id": entry.id})
        return entries

    def uploads(self) -> tuple[dict[str, BatchEntry], set[str]]:
        """Images that were uploaded, by the id of the file, and ids of those that are deleted. Raises
        UsageError."""
        entries = [entry for entry in self._log.read() if entry.id is not None]
        uploaded = {str(entry.id): entry for entry in entries if entry.event == "uploaded"}
        return uploaded, {str(entry.id) for entry in entries if entry.event == "deleted"}

    def ids(self) -> set[str]:
        """The providers' ids of all batches there ever were. Raises UsageError."""
        return {entry.id for entry in self._log.read() if entry.event == "submitted" and entry.id is not None}

    def lines(self, tag: str) -> Path:
        return self._path / f"{tag}.jsonl"

    def results(self, tag: str) -> Path:
        return self._path / f"{tag}.results.jsonl"

    def add_line(self, tag: str, line: bytes) -> None:
        """Raises StorageError."""
        with self._written(), self.lines(tag).open("ab") as file:
            file.write(line)

    def write(self, path: Path, chunks: Iterable[bytes]) -> None:
        """Write one of the files. Raises StorageError."""
        with self._written():
            write_atomically(path, chunks)

    def read_lines(self, tag: str) -> list[bytes]:
        """None where they are not there any more."""
        try:
            with open_file(self.lines(tag)) as file:
                return list(file)
        except OSError:
            return []

    def read_results(self, tag: str) -> Iterator[bytes]:
        """Line by line. Raises StorageError."""
        try:
            with open_file(self.results(tag)) as file:
                yield from file
        except OSError as error:
            raise unreadable(self.results(tag), error) from error

    def result(self, tag: str, offset: int, length: int) -> bytes:
        """So many bytes of the results. Raises OSError."""
        with open_file(self.results(tag)) as file:
            file.seek(offset)
            return file.read(length)

    def keep(self, tags: Collection[str]) -> None:
        """Delete the files of all other batches, and the folder if it is empty then."""
        for file in self._path.glob("*.jsonl"):
            if file.name.partition(".")[0] not in tags:
                file.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # something is left
            self._path.rmdir()

    @contextlib.contextmanager
    def _written(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StorageError(
                f"{self._path} cannot be written: {error.strerror or error}",
                remedy="Free some disk space and run the same again.",
            ) from error


def unreadable(path: Path, error: OSError) -> StorageError:
    """For a file of a batch that is gone, or not to be read any more."""
    return StorageError(
        f"{path} cannot be read: {error.strerror or error}", remedy="Run the same again to resume."
    )
