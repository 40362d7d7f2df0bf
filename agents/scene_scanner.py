"""SceneScanner: what is wrong in the picture, seen by one open look at the whole of it?

In the paper's schedule it is off by default, since the paper describes none (the authors' released code runs
three). In the packed one it looks once, and finds what no list of objects has. The single schedule is
nothing but such a look, answered by the whole list of anomalies.
"""

from __future__ import annotations

from uncanny.agents.common.annotate_context import Context, PackedState, ScanState, Sighting, as_findings
from uncanny.agents.steps import LIST_ALL, SCAN, ListStep
from uncanny.answers.forms import LISTED
from uncanny.answers.lists import read_first
from uncanny.answers.packed import Fault


async def scan_scene(state: ScanState, image: Context) -> ScanState:
    """`findings` of one scan."""
    return {"findings": list(await image.items(SCAN, sample=state["order"]))}


async def look_at_image(step: ListStep[Fault], state: ScanState, image: Context) -> Sighting:
    """What is found wrong in the whole picture where it is asked about by `step`."""
    faults = await image.items(step, sample=state["order"])
    return {"findings": as_findings(step.agent, faults, image)}


async def list_anomalies(_state: PackedState, image: Context) -> PackedState:
    """`anomalies`: all that one look finds, in one call."""
    listed = await image.generate(
        LIST_ALL,
        image.opening((image.image,), image.prompts[LIST_ALL.prompt].fill(), shared=0),
        lambda text: read_first(text, LISTED),
        repair=image.repair("repair"),
    )
    image.leave_out(LISTED.key, listed.left_out)
    by = (LIST_ALL.agent,)
    return {"objects": [], "anomalies": [each.model_copy(update={"found_by": by}) for each in listed.items]}
