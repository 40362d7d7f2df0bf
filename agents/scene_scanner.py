"""SceneScanner: what is wrong in the picture, seen by one open look at the whole of it?

In the paper's schedule it is off by default, since the paper describes none (the authors' released code runs
three). In the packed one it looks once, and finds what no list of objects has. The single schedule is
nothing but such a look, answered by the whole list of anomalies.
"""

from __future__ import annotations

from uncanny.agents.state import Context, PackedState, ScanState, Sighting
from uncanny.agents.steps import LIST_ALL, SCAN, SCAN_OPENLY
from uncanny.answers import ANOMALIES, read_first


async def scan_scene(state: ScanState, image: Context) -> ScanState:
    """`findings` of one scan."""
    number, scans = state["order"], image.config.scene_scans
    findings = await image.items(SCAN, sample=number, scan=str(number + 1), scans=str(scans))
    return {"findings": list(findings)}


async def scan_openly(state: ScanState, image: Context) -> Sighting:
    """What one open look at the whole picture finds wrong."""
    agent, number = SCAN_OPENLY.agent, state["order"]
    findings = await image.items(SCAN_OPENLY, sample=number, box_key=image.box_key, box_rule=image.box_rule)
    return {
        "order": number,
        "findings": [
            {
                "found_by": agent,
                "objects": each.objects,
                "phenomenon": each.observed,
                "reasoning": each.explanation,
                "box": image.box(each.box),
            }
            for each in findings
        ],
        "errors": [],
        "answered": True,
    }


async def list_anomalies(_state: PackedState, image: Context) -> PackedState:
    """`anomalies`: all that one look finds, in one call."""
    listed = await image.generate(
        LIST_ALL,
        image.opening((image.image,), image.prompts[LIST_ALL.prompt].fill(), shared=0),
        lambda text: read_first(text, ANOMALIES),
        repair=image.repair("repair"),
    )
    image.leave_out(ANOMALIES.key, listed.left_out)
    by = (LIST_ALL.agent,)
    return {"objects": [], "anomalies": [each.model_copy(update={"found_by": by}) for each in listed.items]}
