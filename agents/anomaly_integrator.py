"""AnomalyIntegrator: one consolidated list of what was found about one object.

It works on the findings alone and does not see the picture. Source: AnomReason, section 2.3.
"""

from __future__ import annotations

from collections.abc import Sequence

from uncanny.agents.context import ImageContext, Step, as_json
from uncanny.answers import FINDINGS, AttributeFinding, Finding, RelationFinding
from uncanny.schema import SceneObject


async def integrate(
    image: ImageContext,
    subject: SceneObject,
    attributes: Sequence[AttributeFinding],
    relations: Sequence[RelationFinding],
) -> tuple[Finding, ...]:
    """The merged findings.

    Where nothing was found there is nothing to merge, and no call is made: an integrator that sees neither
    picture nor findings could only invent some.
    """
    if not attributes and not relations:
        return ()
    described = as_json(subject)
    merge = Step("AnomalyIntegrator", 1, "integrate_merge", subject.name, sees_image=False)
    notes = await image.text(
        merge, object=described, attributes=as_json(attributes), relations=as_json(relations)
    )
    listing = Step("AnomalyIntegrator", 2, "integrate_list", subject.name, sees_image=False)
    return await image.items(listing, FINDINGS, object=described, notes=notes)
