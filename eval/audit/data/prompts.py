"""What generators make of the same prompt, side by side: the prompts where they differ most.

Images share a prompt by what the audit pairs them by, else by their file name, which then is a guess that
the page tells. Which prompts are kept is found from the few numbers an image that aggregates hold; only the
records of these are read again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uncanny.errors import UsageError
from uncanny.eval.audit.data.aggregate import AuditedImage
from uncanny.eval.audit.data.load import Generator

# So many prompts, and so many images of all of them.
MOST_ROWS, LEAST_ROWS, MOST_IMAGES = 20, 3, 120


@dataclass(frozen=True, slots=True)
class PromptRow:
    """A prompt: by generator its image, of several the one with the highest `u`.

    `spread` is the highest less the lowest `u` among the generators, in anomalies that are wholly unreal.
    """

    prompt: str
    spread: float
    images: Mapping[str, AuditedImage]


@dataclass(frozen=True, slots=True)
class PromptRows:
    """`rows` with the widest spread first, of `shared` prompts that at least two generators have.

    `differing` of these have any spread. `by` is what they are matched by.
    """

    rows: tuple[PromptRow, ...]
    shared: int
    differing: int
    by: str


def prompt_rows(generators: Sequence[Generator]) -> PromptRows | None:
    """The rows; None where no two generators share a prompt, or records cannot be read a second time."""
    with_images = [generator for generator in generators if generator.aggregate.images]
    if len(with_images) < 2:
        return None
    table = _worst_of_each(with_images)
    starts = np.flatnonzero(np.r_[True, table["key"][1:] != table["key"][:-1]])
    generators_of = np.diff(np.r_[starts, len(table)])
    spread = np.maximum.reduceat(table["u"], starts) - np.minimum.reduceat(table["u"], starts)
    first = np.minimum.reduceat(table["image"], starts)
    several = generators_of > 1
    if not several.any():
        return None
    differing = np.flatnonzero(several & (spread > 1e-9))
    most = max(LEAST_ROWS, min(MOST_ROWS, MOST_IMAGES // len(with_images)))
    # Of equal spreads those first that come first in the records.
    chosen = differing[np.lexsort((first[differing], -spread[differing]))][:most]
    parts = [table[starts[each] : starts[each] + generators_of[each]] for each in chosen]
    try:
        rows = _read(with_images, parts, spread[chosen].tolist())
    except UsageError:
        return None
    return PromptRows(rows, int(several.sum()), len(differing), with_images[0].aggregate.pairing.rows_by)


def _worst_of_each(generators: Sequence[Generator]) -> NDArray[np.void]:
    """A line a prompt and generator, by prompt and then generator: its image with the highest u."""
    parts = []
    for number, generator in enumerate(generators):
        aggregate = generator.aggregate
        part = np.empty(aggregate.images, [("key", "i8"), ("generator", "i4"), ("u", "f8"), ("image", "i8")])
        part["key"], part["generator"] = aggregate.row_keys, number
        part["u"] = np.asarray(aggregate.counts) - np.asarray(aggregate.severity_sums) / 100
        part["image"] = np.arange(aggregate.images)
        parts.append(part)
    table = np.concatenate(parts)
    table = table[np.lexsort((table["image"], -table["u"], table["generator"], table["key"]))]
    same = (table["key"][1:] == table["key"][:-1]) & (table["generator"][1:] == table["generator"][:-1])
    return table[np.r_[True, ~same]]


def _read(
    generators: Sequence[Generator], parts: Sequence[NDArray[np.void]], spreads: Sequence[float]
) -> tuple[PromptRow, ...]:
    images: list[dict[str, AuditedImage]] = [{} for _ in parts]
    prompts: list[str | None] = [None] * len(parts)
    for number, generator in enumerate(generators):
        own = {
            row: int(line["image"])
            for row, part in enumerate(parts)
            for line in part[part["generator"] == number]
        }
        records = generator.records(own.values())
        for row, image in own.items():
            if (record := records.get(image)) is not None:
                images[row][generator.name] = generator.aggregate.image(record)
                prompts[row] = generator.aggregate.pairing.row_of(record)
    return tuple(
        PromptRow(prompt, spread, by_generator)
        for prompt, spread, by_generator in zip(prompts, spreads, images, strict=True)
        if prompt is not None and len(by_generator) > 1
    )
