"""SceneScanner: what is wrong with the picture as a whole, and belongs to no single object?

Optional, off by default: the authors' released code runs three scans, the paper describes none.
"""

from __future__ import annotations

from uncanny.agents.context import ImageContext, Step
from uncanny.answers import FINDINGS, Finding


async def scan_scene(image: ImageContext, number: int) -> tuple[Finding, ...]:
    """Findings of scan `number`, counted from 0."""
    step = Step("SceneScanner", 1, "scan", sample=number)
    return await image.items(step, FINDINGS, scan=str(number + 1), scans=str(image.config.scene_scans))
