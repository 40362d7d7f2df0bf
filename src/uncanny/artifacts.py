"""Where are the artifacts of images, and of which kind: `uncanny.artifacts`.

`run` asks a model for them, `load` reads them from files of many kinds, and `score` compares predictions with
a truth. Nothing is imported before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from uncanny import lazy_names

if TYPE_CHECKING:
    from uncanny.eval.artifacts.data.load import load as load
    from uncanny.eval.artifacts.data.records import ArtifactRecord as ArtifactRecord
    from uncanny.eval.artifacts.data.records import ArtifactSet as ArtifactSet
    from uncanny.eval.artifacts.data.records import Region as Region
    from uncanny.eval.artifacts.run import ArtifactsForecast as ArtifactsForecast
    from uncanny.eval.artifacts.run import ArtifactsRun as ArtifactsRun
    from uncanny.eval.artifacts.run import LocatedArtifacts as LocatedArtifacts
    from uncanny.eval.artifacts.run import forecast as forecast
    from uncanny.eval.artifacts.run import run as run
    from uncanny.eval.artifacts.run import run_async as run_async
    from uncanny.eval.artifacts.score.result import ArtifactScore as ArtifactScore
    from uncanny.eval.artifacts.score.result import Authenticity as Authenticity
    from uncanny.eval.artifacts.score.result import PredictionScore as PredictionScore
    from uncanny.eval.artifacts.score.result import ScopeScore as ScopeScore
    from uncanny.eval.artifacts.score.score import score as score

__all__, __getattr__, __dir__ = lazy_names(__name__)
