"""AnomalyIntegrator: one consolidated list of the findings about one object.

It works on the findings alone and does not see the picture. Source: AnomReason, section 2.3.
"""

from __future__ import annotations

from uncanny.agents.context import as_json
from uncanny.agents.state import Context, ObjectState
from uncanny.agents.steps import INTEGRATE_LIST, INTEGRATE_MERGE


async def integrate(state: ObjectState, image: Context) -> ObjectState:
    """`findings`: the attributes and relations of one object, merged.

    Without findings there is nothing to merge, and no call is made: an integrator that sees neither picture
    nor findings could only invent some.
    """
    attributes, relations = state["attributes"], state["relations"]
    if not attributes and not relations:
        return {"findings": []}
    name, description = state["subject"].name, as_json(state["subject"])
    notes = await image.text(
        INTEGRATE_MERGE,
        subject=name,
        object=description,
        attributes=as_json(attributes),
        relations=as_json(relations),
    )
    merged = await image.items(INTEGRATE_LIST, subject=name, object=description, notes=notes)
    return {"findings": list(merged)}
