"""Two sets of predictions on the same images: whose verdicts are right, and whose regions fit better.

Not from the paper. Verdicts are compared by McNemar's exact test, as everywhere. Regions are compared in the
figures of all artifacts together, over the images that were measured in both: the difference has a percentile
interval of a paired bootstrap over images, and a t test in units of its bootstrap standard error
(`intervals.resampled_t_test`), corrected by Holm for all pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Final

import numpy as np

from uncanny.eval.artifacts.parameters import RegionSettings
from uncanny.eval.artifacts.score.figures import AGNOSTIC, GroupOf, codes_of, sources
from uncanny.eval.artifacts.score.result import REGION_FIGURES, RegionDifference, RegionFigure
from uncanny.eval.artifacts.score.tally import COUNTS, PIXELS, REGIONS, Tally
from uncanny.eval.common.estimates import Estimate
from uncanny.eval.metrics.association import holm
from uncanny.eval.metrics.intervals import (
    Floats,
    percentile_intervals,
    resampled_sums,
    resampled_t_test,
    sums_by_group,
)
from uncanny.eval.metrics.paired import ImageClass, PairedTest, paired_tests_by_class
from uncanny.eval.metrics.regions import agreement, overlap

_FIGURES: Final[Mapping[RegionFigure, Callable[[Floats], Floats]]] = {
    "pixel_f1": lambda sums: overlap(*sums[:, PIXELS].T).f1,
    "pixel_iou": lambda sums: overlap(*sums[:, PIXELS].T).iou,
    "instance_f1": lambda sums: agreement(*sums[:, REGIONS].T).f1,
}


def verdict_tests(
    tallies: Mapping[str, Tally], settings: RegionSettings, groups: GroupOf | None = None
) -> dict[ImageClass, list[PairedTest]]:
    """Each two on the images with a known source that both have a verdict on."""
    judged = [
        {
            image.image: (true == "generated", true == said)
            for (image, _), true, said in zip(tally.rows, *sources(tally, settings), strict=True)
            if true and said
        }
        for tally in tallies.values()
    ]
    generated = {image: is_generated for own in judged for image, (is_generated, _) in own.items()}
    answered = np.array([[image in own for image in generated] for own in judged], dtype=np.bool_)
    right = np.array([[own.get(image, (False, False))[1] for image in generated] for own in judged])
    shape = (len(tallies), len(generated))
    return paired_tests_by_class(
        list(tallies),
        right.astype(np.bool_).reshape(shape),
        answered.reshape(shape),
        np.array(list(generated.values()), dtype=np.bool_),
        codes_of(generated, groups),
    )


def region_differences(
    tallies: Mapping[str, Tally], settings: RegionSettings, groups: GroupOf | None = None
) -> tuple[RegionDifference, ...]:
    """Each two, the first minus the second, on the images whose regions were measured in both."""
    compared = [
        each
        for first, second in combinations(tallies, 2)
        for each in _of_pair(first, second, tallies, settings, groups)
    ]
    adjusted: dict[int, float | None] = {}
    for figure in REGION_FIGURES:
        places = [place for place, each in enumerate(compared) if each.figure == figure]
        adjusted |= zip(places, holm([compared[place].p_value for place in places]), strict=True)
    return tuple(replace(each, adjusted_p=adjusted[place]) for place, each in enumerate(compared))


def _of_pair(
    first: str,
    second: str,
    tallies: Mapping[str, Tally],
    settings: RegionSettings,
    groups: GroupOf | None,
) -> list[RegionDifference]:
    rows = [_measured(tallies[name]) for name in (first, second)]
    shared = [image for image in rows[0] if image in rows[1]]
    sides = [np.array([own[image] for image in shared], dtype=np.float64).reshape(-1, COUNTS) for own in rows]
    # Images without a region in any set say nothing.
    table = np.concatenate(sides, axis=1)
    images = int(table.any(axis=1).sum())
    codes = codes_of(shared, groups)
    together = table if codes is None else sums_by_group(table, codes)
    drawn = None
    if settings.resamples and len(together) > 1:
        drawn = resampled_sums(together, np.random.default_rng(settings.seed), resamples=settings.resamples)
    units = int(together.any(axis=1).sum())
    return [
        _difference(first, second, name, figure, (images, units), table.sum(axis=0)[None], drawn)
        for name, figure in _FIGURES.items()
    ]


def _measured(tally: Tally) -> dict[str, Floats]:
    """By image the counts of all artifacts together, where they were measured."""
    return {
        image.image: tally.counts[row, AGNOSTIC]
        for row, (image, _) in enumerate(tally.rows)
        if tally.measured[row, AGNOSTIC]
    }


def _difference(
    first: str,
    second: str,
    name: RegionFigure,
    figure: Callable[[Floats], Floats],
    sizes: tuple[int, int],
    sums: Floats,
    drawn: Floats | None,
) -> RegionDifference:
    """`sizes` count images, and what was resampled: these, or groups of them."""
    images, units = sizes

    def gap(sums: Floats) -> Floats:
        ours, theirs = np.split(sums, 2, axis=1)
        apart: Floats = figure(ours) - figure(theirs)
        return apart

    value = float(gap(sums)[0])
    if np.isnan(value):
        return RegionDifference(first, second, name, images, Estimate(None), None)
    if drawn is None:
        return RegionDifference(first, second, name, images, Estimate(value), None)
    apart = gap(drawn)
    (interval,) = percentile_intervals(apart[:, None])
    p_value = resampled_t_test(value, apart, units)
    return RegionDifference(first, second, name, images, Estimate(value, interval), p_value)
