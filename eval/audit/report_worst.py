"""The worst images of each generator as small pictures with what is wrong with them."""

from __future__ import annotations

from dataclasses import dataclass

from uncanny.eval.audit.result import Board, WorstImage
from uncanny.eval.report.pictures import Shot, pictures

# So many pictures in the whole page, and so many of one generator.
MOST_SHOWN, MOST_EACH = 64, 8
LEAST_EACH = 3


@dataclass(frozen=True, slots=True)
class Pictured:
    """One image; `thumb` is a data URI, None where the file is missing, was changed or cannot be read."""

    worst: WorstImage
    thumb: str | None


def shots(board: Board) -> dict[str, list[Pictured]]:
    """For each generator with anomalies its worst images, in the order of the board."""
    each = max(LEAST_EACH, min(MOST_EACH, MOST_SHOWN // max(len(board.order), 1)))
    chosen = {
        name: [one for one in board.generators[name].worst if one.anomalies][:each] for name in board.order
    }
    files = [Shot(one.path, one.sha256) for worst in chosen.values() for one in worst]
    thumbs = iter(pictures(files, budget=0))
    return {
        name: [Pictured(one, next(thumbs).small) for one in worst] for name, worst in chosen.items() if worst
    }
