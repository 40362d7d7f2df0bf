"""chrF as the measure of similarity: character n-grams in common. Needs no weights, knows no meaning.

M. Popović, *chrF: character n-gram F-score for automatic MT evaluation*, WMT 2015, as sacrebleu computes it.
Scores are far below those of BERTScore and never compare with published ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from uncanny.errors import UsageError
from uncanny.eval.common.similarity.base import Matrix, MeasureOptions, TextPairs
from uncanny.wording import option

if TYPE_CHECKING:
    from sacrebleu.metrics.chrf import CHRF


class ChrfSimilarity:
    """Sentence-level chrF of a predicted text (hypothesis) against a true one (reference), from 0 to 1.

    sacrebleu's defaults: 6-grams, β = 2, case counts, white space does not.
    """

    compares_with_published = False

    def __init__(self) -> None:
        from sacrebleu.metrics.chrf import CHRF  # slow to import

        self._chrf: CHRF = CHRF()

    @property
    def described(self) -> dict[str, Any]:
        chrf = self._chrf
        return {
            "measure": "chrf",
            "settings": {"char_order": chrf.char_order, "word_order": chrf.word_order, "beta": chrf.beta},
            "versions": {"sacrebleu": version("sacrebleu")},
        }

    def matrices(self, texts: Iterable[TextPairs]) -> Iterator[Matrix]:
        for pairs in texts:
            cells = np.zeros((len(pairs.predicted), len(pairs.true)))
            for row, predicted in enumerate(pairs.predicted):
                for column, true in enumerate(pairs.true):
                    cells[row, column] = self._cell(predicted, true)
            yield cells

    def _cell(self, predicted: str, true: str) -> float:
        if not predicted.strip() or not true.strip():
            return 0.0
        # chrF divides by n-gram counts, so rounding may lift it a hair above 100.
        score: float = self._chrf.sentence_score(predicted, [true]).score
        return min(1.0, score / 100)


def open_measure(options: MeasureOptions) -> ChrfSimilarity:
    """Raises UsageError where a backbone, a layer or a device is asked for: chrF has none."""
    if options != MeasureOptions():
        raise UsageError(
            "chrf has no backbone, layers or device",
            remedy=f"Leave these options out, or use {option('similarity', 'bertscore')}.",
        )
    return ChrfSimilarity()
