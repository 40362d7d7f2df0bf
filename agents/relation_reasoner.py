"""RelationReasoner: what about one object's relations to the others cannot be real?

It knows all objects and what was found about this one by itself. Source: AnomReason, section 2.2.
"""

from __future__ import annotations

from collections.abc import Sequence

from uncanny.agents.context import ImageContext, Step, as_json
from uncanny.answers import RELATIONS, AttributeFinding, RelationFinding
from uncanny.schema import SceneObject


async def reason_relations(
    image: ImageContext,
    subject: SceneObject,
    objects: Sequence[SceneObject],
    attributes: Sequence[AttributeFinding],
) -> tuple[RelationFinding, ...]:
    """Verified findings about `subject` and others; empty when all relations are in order."""
    # The object list stands ahead of what differs: a second prefix that all objects' questions share.
    context = image.prompts["relation_context"].fill(objects=as_json(objects))
    described, noted = as_json(subject), as_json(attributes)
    look = Step("RelationReasoner", 1, "relation_look", subject.name)
    notes = await image.text(look, context, object=described, attributes=noted)
    verify = Step("RelationReasoner", 2, "relation_verify", subject.name)
    return await image.items(verify, RELATIONS, context, object=described, attributes=noted, notes=notes)
