"""Which edited images would fool a viewer, by the two-order check of SAGI (UGDA): `uncanny.realism`.

`load` gives the pairs, `run` judges them, `score` scores the verdicts. Nothing is imported before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from uncanny import lazy_names

if TYPE_CHECKING:
    from uncanny.eval.realism.data import Pair as Pair
    from uncanny.eval.realism.data import PairFiles as PairFiles
    from uncanny.eval.realism.data import PairSet as PairSet
    from uncanny.eval.realism.data import load as load
    from uncanny.eval.realism.people import PersonAnswer as PersonAnswer
    from uncanny.eval.realism.result import GroupScore as GroupScore
    from uncanny.eval.realism.result import RealismScore as RealismScore
    from uncanny.eval.realism.result import SetScore as SetScore
    from uncanny.eval.realism.run import RealismForecast as RealismForecast
    from uncanny.eval.realism.run import RealismRun as RealismRun
    from uncanny.eval.realism.run import forecast as forecast
    from uncanny.eval.realism.run import run as run
    from uncanny.eval.realism.run import run_async as run_async
    from uncanny.eval.realism.run import run_each as run_each
    from uncanny.eval.realism.run import run_each_async as run_each_async
    from uncanny.eval.realism.score import score as score
    from uncanny.eval.realism.verdicts import Verdict as Verdict

__all__, __getattr__, __dir__ = lazy_names(__name__)
