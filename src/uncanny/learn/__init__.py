"""Train models on verified annotations: `uncanny.learn`.

`reasoner` trains a vision-language model to list anomalies, `grounder` one to locate artifacts. `detector`
trains a vision transformer to tell generated images from real ones, `multitask` a model that also marks
artifacts. All need the extra `learn`. Nothing is imported before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from uncanny import lazy_names

if TYPE_CHECKING:
    from uncanny.learn.common.result import LearnRun as LearnRun
    from uncanny.learn.grounding.run import grounder as grounder
    from uncanny.learn.reasoning.run import reasoner as reasoner
    from uncanny.learn.vision.detector import detector as detector
    from uncanny.learn.vision.multitask import multitask as multitask

__all__, __getattr__, __dir__ = lazy_names(__name__)
