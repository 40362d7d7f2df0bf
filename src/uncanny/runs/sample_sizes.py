"""How large the images of a run are, by the headers of some of them."""

from __future__ import annotations

from collections.abc import Sequence

from uncanny.images import stored_size
from uncanny.runs.inputs import ImageFile

MOST_OPENED = 200


def sample_sizes(files: Sequence[ImageFile]) -> tuple[list[tuple[int, int]], int]:
    """Sizes by the headers of evenly spread files, and how many of all do not open, by that sample."""
    step = max(1, len(files) // MOST_OPENED)
    sample = files[::step]
    sizes: list[tuple[int, int]] = []
    for file in sample:
        size = stored_size(file.path)
        if size is not None:
            sizes.append(size)
    unreadable = round((len(sample) - len(sizes)) * len(files) / len(sample)) if sample else 0
    return sizes, unreadable


def mean_size(sizes: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Width and height in pixels; 1024 each where nothing is known."""
    if not sizes:
        return 1024, 1024
    return sum(w for w, _ in sizes) // len(sizes), sum(h for _, h in sizes) // len(sizes)
