"""Several models on the same items: the oracle over all of them and the exact McNemar test of each two."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from uncanny.eval.mcq.items import QUESTIONS
from uncanny.eval.mcq.result import McNemar, Share
from uncanny.eval.mcq.sheet import Sheet
from uncanny.eval.metrics.mcnemar import mcnemar_exact
from uncanny.eval.metrics.mcq import ARTIFACT, ratio, within
from uncanny.eval.metrics.shares import share_intervals


def oracle(sheets: Sequence[Sheet], *, resamples: int, seed: int) -> Share | None:
    """Share of artifact images that at least one model gets all four right (appendix F.1).

    Over the images that every model answers in full. None for fewer than two models.
    """
    if len(sheets) < 2:
        return None
    full = np.logical_and.reduce([sheet.answered.all(axis=1) for sheet in sheets])
    full &= within(sheets[0].key.split, *ARTIFACT)
    solved = np.logical_or.reduce([sheet.right.all(axis=1) for sheet in sheets])
    found = ratio(full & solved, full)
    interval = share_intervals([found], resamples=resamples, seed=seed)[0]
    return Share(found.value, int((full & solved).sum()), int(full.sum()), interval)


def mcnemar(sheets: Sequence[Sheet]) -> tuple[McNemar, ...]:
    """Every two models, for each question and for all four, on the items both answer.

    The p-values are not corrected for the number of tests.
    """
    if len(sheets) < 2:
        return ()
    pairs = list(combinations(range(len(sheets)), 2))
    first, second = np.array(pairs).T
    found: list[McNemar] = []
    for question in (*QUESTIONS, "all_q1_4"):
        columns = slice(None) if question == "all_q1_4" else [QUESTIONS.index(question)]
        right = np.array([sheet.right[:, columns].all(axis=1) for sheet in sheets], dtype=np.float64)
        answered = np.array([sheet.answered[:, columns].all(axis=1) for sheet in sheets], dtype=np.float64)
        common = (answered @ answered.T)[first, second].astype(int)
        # Entry (i, j): items that i gets right and j answers, but wrongly.
        only = right @ (answered * (1 - right)).T
        first_only, second_only = only[first, second].astype(int), only[second, first].astype(int)
        p_values = mcnemar_exact(first_only, second_only)
        found += [
            McNemar(
                sheets[i].model,
                sheets[j].model,
                question,
                int(common[at]),
                int(first_only[at]),
                int(second_only[at]),
                float(p_values[at]) if common[at] else None,
            )
            for at, (i, j) in enumerate(pairs)
        ]
    return tuple(found)
