"""Files of the fake server, `/v1/files` of OpenAI and Anthropic: images, and lines and results of batches."""

from __future__ import annotations

import base64
import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from uncanny.demo.server.api import BadRequestError

_PURPOSES = ("batch", "vision")


@dataclass(frozen=True, slots=True)
class _File:
    filename: str
    kind: str
    data: bytes
    purpose: str


class Files:
    """All files of one server, in memory. One that is not there is a KeyError."""

    def __init__(self) -> None:
        self._files: dict[str, _File] = {}
        self._made = self._uploads = self._bytes = 0

    def stats(self) -> dict[str, int]:
        """Images that were uploaded, bytes of all uploads, and uploads that have not been deleted."""
        left = sum(each.purpose != "batch_output" for each in self._files.values())
        return {"uploads": self._uploads, "upload_bytes": self._bytes, "files": left}

    def add(self, filename: str, data: bytes, purpose: str, kind: str = "application/jsonl") -> str:
        """The id of a new file."""
        self._made += 1
        name = f"file-fake{self._made}"
        self._files[name] = _File(filename, kind, data, purpose)
        return name

    def data(self, name: str) -> bytes:
        return self._files[name].data

    def filled(self, value: Any, status: int) -> Any:
        """The body of a request with the images themselves where it names files.

        Raises BadRequestError with `status` for a file that is not there.
        """

        def image(name: str) -> tuple[str, str]:
            file = self._files.get(name)
            if file is None:
                raise BadRequestError(f"File {name} was not found", status=status)
            return file.kind, base64.b64encode(file.data).decode()

        match value:
            case {"type": "input_image", "file_id": str(name)}:
                kind, data = image(name)
                return {**value, "image_url": f"data:{kind};base64,{data}"}
            case {"type": "image", "source": {"type": "file", "file_id": str(name)}}:
                kind, data = image(name)
                return {**value, "source": {"type": "base64", "media_type": kind, "data": data}}
            case dict():
                return {key: self.filled(each, status) for key, each in value.items()}
            case list():
                return [self.filled(each, status) for each in value]
        return value

    async def upload(self, request: web.Request) -> web.Response:
        form = await request.post()
        upload, purpose = form.get("file"), form.get("purpose")
        if not isinstance(upload, web.FileField):
            raise BadRequestError("file: is needed")
        if "anthropic-version" in request.headers:
            purpose, lasts = "vision", form.get("expires_in_seconds")
        else:
            lasts = form.get("expires_after[seconds]")
        if purpose not in _PURPOSES:
            raise BadRequestError(f"purpose: must be one of {', '.join(_PURPOSES)}")
        if purpose == "vision" and not re.fullmatch(r"[0-9]{4,7}", str(lasts)):
            raise BadRequestError("an image must expire here: nothing is kept for ever")
        data = upload.file.read()
        self._uploads += purpose == "vision"
        self._bytes += len(data)
        return self._shown(request, self.add(upload.filename, data, str(purpose), upload.content_type))

    async def get(self, request: web.Request) -> web.Response:
        return self._shown(request, request.match_info["id"])

    async def content(self, request: web.Request) -> web.Response:
        return web.Response(body=self.data(request.match_info["id"]))

    async def delete(self, request: web.Request) -> web.Response:
        name = request.match_info["id"]
        del self._files[name]
        return web.json_response({"id": name, "object": "file", "type": "file_deleted", "deleted": True})

    def _shown(self, request: web.Request, name: str) -> web.Response:
        file = self._files[name]
        shown = {"id": name, "filename": file.filename}
        if "anthropic-version" in request.headers:
            more = {
                "type": "file",
                "mime_type": file.kind,
                "size_bytes": len(file.data),
                "created_at": datetime.now(UTC).isoformat(),
                "downloadable": False,
            }
        else:
            more = {
                "object": "file",
                "bytes": len(file.data),
                "created_at": round(time.time()),
                "purpose": file.purpose,
                "status": "processed",
            }
        return web.json_response(shown | more)
