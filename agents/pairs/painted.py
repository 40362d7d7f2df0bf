"""Pictures that a model has painted, kept in a folder under the digest of their bytes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import orjson
from PIL import Image

from uncanny.errors import ImageError
from uncanny.images.prepared import read_rgb
from uncanny.records.jsonl import write_in_run

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
SUFFIX: Final = ".png"


class Kept(NamedTuple):
    """A painted picture, as its `file`, its RGB pixels, the parameters that the model was really sent, and
    whether it was scaled on its way."""

    file: Path
    picture: Image.Image
    sent: Mapping[str, float]
    resampled: bool = False


@dataclass(frozen=True, slots=True)
class PaintedFolder:
    """Where painted pictures are. What stands for one in the place of a text is JSON with its digest."""

    path: Path

    def keep(self, data: bytes, sent: Mapping[str, float], *, resampled: bool = False) -> str:
        """Store the bytes of a picture, and return what stands for it. Raises StorageError."""
        digest = hashlib.sha256(data).hexdigest()
        file = self._file(digest)
        if not file.is_file():
            write_in_run(file, [data])
        scaled = {"resampled": True} if resampled else {}
        return orjson.dumps({"picture": digest, "sent": dict(sent), **scaled}).decode()

    def read(self, text: str, size: tuple[int, int]) -> Kept:
        """The picture that `text` stands for.

        Raises ValueError, with words for people, where it is not there, is no picture, or is not of `size`.
        """
        try:
            content = orjson.loads(text)
            digest, sent = content["picture"], content["sent"]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            raise ValueError("the answer does not stand for a picture") from None
        if not isinstance(digest, str) or _DIGEST.fullmatch(digest) is None or not isinstance(sent, dict):
            raise ValueError("the answer does not stand for a picture")
        file = self._file(digest)
        try:
            picture, _ = read_rgb(file)
        except ImageError as error:
            raise ValueError(f"the picture cannot be read: {error.message}") from None
        if picture.size != size:
            raise ValueError(
                f"the picture is of {picture.width} × {picture.height} pixels, not {size[0]} × {size[1]}"
            )
        return Kept(file, picture, sent, bool(content.get("resampled")))

    def _file(self, digest: str) -> Path:
        return self.path / f"{digest[:16]}{SUFFIX}"
