"""AttributeAnalyzer: what about one object, taken by itself, cannot be real?

First a free look, then a check of every claim against the picture. Source: AnomReason, section 2.2. In the
packed schedule one call looks at enlarged parts (`steps.LOOKS`), and the integrator checks what it finds.
"""

from __future__ import annotations

from uncanny.agents.common.annotate_context import Context, ObjectState
from uncanny.agents.common.context import as_json
from uncanny.agents.steps import ATTRIBUTE_LOOK, ATTRIBUTE_VERIFY


async def analyze_attributes(state: ObjectState, image: Context) -> ObjectState:
    """`attributes`: verified findings about the subject alone; empty when nothing is wrong with it."""
    name, description = state["subject"].name, as_json(state["subject"])
    notes = await image.text(ATTRIBUTE_LOOK, subject=name, object=description)
    verified = await image.items(ATTRIBUTE_VERIFY, subject=name, object=description, notes=notes)
    return {"attributes": list(verified)}
