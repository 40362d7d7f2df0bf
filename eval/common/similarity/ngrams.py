"""Character n-grams that texts have in common, counted for many pairs of texts at once and exactly.

sacrebleu counts each pair of texts with dictionaries. Here the n-grams of all texts of a batch are one array
of numbers, sorted once for each order, and what pairs have in common is a product of sparse matrices.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from uncanny.eval.common.similarity.base import is_blank

Ints = NDArray[np.int64]

# N-grams and the text they are of are packed into numbers below it.
_ROOM = 1 << 62
# Longer n-grams mostly stand once, and can be in no pair: it pays to leave these out.
_USUALLY_SHARED = 2
# Letters are counted in a table while that has no more cells for all pairs: 8 MB.
_MOST_CELLS = 1 << 21


class TextBatch:
    """Texts without their white space, each in one of several `groups`: only texts of a group are compared.

    Of a text that is blank nothing is left.

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
