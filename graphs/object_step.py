"""Examining one object: attributes → relations → integration, the same functions flat and as a subgraph.

A step that fails ends its object; what failed is recorded and the other objects go on.
"""

from __future__ import annotations

from typing import TypedDict

from uncanny.agents.anomaly_integrator import integrate
from uncanny.agents.attribute_analyzer import analyze_attributes
from uncanny.agents.context import ImageContext
from uncanny.agents.failure import StepFailedError
from uncanny.agents.relation_reasoner import reason_relations
from uncanny.answers import AttributeFinding, Finding, RelationFinding
from uncanny.schema import SceneObject, StepError


class ObjectState(TypedDict, total=False):
    """What is known about one object. `error` is set by the step that failed and ends the object."""

    image: str
    subject: SceneObject
    objects: list[SceneObject]
    attributes: list[AttributeFinding]
    relations: list[RelationFinding]
    findings: list[Finding]
    error: StepError | None


async def attribute_step(state: ObjectState, image: ImageContext) -> ObjectState:
    try:
        return {"attributes": list(await analyze_attributes(image, state["subject"]))}
    except StepFailedError as error:
        return {"error": error.record}


async def relation_step(state: ObjectState, image: ImageContext) -> ObjectState:
    try:
        found = await reason_relations(image, state["subject"], state["objects"], state["attributes"])
    except StepFailedError as error:
        return {"error": error.record}
    return {"relations": list(found)}


async def integrate_step(state: ObjectState, image: ImageContext) -> ObjectState:
    try:
        found = await integrate(image, state["subject"], state["attributes"], state["relations"])
    except StepFailedError as error:
        return {"error": error.record}
    return {"findings": list(found)}


async def examine_object(state: ObjectState, image: ImageContext) -> ObjectState:
    """All three steps in one: a graph node each costs more than the rest of the bookkeeping together."""
    for step in (attribute_step, relation_step, integrate_step):
        state = {**state, **await step(state, image)}
        if state.get("error"):
            break
    return state
