"""The parameters of `annotate`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from uncanny.agents.config import AnnotateConfig
from uncanny.eval.common.parameters import CalibrationParameters
from uncanny.parameters import PYTHON, Parameters
from uncanny.records.annotation_table import RecordFormat
from uncanny.runs.parameters import ImageParameters

if TYPE_CHECKING:
    from uncanny.agents.common.annotate_context import Context
    from uncanny.agents.common.own_agent import OwnAgent
    from uncanny.graphs.annotate import AnnotateGraph, AnnotateNodes
    from uncanny.graphs.packed import PackedGraph, PackedNodes

    Nodes: TypeAlias = AnnotateNodes | PackedNodes
    Graph: TypeAlias = AnnotateGraph[Context] | PackedGraph[Context]
else:  # commands show their options without them
    Graph = Nodes = OwnAgent = Any


class OwnParameters(Parameters):
    """What of an annotation can be put in place by a program."""

    agents: Annotated[Sequence[OwnAgent], PYTHON] = ()
    """Agents of your own, asked beside those of the schedule packed."""
    nodes: Annotated[Nodes | None, PYTHON] = None
    """Nodes to put in place of the schedule's, by name: perceive, attributes, relations, integrate, scan or
    format. Each is `async def node(state, image)`, from what is known to what it adds; packed and paper have
    the same names and different states."""
    graph: Annotated[Graph | None, PYTHON] = None
    """A compiled LangGraph over the schedule's state to put in place of the whole."""


class AnnotateParameters(CalibrationParameters, ImageParameters, OwnParameters, AnnotateConfig):
    """The parameters of `annotate`."""

    format: RecordFormat = "jsonl"
    """Format of the records. parquet also writes a table, annotations.parquet, when the run ends."""
