"""`uncanny.realism`: which edited images would fool a viewer, by the two-order check of SAGI (UGDA).

pairs = uncanny.realism.load("pairs.jsonl")
uncanny.realism.run(pairs, model="openai/gpt-4o", out="runs/r")
print(uncanny.realism.score("runs/r"))
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uncanny.eval.realism.data import Pair, PairFiles, PairSet, load
    from uncanny.eval.realism.humans import HumanAnswer
    from uncanny.eval.realism.result import RealismScore
    from uncanny.eval.realism.score import score
    from uncanny.eval.realism.verdicts import Verdict

_HOMES = {
    "HumanAnswer": "humans",
    "Pair": "data",
    "PairFiles": "data",
    "PairSet": "data",
    "RealismScore": "result",
    "Verdict": "verdicts",
    "load": "data",
    "score": "score",
}
__all__ = ["HumanAnswer", "Pair", "PairFiles", "PairSet", "RealismScore", "Verdict", "load", "score"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"uncanny.eval.realism.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
