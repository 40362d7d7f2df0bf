"""Images that lines of batches name: each is uploaded once, for all questions about it.

`batches.jsonl` says which, so a resumed run uses them again. They are deleted when no question is under way
any more. What a kill leaves behind, the provider deletes after `FILES_LAST`.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from uncanny.client.calls import now
from uncanny.errors import ProviderError, RequestRejectedError, StorageError
from uncanny.models.base import Files, ModelRequest, SentImage
from uncanny.models.discount.batches import FILES_LAST, SMALLEST_FILE, BatchApi
from uncanny.models.http_errors import NothingThereError
from uncanny.records.batch_files import BatchEntry, BatchEvent, BatchFiles

AT_ONCE: Final = 16
DELETING_S: Final = 300.0
# A batch that names a file may wait for others before it is handed in, and then takes up to a day.
USED_FOR: Final = FILES_LAST - timedelta(days=2)


class Uploads:
    """The uploads of one run to the models of `apis`. `servers` has a digest of each one's address, and
    `patiently` makes a call again after errors that may pass."""

    def __init__(
        self,
        files: BatchFiles,
        apis: Mapping[str, BatchApi],
        servers: Mapping[str, str],
        patiently: Callable[..., Awaitable[Any]],
    ) -> None:
        self._files, self._apis, self._servers, self._patiently = files, apis, servers, patiently
        self._turns = asyncio.Semaphore(AT_ONCE)
        # By model and image: when it was begun, and the id it gets, None where the provider does not take it.
        self._begun: dict[tuple[str, str], tuple[datetime, asyncio.Future[str | None]]] = {}
        self._stored: dict[str, BatchEntry] = {}
        self._gone: set[str] = set()

    def open(self) -> None:
        """Take up what earlier sessions uploaded. Raises UsageError."""
        uploaded, self._gone = self._files.uploads()
        for name, entry in uploaded.items():
            model, image = str(entry.model), str(entry.image)
            if self._servers.get(model) != entry.server:
                continue
            self._stored[name] = entry
            if name not in self._gone:
                known: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
                known.set_result(name)
                self._begun[model, image] = entry.at, known

    async def of(self, model: str, request: ModelRequest) -> Files:
        """The files of the images in a request; those that are small, or not taken, have none.

        Raises ModelUnusableError and StorageError.
        """
        images = {image.sha256: image for image in request.images() if len(image.base64) >= SMALLEST_FILE}
        names = await asyncio.gather(*(self._file(model, image) for image in images.values()))
        return {image: name for image, name in zip(images, names, strict=True) if name is not None}

    async def _file(self, model: str, image: SentImage) -> str | None:
        begun, file = self._begun.get((model, image.sha256), (None, None))
        if file is None or begun is None or now() - begun > USED_FOR:
            file = asyncio.ensure_future(self._upload(model, image))
            self._begun[model, image.sha256] = now(), file
        return await file

    async def _upload(self, model: str, image: SentImage) -> str | None:
        async def upload() -> str | None:
            try:
                return await self._apis[model].upload(image)
            except (NothingThereError, RequestRejectedError):
                return None

        async with self._turns:
            name: str | None = await self._patiently(model, upload)
        if name is not None:
            entry = self._entry(
                "uploaded", name, model=model, server=self._servers[model], image=image.sha256
            )
            self._files.note(entry)
            self._stored[name] = entry
        return name

    def lost(self, why: str) -> bool:
        """Whether a line failed for a file that is not there any more, which is uploaded again when needed.

        `why` is what the provider says. Raises StorageError.
        """
        named = self._stored.keys() & re.findall(r"[\w-]+", why)
        for name in named - self._gone:
            self._gone.add(name)
            self._files.note(self._entry("deleted", name))
            self._begun.pop((str(self._stored[name].model), str(self._stored[name].image)), None)
        return bool(named)

    async def delete(self) -> None:
        """Delete all of them. After a first error, or a while, the rest is left to the provider."""
        left = [name for name in self._stored if name not in self._gone]

        async def delete(name: str) -> None:
            async with self._turns:
                await self._apis[str(self._stored[name].model)].delete(name)
            self._gone.add(name)

        try:
            async with asyncio.timeout(DELETING_S), asyncio.TaskGroup() as group:
                for name in left:
                    group.create_task(delete(name))
        except* (ProviderError, TimeoutError):
            pass
        with contextlib.suppress(StorageError):  # another session deletes them once more
            self._files.note(*(self._entry("deleted", name) for name in left if name in self._gone))

    async def close(self) -> None:
        """Give up what is being uploaded."""
        left = [file for _, file in self._begun.values() if not file.done()]
        for file in left:
            file.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    @staticmethod
    def _entry(event: BatchEvent, name: str, **more: str) -> BatchEntry:
        return BatchEntry.model_validate({"event": event, "at": now(), "id": name, **more})
