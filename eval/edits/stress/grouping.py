"""Edits put into groups: bins of their size, levels of what made them, phrases of what became what.

Source: Semi-Truths, appendix C.2 (bins) and section 4 (directional edits).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from uncanny.errors import UsageError
from uncanny.eval.edits.columns import SCENE
from uncanny.eval.edits.parameters import StressParameters
from uncanny.eval.edits.stress.data import GENERATED, LEVELS, METRICS, Edits
from uncanny.eval.edits.stress.factors import FactorKind
from uncanny.eval.metrics.edits import BINS, Cutoffs, deviation_cutoffs, percentile_cutoffs
from uncanny.eval.metrics.intervals import Bools, Floats
from uncanny.wording import option

# Of a column of numbers that is named: more different values than this are bins, fewer are levels.
MOST_NUMBER_LEVELS: Final = 10


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """Which group each row of the metadata is in: a place in `names`, −1 where nobody says.

    Of phrases, −2 is one that too few edits share.
    """

    name: str
    kind: FactorKind
    names: tuple[str, ...]
    codes: NDArray[np.int64]
    cutoffs: Cutoffs | None = None


def groupings(edits: Edits, parameters: StressParameters) -> list[Grouping]:
    """The groupings there is anything of. Raises UsageError for a named column that no table has."""
    by, cutoffs, least = parameters.by, parameters.cutoffs, parameters.least_edits
    generated = edits.truth[: edits.n_rows] == GENERATED
    # As where edits are measured: one that came out all black is typical of nothing.
    typical = generated & np.array([cell is not True for cell in edits.column("all_black")], dtype=np.bool_)
    groupings = []
    missing = [name for name in (*by, *cutoffs) if name not in edits.columns]
    if missing:
        known = sorted(name for name in edits.columns if name != "id")
        raise UsageError(
            f"{' and '.join(edits.places)}: no column {missing[0]!r}",
            remedy=f"The columns are {', '.join(known)}.",
        )
    for name in dict.fromkeys((*METRICS, *SCENE, *LEVELS, *by, *cutoffs)):
        if all(cell is None for cell in edits.column(name)):
            continue
        values = None if name in LEVELS else edits.numbers(name)
        if name in cutoffs and values is None:
            raise UsageError(f"{option('cutoffs')}: {name} is not a column of numbers")
        measured = [] if values is None else values[typical & ~np.isnan(values)].tolist()
        numeric = name in METRICS + SCENE or name in cutoffs
        if values is not None and (numeric or len(set(measured)) > MOST_NUMBER_LEVELS):
            groupings.append(_binned(name, values, measured, cutoffs.get(name)))
        else:
            groupings.append(_levels(name, edits.column(name), "levels"))
    phrases = _phrases(edits)
    common = {each for each, n in Counter(_among(phrases, generated)).items() if each and n >= least}
    if any(phrases):
        grouping = _levels("directional", [each if each in common else None for each in phrases], "phrases")
        rare = np.array([each is not None and each not in common for each in phrases], dtype=np.bool_)
        grouping.codes[rare] = -2
        groupings.append(grouping)
    return groupings


def _among(cells: Sequence[str | None], which: Bools) -> list[str | None]:
    return [cell for cell, kept in zip(cells, which.tolist(), strict=True) if kept]


def _binned(
    name: str, values: Floats, measured: Sequence[float], ends: tuple[float, float] | None
) -> Grouping:
    """Small, medium and large by the cut-offs, which are in the medium bin themselves."""
    if ends is not None:
        cutoffs: Cutoffs | None = Cutoffs(float(ends[0]), float(ends[1]))
    else:
        cutoffs = deviation_cutoffs(measured) if name in SCENE else percentile_cutoffs(measured)
    codes = np.full(len(values), -1, dtype=np.int64)
    if cutoffs is not None:
        known = ~np.isnan(values)
        codes[known] = 1 + (values[known] > cutoffs.high) - (values[known] < cutoffs.low).astype(np.int64)
    return Grouping(name, "bins", BINS, codes, cutoffs)


def _levels(name: str, cells: Sequence[Any], kind: FactorKind) -> Grouping:
    texts = [None if cell is None else cell if isinstance(cell, str) else str(cell) for cell in cells]
    names = tuple(sorted({text for text in texts if text is not None}))
    places: dict[str | None, int] = {each: place for place, each in enumerate(names)}
    places[None] = -1
    codes = np.fromiter((places[text] for text in texts), dtype=np.int64, count=len(texts))
    return Grouping(name, kind, names, codes)


def _phrases(edits: Edits) -> list[str | None]:
    """`original → edited`, of labels where a row has two that differ, else of captions; in small letters."""
    phrases: list[str | None] = []
    made: dict[tuple[str, str], str] = {}
    columns = (edits.column(name) for name in ("label", "edited_label", "caption", "edited_caption"))
    for label, edited_label, caption, edited_caption in zip(*columns, strict=True):
        pair = (label, edited_label)
        if not (label and edited_label) or (label == edited_label and caption and edited_caption):
            pair = (caption, edited_caption)
        if not (pair[0] and pair[1]):
            phrases.append(None)
            continue
        if pair not in made:
            before, after = (" ".join(text.casefold().split()) for text in pair)
            made[pair] = f"{before} → {after}"
        phrases.append(made[pair])
    return phrases
