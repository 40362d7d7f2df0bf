"""SalArt-VQA scores as ratios of sums over images (section 4.1, appendices E.3 and F).

Each share is a `Ratio` in 0–1, None where there is nothing to count out of; higher is better, but for shares
of failures.

Arrays `right` and `answered` have the shape (images, 4) for Q1–Q4; `right` implies `answered`. A question
that is not asked, or has no answer, is in neither; a share over several questions takes the images where all
of them are answered.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from uncanny.eval.metrics.intervals import Bools, Ratio, ratio

ARTIFACT = ("art_dg", "art_pg")
SPLITS = {
    "artifact": ARTIFACT,
    "art_dg": ("art_dg",),
    "art_pg": ("art_pg",),
    "ref_real": ("ref_real",),
    "ref_pg": ("ref_pg",),
}
PATTERNS = tuple(f"{code:04b}" for code in range(16))


def within(split: NDArray[np.str_], *names: str) -> Bools:
    """The images whose split is one of `names`."""
    return np.isin(split, names)


def split_ratios(split: NDArray[np.str_], right: Bools, answered: Bools) -> dict[str, dict[str, Ratio]]:
    """Shares per split and overall; `ref_pg` has no Q1, and `overall` leaves it out where Q1 counts."""
    shares = {name: _shares(within(split, *members), right, answered) for name, members in SPLITS.items()}
    nobody = np.zeros(len(split), dtype=np.bool_)
    shares["ref_pg"]["all_q1_4"] = ratio(nobody, nobody)
    with_q1 = _shares(within(split, *ARTIFACT, "ref_real"), right, answered)
    everybody = _shares(~nobody, right, answered)
    shares["overall"] = {
        "q1": with_q1["q1"],
        "all_q1_4": with_q1["all_q1_4"],
        "all_q2_4": everybody["all_q2_4"],
    }
    return shares


def _shares(rows: Bools, right: Bools, answered: Bools) -> dict[str, Ratio]:
    shares = {f"q{q + 1}": ratio(rows & right[:, q], rows & answered[:, q]) for q in range(4)}
    for name, first in (("all_q1_4", 0), ("all_q2_4", 1)):
        shares[name] = ratio(rows & right[:, first:].all(axis=1), rows & answered[:, first:].all(axis=1))
    return shares


def detection_ratios(
    positive: Bools, negative: Bools, yes: Bools, no: Bools, answered: Bools
) -> dict[str, Ratio]:
    """Q1 as a detector (appendix F.2). An answer that is neither yes nor no finds nothing and clears nothing.

    `precision` is None where nothing is called positive; `f1` is then 0, being
    2 TP / (2 TP + FP + FN), as long as there are positives.
    """
    positive, negative = positive & answered, negative & answered
    hit, alarm = positive & yes, negative & yes
    twice = 2 * hit.astype(np.int16)
    return {
        "precision": ratio(hit, hit | alarm),
        "recall": ratio(hit, positive),
        "specificity": ratio(negative & no, negative),
        "f1": ratio(twice, twice + alarm + (positive & ~yes)),
    }


def pattern_counts(rows: Bools, right: Bools, answered: Bools) -> dict[str, int]:
    """How many of `rows` show each right/wrong pattern of Q1Q2Q3Q4; images with a missing answer in none."""
    full = right[rows & answered.all(axis=1)]
    counts = np.bincount(full @ np.array([8, 4, 2, 1]), minlength=16)
    return {name: int(count) for name, count in zip(PATTERNS, counts, strict=True)}


def hierarchy_ratios(rows: Bools, right: Bools, answered: Bools) -> dict[str, Ratio]:
    """The first failure of every image, in the order of appendix F.1; the four shares add up to 1."""
    rows = rows & answered.all(axis=1)
    q1, q2, q3, q4 = right.T
    return {
        "q1_miss": ratio(rows & ~q1, rows),
        "evidence_failure": ratio(rows & q1 & ~q4, rows),
        "localization_failure": ratio(rows & q1 & q4 & ~(q2 & q3), rows),
        "full_success": ratio(rows & q1 & q4 & q2 & q3, rows),
    }


def disagreement_ratios(rows: Bools, right: Bools, answered: Bools) -> dict[str, dict[str, Ratio]]:
    """Where one question is right and another wrong on the same image (appendix F.4)."""
    shares = {}
    for name, this in (("q4_vs_q3", 3), ("q2_vs_q3", 1)):
        both = rows & answered[:, this] & answered[:, 2]
        shares[name] = {
            f"q{this + 1}_only": ratio(both & right[:, this] & ~right[:, 2], both),
            "q3_only": ratio(both & right[:, 2] & ~right[:, this], both),
        }
    return shares


def type_ratios(rows: Bools, types: NDArray[np.str_], right: Bools, answered: Bools) -> dict[str, Ratio]:
    """`all_q1_4` per artifact type, most frequent type first."""
    names, counts = np.unique(types[rows], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return {str(name): _shares(rows & (types == name), right, answered)["all_q1_4"] for name in names[order]}
