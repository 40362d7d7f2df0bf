"""Scores that count only where the source of an image is recognised: accuracy, cSemAP, cSemF1 (section 4.2).

Columns have one entry an image. A source is `generated`, `real`, or the empty string: of the truth, where it
does not say; of a prediction, where no clear answer was given, which is never right.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from uncanny.eval.metrics.semap import ProtocolName

Source = Literal["generated", "real"]
Sources = NDArray[np.str_]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


def recognised(true: Sources, predicted: Sources) -> Bools:
    """Where the predicted source is the true one. Nothing is right where the truth does not say."""
    right: Bools = (true == predicted) & (true != "")
    return right


def counted(true: Sources, protocol: ProtocolName) -> Bools:
    """The images that cSemAP and cSemF1 are means over.

    `release`: generated ones, so that an answer other than a clear yes is wrong. `paper`: all whose true
    source is known.
    """
    rows: Bools = true == "generated" if protocol == "release" else true != ""
    return rows


def conditioned(scores: Floats, true: Sources, predicted: Sources) -> Floats:
    """SemAP or SemF1 of each image where its source is recognised, else 0 (equations 15 and 16).

    A real image recognised as such, without anomalies on either side, keeps the 1 that `paper` gives it.
    """
    return np.where(recognised(true, predicted), scores, 0.0)
