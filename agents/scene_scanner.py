"""SceneScanner: what is wrong with the picture as a whole, and belongs to no single object?

Optional, off by default: the authors' released code runs three scans, the paper describes none.
"""

from __future__ import annotations

from uncanny.agents.state import Context, ScanState
from uncanny.agents.steps import SCAN


async def scan_scene(state: ScanState, image: Context) -> ScanState:
    """`findings` of one scan."""
    number, scans = state["order"], image.config.scene_scans
    findings = await image.items(SCAN, sample=number, scan=str(number + 1), scans=str(scans))
    return {"findings": list(findings)}
