"""Which images and prompts are fit for a benchmark, which belong together, who gets which: `uncanny.curate`.

`filter` has a model say which images are photographs and which prompts call for one; `cluster` finds prompts
that say the same, `references` a real photograph for each generated image, and `split` divides identities
into training and test sets. Nothing is imported before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from uncanny import lazy_names

if TYPE_CHECKING:
    from uncanny.eval.common.described import DescribedImage as DescribedImage
    from uncanny.eval.curate.cluster import PromptClusters as PromptClusters
    from uncanny.eval.curate.cluster import cluster as cluster
    from uncanny.eval.curate.filter import Filtered as Filtered
    from uncanny.eval.curate.filter import FilterRun as FilterRun
    from uncanny.eval.curate.filter import filter as filter
    from uncanny.eval.curate.filter import filter_async as filter_async
    from uncanny.eval.curate.filter import filter_forecast as filter_forecast
    from uncanny.eval.curate.references import References as References
    from uncanny.eval.curate.references import references as references
    from uncanny.eval.curate.split import Split as Split
    from uncanny.eval.curate.split import split as split

__all__, __getattr__, __dir__ = lazy_names(__name__)
