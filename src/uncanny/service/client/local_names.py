"""Records that a service made, with files named where they lie on this machine.

On the service an image lies in its set and an item file under its id: records, calls and `run.json` name them
from the job's run folder, as they name everything. Here they are named from the folder that the run was
brought to, or from `root`, as if it had been made here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from uncanny.errors import ServiceError
from uncanny.files import dump_json, load_json
from uncanny.records.jsonl import write_atomically
from uncanny.service.client.uploads import UploadedImage
from uncanny.wording import display_path

_LONGEST: Final = 4_000
_DEEPEST: Final = 50
_IN_SET: Final = re.compile(r"(?:^|/)(set_[a-z2-7]{20})(?:/(.+))?$", re.DOTALL)
_FILE: Final = re.compile(r"(?:^|/)(file_[a-z2-7]{20})(?:/[^/]+)?$")
_OF_JOB: Final = re.compile(r"(?:^|/)(job_[a-z2-7]{20})/run(?:/(.+))?$", re.DOTALL)
# Every way in which such a name is recognised: lines without one are taken over as they are.
_MARKS: Final = (b"set_", b"file_", b"job_")


@dataclass(frozen=True)
class LocalNames:
    """Where things lie here: images by set and name, folders by set, files by id, and runs by job."""

    images: Mapping[tuple[str, str], Path] = field(default_factory=dict)
    folders: Mapping[str, Path] = field(default_factory=dict)
    files: Mapping[str, Path] = field(default_factory=dict)
    runs: Mapping[str, Path] = field(default_factory=dict)
    root: Path | None = None

    @classmethod
    def of_images(cls, images: Iterable[UploadedImage], **others: Any) -> LocalNames:
        """Those of images that were sent from files."""
        known = {(each.set, each.name): each.source for each in images if each.source is not None}
        return cls(images=known, **others)

    def of(self, content: Any, folder: Path) -> Any:
        """The same content, with every text that names such a file naming it from `folder`, or the root."""
        return self._of(content, folder, _DEEPEST)

    def _of(self, content: Any, folder: Path, depth: int) -> Any:
        if isinstance(content, str):
            return self._name(content, folder)
        # No record is as deep; what a hostile one holds there is nobody's file.
        if depth == 0:
            return content
        if isinstance(content, list):
            return [self._of(each, folder, depth - 1) for each in content]
        if isinstance(content, dict):
            return {key: self._of(each, folder, depth - 1) for key, each in content.items()}
        return content

    def rewrite(self, source: Path, target: Path, folder: Path) -> None:
        """Write what `source` has, JSON or JSON Lines, to `target`, named from `folder`.

        Raises ServiceError where it is none, OSError.
        """
        if target.suffix == ".json":
            content = self.of(_loads(source.read_bytes(), source.name), folder)
            if target.name == "run.json" and self.root is not None and isinstance(content, dict):
                content = {**content, "root": str(self.root.absolute())} if "root" in content else content
            write_atomically(target, [dump_json(content, indent=True)])
            return
        with source.open("rb") as lines:
            write_atomically(target, (self._line(line, source.name, folder) for line in lines))

    def _line(self, line: bytes, name: str, folder: Path) -> bytes:
        if not line.strip() or not any(mark in line for mark in _MARKS):
            return line
        return dump_json(self.of(_loads(line, name), folder)) + b"\n"

    def _name(self, text: str, folder: Path) -> str:
        if len(text) > _LONGEST or "_" not in text:
            return text
        if (found := _IN_SET.search(text)) is not None:
            set_id, name = found.groups()
            if name is None:
                place = self.folders.get(set_id)
                return text if place is None else str(place.absolute())
            image = self.images.get((set_id, name))
            return text if image is None else _from(self.root or folder, image)
        if (found := _FILE.search(text)) is not None and found[1] in self.files:
            return _from(folder, self.files[found[1]])
        if (found := _OF_JOB.search(text)) is not None and found[1] in self.runs:
            return os.path.normpath(self.runs[found[1]] / (found[2] or ""))
        return text


def _from(folder: Path, file: Path) -> str:
    return display_path(Path(os.path.relpath(os.path.abspath(file), os.path.abspath(folder))))  # noqa: PTH100


def _loads(data: bytes, name: str) -> Any:
    try:
        return load_json(data)
    except orjson.JSONDecodeError as error:
        raise ServiceError(
            f"{name} of the job is not valid JSON: {error}", remedy="Is the job still running?"
        ) from None
