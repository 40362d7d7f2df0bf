"""The parameters of `uncanny.merge`."""

from __future__ import annotations

from typing import Annotated

from uncanny.eval.common.parameters import ConfidenceParameters, Root
from uncanny.eval.compare.parameters import MatchParameters
from uncanny.parameters import HERE, Place, Shown


class MergeParameters(ConfidenceParameters, MatchParameters):
    """The parameters of `merge`."""

    out: Annotated[Place, Shown(on=HERE.on, short="-o", metavar="RUN")]
    """Folder of the merged run. It must be new or empty."""
    root: Root = None
