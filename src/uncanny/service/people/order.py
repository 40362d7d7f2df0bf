"""In which order a person sees things: another one for each, the same one each time, and pairs apart."""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence


def apart(groups: Sequence[Hashable], seed: str) -> list[int]:
    """The places of `groups` in a shuffled order in which no two of one group follow each other.

    Where that cannot be, because one group has more than half of the places, those that are too many stand
    together at the end. The same `seed` gives the same order.

    >>> apart(["cup", "cup", "dog", "dog"], "Ann") == apart(["cup", "cup", "dog", "dog"], "Ann")
    True
    """
    order = list(range(len(groups)))
    random.Random(seed).shuffle(order)
    place = 1
    while place < len(order):
        before = groups[order[place - 1]]
        if groups[order[place]] == before:
            other = next((at for at in range(place + 1, len(order)) if groups[order[at]] != before), None)
            if other is None:
                break
            order[place], order[other] = order[other], order[place]
        place += 1
    # What is left is of one group: between others, wherever there is room.
    rest, order = order[place:], order[:place]
    for each in rest:
        group = groups[each]
        room = (
            at
            for at in range(len(order) + 1)
            if (at == 0 or groups[order[at - 1]] != group)
            and (at == len(order) or groups[order[at]] != group)
        )
        order.insert(next(room, len(order)), each)
    return order
