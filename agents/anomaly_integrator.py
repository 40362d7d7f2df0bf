"""AnomalyIntegrator: one consolidated list of the findings about one object.

It works on the findings alone and does not see the picture. Source: AnomReason, section 2.3.
"""

from __future__ import annotations

from collections.abc import Sequence

from uncanny.agents.config import AnnotateConfig
from uncanny.agents.context import ImageContext, as_json
from uncanny.agents.steps import INTEGRATE_LIST, INTEGRATE_MERGE
from uncanny.answers import AttributeFinding, Finding, RelationFinding
from uncanny.schema import SceneObject


async def integrate(
    image: ImageContext[AnnotateConfig],
    subject: SceneObject,
    attributes: Sequence[AttributeFinding],
    relations: Sequence[RelationFinding],
) -> tuple[Finding, ...]:
    """The merged findings.

    Without findings there is nothing to merge, and no call is made: an integrator that sees neither picture
    nor findings could only invent some.
    """
    if not attributes and not relations:
        return ()
    name, description = subject.name, as_json(subject)
    notes = await image.text(
        INTEGRATE_MERGE,
        subject=name,
        object=description,
        attributes=as_json(attributes),
        relations=as_json(relations),
    )
    return await image.items(INTEGRATE_LIST, subject=name, object=description, notes=notes)
