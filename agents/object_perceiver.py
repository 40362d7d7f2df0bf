"""ObjectPerceiver: which objects, people and body parts are in the picture?

Asked `repeats` times in different words, since what one look misses another finds; the drafts are merged.
Source: AnomReason, section 2.1.
"""

from __future__ import annotations

import asyncio

from uncanny.agents.context import ImageContext, Step
from uncanny.agents.object_list import merge_objects
from uncanny.answers import OBJECTS
from uncanny.schema import SceneObject

WORDINGS = 3


async def perceive(image: ImageContext) -> tuple[SceneObject, ...]:
    """All objects found by any draft; empty when every draft is. Raises when one of the drafts fails."""
    drafts = await asyncio.gather(
        *(_draft(image, number) for number in range(image.config.repeats)), return_exceptions=True
    )
    # All drafts come back before a failure is raised: what was paid for is kept for the next try.
    for draft in drafts:
        if isinstance(draft, BaseException):
            raise draft
    return merge_objects(draft for draft in drafts if not isinstance(draft, BaseException))


async def _draft(image: ImageContext, number: int) -> tuple[SceneObject, ...]:
    step = Step("ObjectPerceiver", 1, f"perceive_{number % WORDINGS + 1}", sample=number)
    return await image.items(step, OBJECTS, draft=str(number + 1), drafts=str(image.config.repeats))
