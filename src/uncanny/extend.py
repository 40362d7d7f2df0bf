"""What extensions are written with: agents, nodes and graphs of annotation, and protocols of your own.

Providers need `uncanny` alone. docs/extend.md shows how the names go together; nothing is imported before it
is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from uncanny import lazy_names

if TYPE_CHECKING:
    from uncanny.agents.annotate_context import AnnotateContext as AnnotateContext
    from uncanny.agents.context import ImageContext as ImageContext
    from uncanny.agents.own_agent import OwnAgent as OwnAgent
    from uncanny.agents.state import AnnotateState as AnnotateState
    from uncanny.agents.state import BatchFinding as BatchFinding
    from uncanny.agents.state import BatchState as BatchState
    from uncanny.agents.state import ObjectState as ObjectState
    from uncanny.agents.state import PackedState as PackedState
    from uncanny.agents.state import ScanState as ScanState
    from uncanny.agents.state import Sighting as Sighting
    from uncanny.agents.state import as_findings as as_findings
    from uncanny.agents.steps import ListStep as ListStep
    from uncanny.agents.steps import Step as Step
    from uncanny.answers import FINDINGS as FINDINGS
    from uncanny.answers.packed import FAULTS as FAULTS
    from uncanny.graphs.annotate import AnnotateInput as AnnotateInput
    from uncanny.graphs.annotate import AnnotateNodes as AnnotateNodes
    from uncanny.graphs.annotate import annotate_graph as annotate_graph
    from uncanny.graphs.packed import PackedNodes as PackedNodes
    from uncanny.graphs.packed import packed_graph as packed_graph

# The same names as above, for Python: type checkers read no tables.
__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "uncanny.agents.annotate_context": "AnnotateContext",
        "uncanny.agents.context": "ImageContext",
        "uncanny.agents.own_agent": "OwnAgent",
        "uncanny.agents.state": "AnnotateState BatchFinding BatchState ObjectState PackedState ScanState "
        "Sighting as_findings",
        "uncanny.agents.steps": "ListStep Step",
        "uncanny.answers": "FINDINGS",
        "uncanny.answers.packed": "FAULTS",
        "uncanny.graphs.annotate": "AnnotateInput AnnotateNodes annotate_graph",
        "uncanny.graphs.packed": "PackedNodes packed_graph",
    },
)
