"""Which edited images would fool a viewer, by the two-order check of SAGI (UGDA): `uncanny.realism`.

`load` gives the pairs, `run` judges them, `score` scores the verdicts. Nothing is imported before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uncanny.eval.realism.data import Pair, PairFiles, PairSet, load
    from uncanny.eval.realism.forecast import RealismForecast, forecast
    from uncanny.eval.realism.humans import HumanAnswer
    from uncanny.eval.realism.result import GroupScore, RealismScore, SetScore
    from uncanny.eval.realism.run import RealismRun, run, run_async
    from uncanny.eval.realism.score import score
    from uncanny.eval.realism.verdicts import Verdict

__all__ = [
    "GroupScore",
    "HumanAnswer",
    "Pair",
    "PairFiles",
    "PairSet",
    "RealismForecast",
    "RealismRun",
    "RealismScore",
    "SetScore",
    "Verdict",
    "forecast",
    "load",
    "run",
    "run_async",
    "score",
]

_MODULES = {
    "GroupScore": "result",
    "HumanAnswer": "humans",
    "Pair": "data",
    "PairFiles": "data",
    "PairSet": "data",
    "RealismForecast": "forecast",
    "RealismRun": "run",
    "RealismScore": "result",
    "SetScore": "result",
    "Verdict": "verdicts",
    "forecast": "forecast",
    "load": "data",
    "run": "run",
    "run_async": "run",
    "score": "score",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"uncanny.eval.realism.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
