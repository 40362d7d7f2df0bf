"""Edits of images, after Semi-Truths and SAGI: `uncanny.edits`.

`load` gives the pairs, `measure` says how much each was changed and where, `gate` which are fit for use.
Nothing is imported before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from uncanny import lazy_names

if TYPE_CHECKING:
    from uncanny.eval.edits.data import EditFiles as EditFiles
    from uncanny.eval.edits.data import EditPair as EditPair
    from uncanny.eval.edits.data import EditSet as EditSet
    from uncanny.eval.edits.data import load as load
    from uncanny.eval.edits.result import EditMeasure as EditMeasure
    from uncanny.eval.edits.result import EditParameters as EditParameters
    from uncanny.eval.edits.result import MeasuredEdits as MeasuredEdits
    from uncanny.eval.edits.result import SetCutoffs as SetCutoffs
    from uncanny.eval.edits.score import measure as measure

# The same names as above, for Python: type checkers read no tables.
__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "uncanny.eval.edits.data": "EditFiles EditPair EditSet load",
        "uncanny.eval.edits.result": "EditMeasure EditParameters MeasuredEdits SetCutoffs",
        "uncanny.eval.edits.score": "measure",
    },
)
