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
from uncanny.eval.common.similarity.base import FieldPairs, Matrix, TextPairs, is_blank

if TYPE_CHECKING:
    from sacrebleu.metrics.chrf import CHRF


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
T = TypeVar("T")

# Characters that are counted together: what is sorted at once stays in a core's cache.
_CHARACTERS = 1 << 18
# N-grams and the text they are of are packed into numbers below it.
_ROOM = 1 << 62
# Longer n-grams mostly stand once, and can be in no pair: it pays to leave these out.
_USUALLY_SHARED = 2
# Letters are counted in a table while that has no more cells for all pairs: 8 MB.
_MOST_CELLS = 1 << 21


class TextBatch:
    """Texts without their white space, each in one of several `groups`: only texts of a group are compared.

    sacrebleu counts each pair of texts with dictionaries. Here the n-grams of all texts are one array of
    numbers, sorted once for each order, and what pairs have in common is a product of sparse matrices. Of a
    text that is blank nothing is left.

    `texts`, `groups` and `places` have an entry a text; places are unique within a group and start at 0.
    """

    def __init__(self, texts: Sequence[str], groups: Ints, places: Ints) -> None:
        dense = ["" if is_blank(text) else "".join(text.split()) for text in texts]
        self.lengths: Ints = np.fromiter(map(len, dense), np.int64, len(dense))
        codes = np.frombuffer("".join(dense).encode("utf-32-le", "surrogatepass"), np.uint32)
        used = np.zeros(int(codes.max(initial=0)) + 1, np.bool_)
        used[codes] = True
        self._letters = int(np.count_nonzero(used)) or 1
        ranks = np.cumsum(used, dtype=np.int64) - 1
        self._symbols: Ints = ranks[codes]
        self._owners: Ints = np.repeat(np.arange(len(dense)), self.lengths)
        ends = np.cumsum(self.lengths)
        # From each symbol, how many there are to the end of its text, itself included.
        self._left: Ints = ends[self._owners] - np.arange(len(codes))
        place_bits, group_bits = (int(each.max(initial=0)).bit_length() for each in (places, groups))
        self._place_bits, self._who_bits = place_bits, group_bits + place_bits
        # Group and place as one number, and back to the text.
        self._who: Ints = (groups << place_bits) | places
        self._text_of = np.zeros(1 << self._who_bits, np.int32)
        self._text_of[self._who] = np.arange(len(dense))
        self._order = 0
        self._grams: Ints = np.zeros(len(codes), np.int64)
        self._bound = 1

    def totals(self, order: int) -> Ints:
        """How many n-grams of this order each text has."""
        return np.maximum(self.lengths - order + 1, 0)

    def shared(self, order: int, first: Ints, second: Ints) -> Ints:
        """For each pair of texts (`first[i]`, `second[i]`) how many n-grams both have.

        An n-gram counts as often as both have it. Orders are called for from 1 upwards, none left out.
        """
        from scipy.sparse import csr_matrix  # type: ignore[import-untyped]  # slow to import

        keys = self._keys(order)
        if order == 1 and len(first) * self._letters <= _MOST_CELLS:
            return self._letters_shared(first, second)
        keys.sort()
        grams = keys >> self._place_bits
        if order > _USUALLY_SHARED:
            equal = grams[1:] == grams[:-1]
            stay = np.zeros(len(keys), np.bool_)
            stay[1:] = equal
            stay[:-1] |= equal
            several = np.flatnonzero(stay)
            keys, grams = keys.take(several), grams.take(several)
        numbers = np.arange(len(keys), dtype=np.int32)
        # The k-th time that a text has an n-gram is a column of its own, so that products count minima.
        columns = numbers - _starts(keys, numbers) + _starts(grams, numbers)
        rows: NDArray[np.int32] = self._text_of.take(keys & ((1 << self._who_bits) - 1))
        side = np.zeros(len(self.lengths), np.int8)
        side[first], side[second] = 1, 2
        sides = side.take(rows)
        ours, theirs = np.flatnonzero(sides == 1), np.flatnonzero(sides == 2)
        ones = np.ones(len(keys), np.int32)
        shape = (len(self.lengths), max(1, len(keys)))
        left = csr_matrix((ones[: len(ours)], (rows.take(ours), columns.take(ours))), shape)
        right = csr_matrix((ones[: len(theirs)], (columns.take(theirs), rows.take(theirs))), shape[::-1])
        common = left @ right
        picked: Ints = np.asarray(common[first, second]).ravel().astype(np.int64)
        return picked

    def _letters_shared(self, first: Ints, second: Ints) -> Ints:
        """Of single letters there are so few that a table of them is quicker."""
        cells = self._owners * self._letters + self._symbols
        table = np.bincount(cells, minlength=len(self.lengths) * self._letters)
        counts = table.reshape(-1, self._letters).astype(np.int32)
        shared: Ints = np.minimum(counts[first], counts[second]).sum(axis=1, dtype=np.int64)
        return shared

    def _keys(self, order: int) -> Ints:
        """A number for each n-gram: the n-gram, then the group of its text, then the text's place in it."""
        assert order == self._order + 1, "orders are called for one after the other"
        beyond = order - 1
        ahead = np.zeros(len(self._symbols), np.int64)
        inside = np.flatnonzero(self._left > beyond)
        ahead[: max(0, len(ahead) - beyond)] = self._symbols[beyond:]
        if self._bound * self._letters > _ROOM >> self._who_bits:
            distinct, self._grams = np.unique(self._grams, return_inverse=True)
            self._bound = len(distinct)
        self._grams = self._grams * self._letters + ahead
        self._bound *= self._letters
        self._order = order
        return (self._grams.take(inside) << self._who_bits) | self._who.take(self._owners.take(inside))


def _starts(values: Ints, numbers: NDArray[np.int32]) -> NDArray[np.int32]:
    """For each entry of sorted `values` where the run of entries equal to it starts."""
    new = np.ones(len(values), np.bool_)
    new[1:] = values[1:] != values[:-1]
    return np.maximum.accumulate(np.where(new, numbers, np.int32(0)))


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
