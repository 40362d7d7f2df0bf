"""SceneScanner: what is wrong with the picture as a whole, and belongs to no single object?

Optional, off by default: the authors' released code runs three scans, the paper describes none.
"""

from __future__ import annotations

from uncanny.agents.config import AnnotateConfig
from uncanny.agents.context import ImageContext
from uncanny.agents.steps import SCAN
from uncanny.answers import Finding


async def scan_scene(image: ImageContext[AnnotateConfig], number: int) -> tuple[Finding, ...]:
    """Findings of scan `number`, counted from 0."""
    scans = image.config.scene_scans
    return await image.items(SCAN, sample=number, scan=str(number + 1), scans=str(scans))
