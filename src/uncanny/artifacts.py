"""Where are the artifacts of images, and of which kind: `uncanny.artifacts`.

`run` asks a model for them. Nothing is imported before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from uncanny import lazy_names

if TYPE_CHECKING:
    from uncanny.eval.artifacts.data.records import ArtifactRecord as ArtifactRecord
    from uncanny.eval.artifacts.data.records import Region as Region
    from uncanny.eval.artifacts.forecast import ArtifactsForecast as ArtifactsForecast
    from uncanny.eval.artifacts.forecast import forecast as forecast
    from uncanny.eval.artifacts.run import ArtifactsRun as ArtifactsRun
    from uncanny.eval.artifacts.run import LocatedArtifacts as LocatedArtifacts
    from uncanny.eval.artifacts.run import run as run
    from uncanny.eval.artifacts.run import run_async as run_async

# The same names as above, for Python: type checkers read no tables.
__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "uncanny.eval.artifacts.data.records": "ArtifactRecord Region",
        "uncanny.eval.artifacts.forecast": "ArtifactsForecast forecast",
        "uncanny.eval.artifacts.run": "ArtifactsRun LocatedArtifacts run run_async",
    },
)
