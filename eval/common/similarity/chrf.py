"""chrF as the measure of similarity: character n-grams in common. Needs no weights, knows no meaning.

M. Popović, *chrF: character n-gram F-score for automatic MT evaluation*, WMT 2015, digit for digit as
sacrebleu computes it. Scores are far below those of BERTScore and never compare with published ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from uncanny.errors import UsageError
from uncanny.eval.common.parameters import MeasureParameters
from uncanny.eval.common.similarity.base import FieldPairs, Matrix, TextPairs
from uncanny.eval.common.similarity.ngrams import Ints, TextBatch

if TYPE_CHECKING:
    from sacrebleu.metrics.chrf import CHRF

Floats = NDArray[np.float64]
T = TypeVar("T")

# Characters that are counted together: what is sorted at once stays in a core's cache.
_CHARACTERS = 1 << 18


class ChrfSimilarity:
    """Sentence-level chrF of a predicted text (hypothesis) against a true one (reference), from 0 to 1.

    sacrebleu's defaults: 6-grams, β = 2, case counts, white space does not.
    """

    compares_with_published = False

    def __init__(self) -> None:
        from sacrebleu.metrics.chrf import CHRF  # slow to import

        chrf: CHRF = CHRF()
        self._orders, self._factor = chrf.char_order, chrf.beta**2
        self._settings = {"char_order": chrf.char_order, "word_order": chrf.word_order, "beta": chrf.beta}

    @property
    def described(self) -> dict[str, Any]:
        return {
            "measure": "chrf",
            "settings": self._settings,
            "versions": {"sacrebleu": version("sacrebleu")},
        }

    def matrices(self, texts: Iterable[TextPairs]) -> Iterator[Matrix]:
        for batch in _batches(texts, _characters):
            counted = _Counted(batch, self._orders, self._factor)
            yield from _cut(counted.scores(), counted.shapes)

    def mutual(self, fields: Iterable[FieldPairs], balance: float, at_least: float) -> Iterator[Matrix]:
        """As `base.mutual`, and faster: what two texts share is counted once for both directions."""
        for batch in _batches(
            fields, lambda pair: _characters(pair.phenomenon) + _characters(pair.reasoning)
        ):
            entries = [each for pair in batch for each in (pair.phenomenon, pair.reasoning)]
            counted = _Counted(entries, self._orders, self._factor)
            # Entries take turns: pairs of phenomena, then those of reasonings.
            sizes = [rows * columns for rows, columns in counted.shapes]
            is_reasoning = np.repeat(np.arange(len(sizes)) % 2 == 1, sizes)
            forth, back = (
                balance * scores[~is_reasoning] + (1 - balance) * scores[is_reasoning]
                for scores in (counted.scores(), counted.scores(swapped=True))
            )
            both = (forth + back) / 2
            both[both < at_least] = 0.0
            yield from _cut(both, counted.shapes[::2])


class _Counted:
    """What all pairs of texts of a batch have in common, order by order; shape (orders, pairs).

    Pairs are each text of the first side with each of the second of the same entry.
    """

    def __init__(self, entries: Sequence[TextPairs], orders: int, factor: float) -> None:
        self._factor = factor
        self.shapes = [(len(entry.predicted), len(entry.true)) for entry in entries]
        self._first, self._second, texts, groups, places = _lined_up(entries)
        batch = TextBatch(texts, groups, places)
        self._totals = [batch.totals(order) for order in range(1, orders + 1)]
        counted = range(1, orders + 1) if len(self._first) else ()
        self._shared = [batch.shared(order, self._first, self._second) for order in counted]

    def scores(self, *, swapped: bool = False) -> Floats:
        """chrF of each pair, the first side being the hypothesis, or, `swapped`, the second."""
        hypothesis, reference = self._first, self._second
        if swapped:
            hypothesis, reference = reference, hypothesis
        # As sacrebleu's `_compute_f_score`, operation by operation, so that no digit differs.
        precision, recall = np.zeros((2, len(self._first)))
        effective = np.zeros(len(self._first), np.int64)
        for of_order, total in zip(self._shared, self._totals, strict=False):
            ours, theirs = total[hypothesis], total[reference]
            both = (ours > 0) & (theirs > 0)
            precision += np.divide(of_order, ours, out=np.zeros(len(both)), where=both)
            recall += np.divide(of_order, theirs, out=np.zeros(len(both)), where=both)
            effective += both
        some = effective > 0
        np.divide(precision, effective, out=precision, where=some)
        np.divide(recall, effective, out=recall, where=some)
        some = precision + recall > 0
        score = (1 + self._factor) * precision * recall
        np.divide(score, self._factor * precision + recall, out=score, where=some)
        # chrF divides by n-gram counts, so rounding may lift it a hair above 100.
        return np.where(some, np.minimum(1.0, 100 * score / 100), 0.0)


def _cut(cells: Floats, shapes: Sequence[tuple[int, int]]) -> Iterator[Matrix]:
    at = 0
    for rows, columns in shapes:
        yield cells[at : at + rows * columns].reshape(rows, columns)
        at += rows * columns


def _lined_up(entries: Sequence[TextPairs]) -> tuple[Ints, Ints, list[str], Ints, Ints]:
    """Both texts of all pairs by number, all texts, and of each text its entry and its place there."""
    texts: list[str] = []
    columns: list[tuple[Ints, ...]] = []
    for number, entry in enumerate(entries):
        rows, width = len(entry.predicted), len(entry.true)
        own = np.arange(rows + width)
        first, second = len(texts) + np.repeat(own[:rows], width), len(texts) + np.tile(own[rows:], rows)
        columns.append((first, second, np.full(rows + width, number), own))
        texts += [*entry.predicted, *entry.true]
    first, second, groups, places = map(np.concatenate, zip(*columns, strict=True))
    return first, second, texts, groups, places


def _characters(entry: TextPairs) -> int:
    # An entry costs something even where it is empty.
    return 64 + sum(map(len, entry.predicted)) + sum(map(len, entry.true))


def _batches(entries: Iterable[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    batch: list[T] = []
    characters = 0
    for entry in entries:
        batch.append(entry)
        characters += size(entry)
        if characters >= _CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def open_measure(parameters: MeasureParameters) -> ChrfSimilarity:
    """Raises UsageError where a backbone, a layer or a device is asked for: chrF has none."""
    if parameters != MeasureParameters():
        raise UsageError(
            "chrf has no backbone, layers or device",
            remedy="Leave these out, or compare texts with bertscore.",
        )
    return ChrfSimilarity()
