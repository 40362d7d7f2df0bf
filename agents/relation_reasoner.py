"""RelationReasoner: what about one object's relations to the others cannot be real?

It knows all objects and the findings about this one by itself. Source: AnomReason, section 2.2.
"""

from __future__ import annotations

from collections.abc import Sequence

from uncanny.agents.config import AnnotateConfig
from uncanny.agents.context import ImageContext, as_json
from uncanny.agents.steps import RELATION_LOOK, RELATION_VERIFY
from uncanny.answers import AttributeFinding, RelationFinding
from uncanny.schema import SceneObject


async def reason_relations(
    image: ImageContext[AnnotateConfig],
    subject: SceneObject,
    objects: Sequence[SceneObject],
    attributes: Sequence[AttributeFinding],
) -> tuple[RelationFinding, ...]:
    """Verified findings about `subject` and others; empty when all relations are in order."""
    # The object list stands ahead of what differs: a second prefix, common to the calls about all objects.
    scene = image.prompts["relation_context"].fill(objects=as_json(objects))
    name, description, known = subject.name, as_json(subject), as_json(attributes)
    notes = await image.text(RELATION_LOOK, scene, subject=name, object=description, attributes=known)
    return await image.items(
        RELATION_VERIFY, scene, subject=name, object=description, attributes=known, notes=notes
    )
