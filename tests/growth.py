"""How the time of a function grows with its input: measured over sizes, with room for a busy machine."""

from __future__ import annotations

import time
from collections.abc import Callable

# What takes less is too short to be compared, and no harm however it grows.
NOTHING_S = 0.05
SMALL, TIMES = 2_400, 8
# In proportion it is `TIMES`, with the square its square.
MOST = 4 * TIMES


def check_linear(work: Callable[[str], object], text: Callable[[int], str]) -> None:
    """Fails where `work` takes much more than in proportion longer for a longer `text(size)`."""
    large = _least(work, text(SMALL * TIMES), tries=1)
    if large < NOTHING_S:
        return
    small = _least(work, text(SMALL), tries=3)
    # Another process may have had the core.
    large = min(large, _least(work, text(SMALL * TIMES), tries=1))
    assert large < max(NOTHING_S, MOST * small), (
        f"{large / small:.0f} times the time for {TIMES} times the text"
    )


def _least(work: Callable[[str], object], text: str, tries: int) -> float:
    spent = []
    for _ in range(tries):
        began = time.process_time()
        work(text)
        spent.append(time.process_time() - began)
    return min(spent)
