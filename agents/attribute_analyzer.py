"""AttributeAnalyzer: what about one object, taken by itself, cannot be real?

First a free look, then a check of every claim against the picture. Source: AnomReason, section 2.2.
"""

from __future__ import annotations

from uncanny.agents.config import AnnotateConfig
from uncanny.agents.context import ImageContext, as_json
from uncanny.agents.steps import ATTRIBUTE_LOOK, ATTRIBUTE_VERIFY
from uncanny.answers import AttributeFinding
from uncanny.schema import SceneObject


async def analyze_attributes(
    image: ImageContext[AnnotateConfig], subject: SceneObject
) -> tuple[AttributeFinding, ...]:
    """Verified findings about `subject` alone; empty when nothing is wrong with it."""
    name, description = subject.name, as_json(subject)
    notes = await image.text(ATTRIBUTE_LOOK, subject=name, object=description)
    return await image.items(ATTRIBUTE_VERIFY, subject=name, object=description, notes=notes)
