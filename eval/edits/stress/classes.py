"""Precision, recall and F1 of a detector by class, with intervals over images or groups of them.

Source: Semi-Truths, section 4 and appendix F, without intervals there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from uncanny.eval.common.estimates import Estimate, Share, share_of
from uncanny.eval.edits.stress.data import GENERATED, REAL, UNCLEAR
from uncanny.eval.edits.stress.data import SOURCES as TRUTHS
from uncanny.eval.edits.stress.result import ClassScore
from uncanny.eval.metrics.detection import SOURCES, Accuracy, Judged
from uncanny.eval.metrics.intervals import (
    Bools,
    Codes,
    Floats,
    percentile_intervals,
    resampled_sums,
    sums_by_group,
    units,
)

CODES: Final[Mapping[int, Judged]] = {GENERATED: "generated", REAL: "real", UNCLEAR: "unparseable"}


def class_scores(
    accuracy: Accuracy,
    truth: NDArray[np.int64],
    verdicts: NDArray[np.int64],
    groups: Codes | None,
    resamples: int,
    seed: int,
) -> dict[str, ClassScore]:
    """By class, and as `all` the mean of both; None where a class has none.

    `truth` and `verdicts` are codes, an entry an image, and `groups` the images that belong together.
    """

    def share(hits: Bools, of: Bools) -> Share:
        return share_of(hits[of], None if groups is None else groups[of])

    drawn = _drawn(accuracy, truth, verdicts, groups, resamples, seed)
    scores: dict[str, ClassScore] = {}
    for source in SOURCES:
        code = TRUTHS[source]
        true, judged, right = truth == code, verdicts == code, truth == verdicts
        # F1 of a class without images has no value, whatever is taken for it.
        f1 = Estimate(accuracy.f1(source), drawn.get((source, "f1"))) if true.any() else Estimate(None)
        scores[source] = ClassScore(int(true.sum()), share(right, judged), share(right, true), f1)

    def mean(name: str) -> Estimate:
        values = [getattr(accuracy, name)(source) for source in SOURCES]
        if None in values:
            return Estimate(None)
        return Estimate(sum(values) / len(values), drawn.get(("all", name)))

    scores["all"] = ClassScore(accuracy.images, mean("precision"), mean("recall"), mean("f1"))
    return scores


def _drawn(
    accuracy: Accuracy,
    truth: NDArray[np.int64],
    verdicts: NDArray[np.int64],
    groups: Codes | None,
    resamples: int,
    seed: int,
) -> dict[tuple[str, str], tuple[float, float] | None]:
    """Percentile intervals by a bootstrap over images, which are as many kinds as the table has cells.

    Images that come in groups are drawn by the group.
    """
    images = accuracy.images
    if not images or not resamples:
        return {}
    cells = [(true, judged) for true in SOURCES for judged in CODES.values()]
    rng = np.random.default_rng(seed)
    if groups is None:
        chances = np.array([accuracy.counts[cell] for cell in cells]) / images
        counts = rng.multinomial(images, chances, size=resamples).astype(np.float64)
    else:
        in_cell = ((truth == TRUTHS[true]) & (verdicts == code) for true in SOURCES for code in CODES)
        table = np.stack([sums_by_group(each, groups) for each in in_cell], axis=1)
        counts = resampled_sums(table[table.any(axis=1)], rng, resamples=resamples)
    column = {cell: counts[:, place] for place, cell in enumerate(cells)}
    values: dict[tuple[str, str], Floats] = {}
    # How many images, or groups of them, each is of.
    sizes: dict[tuple[str, str], int] = {}
    with np.errstate(invalid="ignore", divide="ignore"):
        for source in SOURCES:
            hits = column[source, source]
            true = sum(column[source, judged] for judged in CODES.values())
            judged = sum(column[each, source] for each in SOURCES)
            values[source, "precision"], values[source, "recall"] = hits / judged, hits / true
            values[source, "f1"] = 2 * hits / (true + judged)
            is_true, is_judged = truth == TRUTHS[source], verdicts == TRUTHS[source]
            sizes[source, "precision"] = units(is_judged, groups)
            sizes[source, "recall"] = units(is_true, groups)
            sizes[source, "f1"] = units(is_true | is_judged, groups)
        for name in ("precision", "recall", "f1"):
            values["all", name] = (values["generated", name] + values["real", name]) / 2
            # The rarer class says how much is known of both.
            sizes["all", name] = min(sizes[source, name] for source in SOURCES)
    ends = percentile_intervals(
        np.stack(list(values.values()), axis=1), images=[sizes[place] for place in values]
    )
    return dict(zip(values, ends, strict=True))
