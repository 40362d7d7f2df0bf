"""What is odd about a set as a whole: one letter is right too often, or a picture is asked about twice.

All of it are warnings: a set may be so on purpose, and whoever publishes it should know.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from uncanny.errors import Problem
from uncanny.eval.mcq.data.items import ARTIFACT_SPLITS, OPTIONS, Item, Question
from uncanny.eval.metrics.intervals import ALPHA
from uncanny.wording import shown

_LETTERED: Final[tuple[Question, ...]] = ("q2", "q3", "q4")
# Of fewer images one letter for all may well be chance.
_FEWEST_ALIKE: Final = 4
# Pictures are compared as so many pixels a side, and are nearly the same where they differ by so little of
# 255: copies at half the size and JPEG quality 50 by 0.8, other pictures by 25 (the bundled scenes).
_SIDE, _NEAR = 16, 2.0

Found = tuple[Problem, Item | None]


def check_letters(items: Sequence[Item]) -> Iterator[Problem]:
    """Whether a model that always gives one letter would do well on images with an artifact.

    Each letter's count has an exact binomial test against one in four, corrected for four letters and three
    questions.
    """
    by_counts: dict[tuple[int, ...], list[Question]] = {}
    for question in _LETTERED:
        right = Counter(item.right(question) for item in items if item.split in ARTIFACT_SPLITS)
        by_counts.setdefault(tuple(right[letter] for letter in OPTIONS), []).append(question)
    for counts, questions in by_counts.items():
        if (message := _skewed(counts)) is not None:
            yield Problem(None, "answer", f"{', '.join(questions).upper()}: {message}", "warning")


def _skewed(counts: tuple[int, ...]) -> str | None:
    from scipy.stats import binomtest  # type: ignore[import-untyped]  # slow to import

    total, most = sum(counts), max(counts)
    letter = OPTIONS[counts.index(most)]
    if total < _FEWEST_ALIKE:
        return None
    if most == total:
        return (
            f"the right letter is {letter} on all {total:,} images with an artifact, so a model that always "
            f"says {letter} gets them right; mix the options"
        )
    tests = len(OPTIONS) * len(_LETTERED)
    p = min(1.0, tests * min(binomtest(count, total, 1 / len(OPTIONS)).pvalue for count in counts))
    if p >= ALPHA:
        return None
    each = ", ".join(f"{name} {count:,}" for name, count in zip(OPTIONS, counts, strict=True))
    return (
        f"the right letters are far from even on {total:,} images with an artifact ({each}; p = {p:.1g}), so "
        f"a model that prefers {letter} does well; mix the options"
    )


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """What is kept of an item's picture to find it again: the file's SHA-256, and a tiny copy."""

    sha256: str
    tiny: NDArray[np.int16]


def tiny_copy(image: Image.Image) -> NDArray[np.int16]:
    """A picture as 16 × 16 colors, for `Picture`."""
    return np.asarray(image.convert("RGB").resize((_SIDE, _SIDE), Image.Resampling.BOX), dtype=np.int16)


def check_pictures(pictures: Sequence[tuple[Item, Picture]]) -> Iterator[Found]:
    """Pictures that several items ask about, or nearly the same ones, each with an item that had it before.

    The two of a pair may look alike. The generated image before several edits may be there once for each, and
    so may edits of one such image.
    """
    by_file: defaultdict[str, list[Item]] = defaultdict(list)
    for item, picture in pictures:
        by_file[picture.sha256].append(item)
    for items in by_file.values():
        yield from _same_file(items)
    yield from _near(pictures)


def _same_file(items: Sequence[Item]) -> Iterator[Found]:
    for place, item in enumerate(items):
        before = items[:place]
        artifact = item.split in ARTIFACT_SPLITS
        other = next((each for each in before if (each.split in ARTIFACT_SPLITS) != artifact), None)
        if other is not None:
            message = (
                f"the same picture as item {shown(other.id)}, which is {other.split}: it cannot both show an "
                f"artifact and none"
            )
            yield Problem(item.id, "image", message, "warning"), item
        elif before and not _before_edits(item, before[0]):
            message = f"the same picture as item {shown(before[0].id)}; intervals take items as independent"
            yield Problem(item.id, "image", message, "warning"), item


def _before_edits(first: Item, second: Item) -> bool:
    return first.split == second.split == "ref_pg"


def _near(pictures: Sequence[tuple[Item, Picture]]) -> Iterator[Found]:
    if not pictures:
        return
    origins = {item.pair_id: picture.sha256 for item, picture in pictures if item.split == "ref_pg"}
    tiny = np.stack([picture.tiny.reshape(-1) for _, picture in pictures])
    # What differs little differs little on average, too: only neighbors by brightness are compared.
    means = tiny.mean(axis=1)
    order = np.argsort(means, kind="stable")
    first_alike: dict[int, int] = {}
    for rank, index in enumerate(order):
        last = int(np.searchsorted(means[order], means[index] + _NEAR, side="right"))
        others = order[rank + 1 : last]
        near = others[np.abs(tiny[others] - tiny[index]).mean(axis=1) <= _NEAR]
        for other in near.tolist():
            early, late = sorted((int(index), other))
            if not _may_be_alike(pictures[early], pictures[late], origins):
                first_alike[late] = min(early, first_alike.get(late, early))
    for late, early in sorted(first_alike.items()):
        item, before = pictures[late][0], pictures[early][0]
        message = (
            f"nearly the same picture as item {shown(before.id)}; give both one pair_id if they belong "
            "together, or leave one out"
        )
        yield Problem(item.id, "image", message, "warning"), item


def _may_be_alike(
    first: tuple[Item, Picture], second: tuple[Item, Picture], origins: dict[str | None, str]
) -> bool:
    """Whether two pictures are one pair, one file, which is said apart, or edits of one image."""
    (one, picture), (two, other) = first, second
    if picture.sha256 == other.sha256 or (one.pair_id is not None and one.pair_id == two.pair_id):
        return True
    shared = {origins.get(each.pair_id) for each in (one, two)}
    return len(shared) == 1 and None not in shared
