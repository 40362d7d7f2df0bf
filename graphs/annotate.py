"""The annotation of one image as a LangGraph state machine, in the flat form for bulk runs.

::

    perceive ─► examine (one Send per object) ─► format
         └────► scan (one Send per scene scan) ───┘

The state holds names and findings only; the image, the models and the log come with the run context.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable
from functools import cache
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from uncanny.agents.anomaly_formatter import format_anomalies
from uncanny.agents.context import ImageContext
from uncanny.agents.failure import StepFailedError
from uncanny.agents.object_perceiver import perceive
from uncanny.agents.scene_scanner import scan_scene
from uncanny.answers import Finding
from uncanny.graphs.object_step import ObjectState, examine_object
from uncanny.schema import Anomaly, SceneObject, StepError

FATAL_AGENTS = frozenset({"ObjectPerceiver", "AnomalyFormatter"})


class Examined(TypedDict):
    """What came of one object or one scan: `order` sorts findings as if nothing had run side by side."""

    order: int
    findings: list[Finding]
    error: StepError | None


class AnnotateState(TypedDict, total=False):
    """One image on its way.

    `image`: its name in records, given. `objects`, `cut`: set by `perceive`, the objects to examine and those
    above the limit. `examined`: one entry from each `examine` and `scan`. `anomalies`: set by `format`.
    `failure`: why the perceiver or the formatter failed, which ends the image.
    """

    image: str
    objects: list[SceneObject]
    cut: list[SceneObject]
    examined: Annotated[list[Examined], operator.add]
    anomalies: list[Anomaly]
    failure: StepError | None


class Branch(TypedDict):
    """What one `examine` or `scan` is given; `subject` and `objects` are for `examine`."""

    image: str
    order: int
    subject: SceneObject
    objects: list[SceneObject]


async def perceive_node(_state: AnnotateState, image: ImageContext) -> AnnotateState:
    try:
        found = await perceive(image)
    except StepFailedError as error:
        return {"failure": error.record}
    limit = image.config.max_objects
    return {"objects": list(found[:limit]), "cut": list(found[limit:])}


def fan_out(state: AnnotateState, scans: int) -> list[Send] | str:
    """One branch for each object and each scene scan; straight to the formatter when there is none."""
    if state.get("failure"):
        return END
    objects = state["objects"]
    branches = [
        Send("examine", {"image": state["image"], "order": order, "subject": subject, "objects": objects})
        for order, subject in enumerate(objects)
    ]
    branches += [Send("scan", {"image": state["image"], "order": number}) for number in range(scans)]
    return branches or "format"


async def examine_node(state: Branch, image: ImageContext) -> AnnotateState:
    subject = ObjectState(subject=state["subject"], objects=state["objects"])
    with image.scope.branch():
        return examined(state["order"], await examine_object(subject, image))
    return {}


def examined(order: int, done: ObjectState) -> AnnotateState:
    return {"examined": [{"order": order, "findings": done.get("findings", []), "error": done.get("error")}]}


async def scan_node(state: Branch, image: ImageContext) -> AnnotateState:
    number = state["order"]
    after_objects = image.config.max_objects + number
    with image.scope.branch():
        try:
            found = list(await scan_scene(image, number))
        except StepFailedError as error:
            return {"examined": [{"order": after_objects, "findings": [], "error": error.record}]}
        return {"examined": [{"order": after_objects, "findings": found, "error": None}]}
    return {}


async def format_node(state: AnnotateState, image: ImageContext) -> AnnotateState:
    """Raises what ended a branch: by now all of them are back."""
    image.scope.check()
    done = sorted(state.get("examined", []), key=lambda one: one["order"])
    try:
        found = await format_anomalies(image, [finding for one in done for finding in one["findings"]])
    except StepFailedError as error:
        return {"failure": error.record}
    return {"anomalies": list(found)}


@cache
def bulk_graph() -> Any:
    """The compiled graph; its context is the `ImageContext` of the image. No checkpointer: resuming is the
    answer cache's work, call by call."""

    async def perceive_bulk(state: AnnotateState, runtime: Runtime[ImageContext]) -> AnnotateState:
        return await perceive_node(state, runtime.context)

    async def examine_bulk(state: Branch, runtime: Runtime[ImageContext]) -> AnnotateState:
        return await examine_node(state, runtime.context)

    async def scan_bulk(state: Branch, runtime: Runtime[ImageContext]) -> AnnotateState:
        return await scan_node(state, runtime.context)

    async def format_bulk(state: AnnotateState, runtime: Runtime[ImageContext]) -> AnnotateState:
        return await format_node(state, runtime.context)

    def branches(state: AnnotateState, runtime: Runtime[ImageContext]) -> list[Send] | Hashable:
        return fan_out(state, runtime.context.config.scene_scans)

    graph = StateGraph(AnnotateState, context_schema=ImageContext)
    graph.add_node("perceive", perceive_bulk)
    graph.add_node("examine", examine_bulk)
    graph.add_node("scan", scan_bulk)
    graph.add_node("format", format_bulk)
    graph.add_edge(START, "perceive")
    graph.add_conditional_edges("perceive", branches, ["examine", "scan", "format", END])
    graph.add_edge("examine", "format")
    graph.add_edge("scan", "format")
    graph.add_edge("format", END)
    return graph.compile(name="annotate")
