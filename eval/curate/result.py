"""What the results of `uncanny.curate` have in common: a record each, as rows and as a file."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from uncanny.errors import UsageError
from uncanny.eval.common.tables.table import RowsResult
from uncanny.files import dump_json
from uncanny.parameters import path_of
from uncanny.records.jsonl import write_named
from uncanny.wording import display_path

SUFFIX = ".jsonl"


class CuratedResult(RowsResult):
    """Records in an order of their own; `write` puts them into a file."""

    __slots__ = ()

    @abstractmethod
    def records(self, folder: Path | None = None) -> Sequence[Mapping[str, Any]]:
        """The records; paths start from `folder`, and are absolute without one."""

    def rows(self) -> Iterator[Mapping[str, object]]:
        return iter(self.records())

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write a record a line to a `.jsonl` file and return its path; it appears whole or not at all.

        Raises UsageError for another suffix, OSError where it cannot be written.
        """
        target = path_of("path", path)
        check_suffix(target)
        write_named(target, (dump_json(record) + b"\n" for record in self.records(target.parent)))
        return target


def check_suffix(path: Path) -> None:
    """Raises UsageError for a file that is not JSON Lines."""
    if path.suffix.lower() != SUFFIX:
        raise UsageError(f"{path} must end in {SUFFIX}")


def named_from(path: Path, folder: Path | None) -> str:
    """A file as a record in `folder` says it; absolute without a folder."""
    place = os.path.abspath(path)  # noqa: PTH100  links stay links
    return display_path(Path(place if folder is None else os.path.relpath(place, folder)))
