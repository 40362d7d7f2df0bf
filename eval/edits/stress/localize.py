"""How well a detector says where an edit is: IoU of masks, AUC of the pixels of heat maps.

Source: SAGI, supplementary, sections 3 and 3.1. IoU is per image and its mean over the edits with a mask; a
heat map is taken for a mask from a threshold on. The AUC needs none: the pixels of all edits are put
together, each counting the same. Deviation: the paper resizes all maps and masks for the AUC and does not say
to what; here they keep the size of the mask, so that figures are of the pixels that detector and truth are
about, unless `map_size` names a size. A map of another size than its mask is left out and said, or resized
where that is wanted: how well a scaled map fits depends on the scaling.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from uncanny.errors import UsageError
from uncanny.eval.common.estimates import Estimate
from uncanny.eval.common.pixels.crops import Size
from uncanny.eval.common.pixels.masks import read_heat_map
from uncanny.eval.edits.data import mask_sources, read_masks
from uncanny.eval.metrics.auc import COARSE, LEVELS, coarse, pixel_auc, pixel_auc_interval, pixel_counts
from uncanny.eval.metrics.intervals import Codes, Floats, Mean, group_codes, mean_intervals

_THREADS = 2
_AT_ONCE = 32
# From so much of its area on a pixel of a scaled mask is in it.
_HALF = 0.5


class Located(NamedTuple):
    """One edit: its true mask and what the detector has for it, a heat map or a mask, as their tables have
    them, with where their paths start."""

    edit: str
    truth: Any
    heat_map: str | None
    mask: Any
    truth_root: Path
    root: Path


@dataclass(frozen=True, slots=True)
class Localization:
    """Over the edits with a true mask and a map or mask of the detector.

    `iou` is the mean over `n` edits, `pooled_iou` that of all their pixels together, 0–1, higher is better.
    `pixel_auc` is over the pixels of the `n_maps` edits with a heat map; None without one. `threshold` is
    from where on a heat map is a mask. `resized` are the maps of another size than their mask. The AUC is of
    maps and masks of `map_size` × `map_size` pixels; None for their own. `left_out` says by edit why it is in
    no figure here.
    """

    n: int
    iou: Estimate
    pooled_iou: float | None
    n_maps: int
    pixel_auc: Estimate
    threshold: float
    resized: int
    map_size: int | None
    left_out: Mapping[str, str]


class Placed(NamedTuple):
    """What was measured of each edit, for figures of some of them.

    `ious` are NaN where there is none. `counts` are pixels by level, shape (maps, 2, `COARSE`), of the edits
    with a heat map, whose places are `with_map`.
    """

    ious: Floats
    counts: NDArray[np.int32]
    with_map: Codes

    def among(self, places: Codes, n: int) -> Placed:
        """The same where these edits are at `places` among `n`."""
        ious = np.full(n, np.nan)
        ious[places] = self.ious
        return Placed(ious, self.counts, places[self.with_map])

    def pixel_auc(self, edits: Codes, groups: Codes | None, *, resamples: int, seed: int) -> Estimate | None:
        """That of the pixels of some edits, by place; None where none of them has a heat map.

        Levels are those of 8 bits, so that it is exact for maps of so many.
        """
        rows = np.flatnonzero(np.isin(self.with_map, edits))
        if not len(rows):
            return None
        own = None if groups is None else group_codes(groups[self.with_map[rows]].tolist())
        counts = self.counts[rows]
        interval = pixel_auc_interval(counts, groups=own, resamples=resamples, seed=seed)
        return Estimate(pixel_auc(counts.sum(axis=0, dtype=np.int64)), interval)


class _Measured(NamedTuple):
    intersection: int
    union: int
    counts: NDArray[np.int64] | None
    resized: bool


def localize(
    edits: Sequence[Located],
    *,
    threshold: float,
    resize: bool = False,
    map_size: int | None = None,
    groups: Codes | None = None,
    resamples: int,
    seed: int,
) -> tuple[Localization | None, Placed]:
    """The figures, None where no edit has a map, and what was measured of each edit.

    Maps of another size than their mask are scaled to it with `resize`, and with a `map_size`, which is what
    all maps and masks are scaled to for the AUC: the side of a square in pixels. `groups` has an entry an
    edit: which of them belong together.
    """
    ious = np.full(len(edits), np.nan)
    located = [
        place for place, each in enumerate(edits) if each.heat_map is not None or each.mask is not None
    ]
    if not located:
        nothing = np.zeros((0, 2, COARSE), dtype=np.int32)
        return None, Placed(ious, nothing, np.zeros(0, dtype=np.int64))
    left_out: dict[str, str] = {}
    pooled = np.zeros((2, LEVELS), dtype=np.int64)
    kept: list[NDArray[np.int32]] = []
    with_map: list[int] = []
    intersections = unions = resized = 0
    with ThreadPoolExecutor(_THREADS) as pool:
        # Some at a time: a map of a megapixel is eight megabytes while it is worked on.
        for start in range(0, len(located), _AT_ONCE):
            some = located[start : start + _AT_ONCE]
            results = pool.map(lambda place: _measure(edits[place], threshold, resize, map_size), some)
            for place, result in zip(some, results, strict=True):
                if isinstance(result, str):
                    left_out[edits[place].edit] = result
                    continue
                ious[place] = result.intersection / result.union
                intersections += result.intersection
                unions += result.union
                resized += result.resized
                if result.counts is not None:
                    pooled += result.counts
                    kept.append(coarse(result.counts).astype(np.int32))
                    with_map.append(place)
    measured = ~np.isnan(ious)
    counts: NDArray[np.int32] = np.stack(kept) if kept else np.zeros((0, 2, COARSE), dtype=np.int32)
    return Localization(
        int(measured.sum()),
        mean_iou(ious, groups=groups, resamples=resamples, seed=seed),
        intersections / unions if unions else None,
        len(kept),
        Estimate(
            pixel_auc(pooled),
            pixel_auc_interval(
                counts,
                groups=None if groups is None else group_codes(groups[with_map].tolist()),
                resamples=resamples,
                seed=seed,
            ),
        ),
        threshold,
        resized,
        map_size,
        left_out,
    ), Placed(ious, counts, np.array(with_map, dtype=np.int64))


def _measure(edit: Located, threshold: float, resize: bool, map_size: int | None) -> _Measured | str:
    """What there is to count of one edit, or why there is nothing."""
    if edit.truth is None:
        return "the edit has no mask to compare with"
    try:
        truth = read_masks(mask_sources(edit.truth, edit.truth_root))
        if not truth.any():
            return "the mask of the edit is empty"
        size = (truth.shape[1], truth.shape[0])
        heat = _predicted(edit, None if resize or map_size else size)
    except UsageError as error:
        return error.message
    resized = heat.shape != truth.shape
    values = _resized(heat, size) if resized else heat
    predicted = values >= threshold
    intersection = int(np.count_nonzero(predicted & truth))
    union = int(np.count_nonzero(predicted)) + int(np.count_nonzero(truth)) - intersection
    if edit.heat_map is None:
        return _Measured(intersection, union, None, resized)
    if map_size is not None:
        square = map_size, map_size
        values, truth = _resized(heat, square), _resized(truth.astype(np.float64), square) >= _HALF
    counts = pixel_counts(values, truth)
    return _Measured(intersection, union, counts, resized)


def _predicted(edit: Located, size: Size | None) -> Floats:
    if edit.heat_map is not None:
        return read_heat_map(edit.root / edit.heat_map, size)
    return read_masks(mask_sources(edit.mask, edit.root), size).astype(np.float64)


def _resized(values: Floats, size: Size) -> Floats:
    from PIL import Image

    image = Image.fromarray(values.astype(np.float32), mode="F")
    scaled = np.asarray(image.resize(size, Image.Resampling.BILINEAR), dtype=np.float64)
    return np.clip(scaled, 0.0, 1.0)


def mean_iou(ious: Floats, *, groups: Codes | None = None, resamples: int, seed: int) -> Estimate:
    """The mean of those that are not NaN, with its interval; None of none."""
    mean = Mean(ious, ~np.isnan(ious))
    (interval,) = mean_intervals([mean], groups=groups, resamples=resamples, seed=seed, shares=True)
    return Estimate(mean.value, interval)
