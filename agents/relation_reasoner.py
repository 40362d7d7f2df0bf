"""RelationReasoner: what about one object's relations to the others cannot be real?

It knows all objects and the findings about this one by itself. Source: AnomReason, section 2.2. In the packed
schedule one call is about doubted places and large reflections (`steps.LOOKS`), beside the AttributeAnalyzer.
"""

from __future__ import annotations

from uncanny.agents.common.annotate_context import Context, ObjectState
from uncanny.agents.common.context import as_json
from uncanny.agents.steps import RELATION_LOOK, RELATION_VERIFY


async def reason_relations(state: ObjectState, image: Context) -> ObjectState:
    """`relations`: verified findings about the subject and others; empty when all is in order."""
    # The object list stands ahead of what differs: a second prefix, common to the calls about all objects.
    # What is above the limit is in the picture all the same.
    scene = image.prompts["relation_context"].fill(
        objects=as_json(state["objects"]),
        cut="; ".join(each.name for each in state.get("cut", ())) or "nothing",
    )
    name, description = state["subject"].name, as_json(state["subject"])
    known = as_json(state["attributes"])
    notes = await image.text(RELATION_LOOK, scene, subject=name, object=description, attributes=known)
    verified = await image.items(
        RELATION_VERIFY, scene, subject=name, object=description, attributes=known, notes=notes
    )
    return {"relations": list(verified)}
