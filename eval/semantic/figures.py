"""From per-image columns to means with intervals, and to the differences between prediction files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, tee

import numpy as np

from uncanny.eval.metrics.detection import conditioned, counted, recognised
from uncanny.eval.metrics.means import Bools, Mean, mean_intervals
from uncanny.eval.metrics.semap import PROTOCOLS, VIEWS, ProtocolName, View
from uncanny.eval.semantic.result import Difference, Figure, ImageColumns

Key = tuple[ProtocolName, str, View]


def means(columns: ImageColumns, *, detection: bool) -> dict[Key, Mean]:
    """Every mean of a prediction file by protocol, metric and view; `detection` adds cSemAP and cSemF1."""
    found: dict[Key, Mean] = {}
    for protocol in PROTOCOLS:
        scored = columns.scored[protocol]
        in_detection = scored & counted(columns.true_source, protocol)
        for metric, values in (("semap", columns.semap), ("semf1", columns.semf1)):
            for view in VIEWS:
                column = values[protocol][view]
                found[protocol, metric, view] = Mean(column, scored)
                if detection:
                    gated = conditioned(column, columns.true_source, columns.predicted_source)
                    found[protocol, f"c{metric}", view] = Mean(gated, in_detection)
    return found


def accuracy_mean(columns: ImageColumns) -> Mean:
    """Over the images that were judged and whose true source is known."""
    right = recognised(columns.true_source, columns.predicted_source)
    return Mean(right.astype(np.float64), answered(columns))


def answered(columns: ImageColumns) -> Bools:
    """The images that accuracy is a mean over."""
    rows: Bools = columns.judged & (columns.true_source != "")
    return rows


def figures(found: Sequence[Mean], *, resamples: int, seed: int) -> list[Figure]:
    """The means as figures, in their order."""
    ends = mean_intervals(found, resamples=resamples, seed=seed)
    return [Figure(mean.value, interval) for mean, interval in zip(found, ends, strict=True)]


def differences(
    models: Mapping[str, Mapping[Key, Mean]], *, resamples: int, seed: int
) -> Iterator[Difference]:
    """Every two files, every figure that both have, over the images that count for both; paired bootstrap."""
    ours, for_ends = tee(_pairs(models))
    ends = mean_intervals((mean for _, _, _, mean in for_ends), resamples=resamples, seed=seed)
    for (first, second, (protocol, metric, view), mean), interval in zip(ours, ends, strict=True):
        images = int(mean.counted.sum())
        yield Difference(first, second, protocol, metric, view, images, Figure(mean.value, interval))


def _pairs(models: Mapping[str, Mapping[Key, Mean]]) -> Iterable[tuple[str, str, Key, Mean]]:
    for first, second in combinations(models, 2):
        for key, one in models[first].items():
            if key in models[second]:
                other = models[second][key]
                yield first, second, key, Mean(one.values - other.values, one.counted & other.counted)
