"""Held-out images: that none of them is trained on, and which of them a model is measured on."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from uncanny.errors import UsageError
from uncanny.eval.common.groups import ORIGINAL_COLUMNS, PAIR_COLUMNS, cell_of, group_of
from uncanny.files.digests import file_digest
from uncanny.wording import counted, option

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Traces:
    """What an image is known again by: its file, and what it shares with others, such as `pair=7`."""

    file: Path
    shared: frozenset[str] = frozenset()


def traces_of(record: object, file: Path, root: Path) -> Traces:
    """Those of a record with the columns that group images, whose paths start in `root`."""
    shared = {f"original={file.resolve()}"}  # as others may name it
    for column in PAIR_COLUMNS:
        if (value := cell_of(record, column)) is not None:
            shared.add(f"{column}={value}")
    for column in ORIGINAL_COLUMNS:
        if (value := cell_of(record, column)) is None:
            continue
        files = [each for each in (file.parent / value, root / value) if each.is_file()]
        shared.add(f"original={files[0].resolve() if files else group_of(record, column)}")
    return Traces(file, frozenset(shared))


def check_apart(train: Iterable[Traces], held_out: Iterable[Traces]) -> None:
    """Raises UsageError where a held-out image is trained on, or belongs together with one that is.

    Images are the same by the bytes of their files: a copy in another format is not noticed. Files that are
    missing are the same as none.
    """
    trained, measured = list(train), list(held_out)
    # Only files of one size can be the same.
    sizes = {_size(each.file) for each in trained} & {_size(each.file) for each in measured} - {None}
    digests = {file_digest(each.file) for each in trained if _size(each.file) in sizes}
    shared = {each for one in trained for each in one.shared}
    both = [
        each.file
        for each in measured
        if each.shared & shared or (_size(each.file) in sizes and file_digest(each.file) in digests)
    ]
    if both:
        verb = "is" if len(both) == 1 else "are"
        raise UsageError(
            f"{counted(len(both), 'held-out image')} {verb} trained on, or belong together with images that "
            f"are, such as {both[0]}",
            remedy=f"Take them out of the training data, or out of {option('held_out')}.",
        )


def _size(file: Path) -> int | None:
    try:
        return file.stat().st_size
    except OSError:
        return None


def sample(items: Sequence[T], kind: Callable[[T], Hashable], most: int, seed: int) -> list[T]:
    """At most so many items in a random order, the same ones for a seed.

    Kinds take turns as long as each has some, so that as many of each are drawn where there are enough.
    """
    order = np.random.default_rng(seed).permutation(len(items))
    turns: dict[Hashable, int] = {}
    places = []
    for place in order.tolist():
        of = kind(items[place])
        turns[of] = turns.get(of, -1) + 1
        places.append((turns[of], place))
    return [items[place] for _, place in sorted(places, key=lambda each: each[0])[:most]]
