"""Pairs of an image and its edit, whose fault is known: `uncanny.pairs`, after SalArt-VQA.

`make` paints over a region of each image and keeps the rest, `screen` finds the candidates that are worth a
look, and `items` writes the pairs that people kept, with drafts of questions. Nothing is imported before it
is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from uncanny import lazy_names

if TYPE_CHECKING:
    from uncanny.eval.pairs.data import Candidate as Candidate
    from uncanny.eval.pairs.data import Original as Original
    from uncanny.eval.pairs.data import Screened as Screened
    from uncanny.eval.pairs.forecast import make_forecast as make_forecast
    from uncanny.eval.pairs.forecast import screen_forecast as screen_forecast
    from uncanny.eval.pairs.items import items as items
    from uncanny.eval.pairs.make.result import MakeRun as MakeRun
    from uncanny.eval.pairs.make.run import make as make
    from uncanny.eval.pairs.make.run import make_async as make_async
    from uncanny.eval.pairs.result import PairsResult as PairsResult
    from uncanny.eval.pairs.screen.run import ScreenRun as ScreenRun
    from uncanny.eval.pairs.screen.run import screen as screen
    from uncanny.eval.pairs.screen.run import screen_async as screen_async

__all__, __getattr__, __dir__ = lazy_names(__name__)
