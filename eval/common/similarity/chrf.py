"""chrF as the measure of similarity: character n-grams in common. Needs no weights, knows no meaning.

M. Popović, *chrF: character n-gram F-score for automatic MT evaluation*, WMT 2015, digit for digit as
sacrebleu computes it. Scores are far below those of BERTScore and never compare with published ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from uncanny.errors import UsageError
from uncanny.eval.common.parameters import MeasureParameters
from uncanny.eval.common.similarity.base import FieldPairs, Matrix, TextPairs
from uncanny.eval.common.similarity.ngrams import Bools, Ints, TextBatch

if TYPE_CHECKING:
    from sacrebleu.metrics.chrf import CHRF

Floats = NDArray[np.float64]
T = TypeVar("T")

# Characters that are counted together: what is sorted at once stays in a core's cache.
_CHARACTERS = 1 << 18
# Rounding may lift or lower a score by some 1e-16; a bound this far below a threshold is surely below it.
_SLACK = 1e-9
# Looking whether a pair is out costs about as much as counting a short order.
_WORTH_A_LOOK = (0, 3, 4, 5)


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
            for order in range(1, self._orders + 1):
                counted.count(order)
            yield from counted.cut(counted.scores(counted.shared))

    def mutual(self, fields: Iterable[FieldPairs], balance: float, at_least: float) -> Iterator[Matrix]:
        """As `base.mutual`, and faster: pairs that cannot reach `at_least` are not counted to the end.

        A text has no more n-grams in common with another than it has (n−1)-grams in common with it, so that
        what the shorter ones come to is a bound for the longer ones.
        """
        for batch in _batches(
            fields, lambda pair: _characters(pair.phenomenon) + _characters(pair.reasoning)
        ):
            counted = _Counted(
                [each for pair in batch for each in (pair.phenomenon, pair.reasoning)],
                self._orders,
                self._factor,
            )
            pairs = counted.by_field()
            for order in range(self._orders + 1):
                if order:
                    counted.count(order)
                if order in _WORTH_A_LOOK:
                    most = counted.both_ways(counted.bound(order), pairs, balance)
                    counted.drop(pairs, most < at_least - _SLACK)
            full = counted.both_ways(counted.shared, pairs, balance)
            full[full < at_least] = 0.0
            yield from counted.cut_fields(full)


@dataclass(slots=True, eq=False)
class _Pairs:
    """All pairs of texts of a batch: each of the first side with each of the second of the same entry."""

    first: Ints
    second: Ints
    shapes: list[tuple[int, int]]


class _Counted:
    """What all pairs of texts of a batch have in common, order by order; shape (orders, pairs)."""

    def __init__(self, entries: Sequence[TextPairs], orders: int, factor: float) -> None:
        self._orders, self._factor = orders, factor
        self._pairs, texts, groups, places = _lined_up(entries)
        self._texts = TextBatch(texts, groups, places)
        number = len(self._pairs.first)
        self.totals = np.stack([self._texts.totals(order) for order in range(1, orders + 1)])
        self.shared: Ints = np.zeros((orders, number), np.int64)
        self._open: Ints = np.arange(number)

    def count(self, order: int) -> None:
        if len(self._open):
            first, second = self._pairs.first[self._open], self._pairs.second[self._open]
            self.shared[order - 1, self._open] = self._texts.shared(order, first, second)

    def bound(self, order: int) -> Ints:
        """The most that pairs can share of each order, those up to `order` being counted."""
        most = np.minimum(self.totals[:, self._pairs.first], self.totals[:, self._pairs.second])
        if order:
            most[:order] = self.shared[:order]
            most[order:] = np.minimum(most[order:], self.shared[order - 1])
        return most

    def drop(self, fields: tuple[Ints, Ints], out: Bools) -> None:
        """Count no further the pairs of anomalies that are `out`, with their texts; they share nothing."""
        for pairs in fields:
            self.shared[:, pairs[out]] = 0
        self._open = np.sort(np.concatenate([pairs[~out] for pairs in fields]))
        wanted = np.zeros(self.totals.shape[1], np.bool_)
        wanted[self._pairs.first[self._open]] = wanted[self._pairs.second[self._open]] = True
        self._texts.keep(wanted)

    def scores(self, shared: Ints, *, swapped: bool = False) -> Floats:
        """chrF of each pair, the first side being the hypothesis, or, `swapped`, the second."""
        hypothesis, reference = self._pairs.first, self._pairs.second
        if swapped:
            hypothesis, reference = reference, hypothesis
        # As sacrebleu's `_compute_f_score`, operation by operation, so that no digit differs.
        precision, recall = np.zeros((2, shared.shape[1]))
        effective = np.zeros(shared.shape[1], np.int64)
        for of_order, total in zip(shared, self.totals, strict=True):
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

    def both_ways(self, shared: Ints, fields: tuple[Ints, Ints], balance: float) -> Floats:
        """Both fields mixed, the mean of both directions, as `base.mutual` has it."""
        directions = (self.scores(shared), self.scores(shared, swapped=True))
        phenomenon, reasoning = fields
        forth, back = (
            balance * scores[phenomenon] + (1 - balance) * scores[reasoning] for scores in directions
        )
        return (forth + back) / 2

    def by_field(self) -> tuple[Ints, Ints]:
        """Which pairs are of phenomena and which of reasonings, where entries take turns."""
        sizes = np.array([rows * columns for rows, columns in self._pairs.shapes], np.int64)
        field = np.repeat(np.arange(len(sizes)) % 2, sizes)
        return np.flatnonzero(field == 0), np.flatnonzero(field == 1)

    def cut(self, cells: Floats) -> Iterator[Matrix]:
        return _cut(cells, self._pairs.shapes)

    def cut_fields(self, cells: Floats) -> Iterator[Matrix]:
        return _cut(cells, self._pairs.shapes[::2])


def _cut(cells: Floats, shapes: Sequence[tuple[int, int]]) -> Iterator[Matrix]:
    at = 0
    for rows, columns in shapes:
        yield cells[at : at + rows * columns].reshape(rows, columns)
        at += rows * columns


def _lined_up(entries: Sequence[TextPairs]) -> tuple[_Pairs, list[str], Ints, Ints]:
    """All pairs, all texts, and of each text its entry and its place there."""
    texts: list[str] = []
    groups: list[Ints] = []
    places: list[Ints] = []
    first: list[Ints] = []
    second: list[Ints] = []
    shapes = []
    for number, entry in enumerate(entries):
        rows, columns = len(entry.predicted), len(entry.true)
        shapes.append((rows, columns))
        own = np.arange(rows + columns)
        first.append(len(texts) + np.repeat(own[:rows], columns))
        second.append(len(texts) + rows + np.tile(own[:columns], rows))
        groups.append(np.full(rows + columns, number))
        places.append(own)
        texts += [*entry.predicted, *entry.true]
    pairs = _Pairs(np.concatenate(first), np.concatenate(second), shapes)
    return pairs, texts, np.concatenate(groups), np.concatenate(places)


def _characters(entry: TextPairs) -> int:
    # An entry costs something even where it is empty.
    return 64 + sum(map(len, entry.predicted)) + sum(map(len, entry.true))


def _characters_of_both(fields: FieldPairs) -> int:
    return _characters(fields.phenomenon) + _characters(fields.reasoning)


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
