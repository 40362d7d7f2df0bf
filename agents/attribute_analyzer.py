"""AttributeAnalyzer: what about one object, taken by itself, cannot be real?

First a free look, then a check of every claim against the picture. Source: AnomReason, section 2.2.
"""

from __future__ import annotations

from uncanny.agents.context import ImageContext, Step, as_json
from uncanny.answers import ATTRIBUTES, AttributeFinding
from uncanny.schema import SceneObject


async def analyze_attributes(image: ImageContext, subject: SceneObject) -> tuple[AttributeFinding, ...]:
    """Verified findings about `subject` alone; empty when nothing is wrong with it."""
    described = as_json(subject)
    look = Step("AttributeAnalyzer", 1, "attribute_look", subject.name)
    notes = await image.text(look, object=described)
    verify = Step("AttributeAnalyzer", 2, "attribute_verify", subject.name)
    return await image.items(verify, ATTRIBUTES, object=described, notes=notes)
