"""Agents and a node for the schedule `packed`, and nodes for `paper`."""

from __future__ import annotations

from uncanny import SceneObject
from uncanny.extend import (
    FAULTS,
    FINDINGS,
    PART_FAULTS,
    AnnotateContext,
    AnnotateNodes,
    AnnotateState,
    BatchFinding,
    BatchState,
    ListStep,
    ObjectState,
    OwnAgent,
    PackedNodes,
    Region,
    ScanState,
    SecondLook,
    Sighting,
    Step,
    as_findings,
    look_at_parts,
)

LIGHT = OwnAgent(
    name="LightReader",
    prompt="""
Where does the light come from, and what in the picture disagrees with it?

- "objects": the things concerned, by short names.
- "observed": what is visibly wrong, and where.
- "explanation": why it cannot be so.
- "$box_key": the faulty place alone. $box_rule

Answer with JSON: {"answer": {"findings": [
  {"objects": ["…"], "observed": "…", "explanation": "…", "$box_key": […]}
]}}. If nothing is wrong: {"answer": {"findings": []}}
""",
)


async def measure(_state: ScanState, image: AnnotateContext) -> Sighting:
    """Asks nobody: pictures of a single row of pixels have nothing to be looked at."""
    width, height = image.pixels
    if min(width, height) > 1:
        return {"findings": []}
    line: BatchFinding = {
        "found_by": "Measurer",
        "objects": ("image",),
        "phenomenon": f"It is {width} × {height} pixels.",
        "reasoning": "A line shows no scene.",
        "box": (0, 0, width, height),
    }
    return {"findings": [line]}


MEASURER = OwnAgent(name="Measurer", look=measure)


async def name_shadows(state: BatchState, _image: AnnotateContext) -> Sighting:
    """Asks nobody: objects that are named as shadows, and lie in none of the image; once for all batches."""
    shadows = [each for each in state["objects"] if "shadow" in each.name and each.box is None]
    lost = [each.name for each in shadows if state["order"] == 0]
    findings: list[BatchFinding] = [
        {
            "found_by": "ShadowNamer",
            "objects": (name,),
            "phenomenon": f"{name} cannot be located.",
            "reasoning": "A shadow falls somewhere.",
            "box": None,
        }
        for name in lost
    ]
    return {"findings": findings}


SHADOW_NAMER = OwnAgent(name="ShadowNamer", per="batch", look=name_shadows)

CLOSE = ListStep(
    "CloseReader",
    1,
    "close",
    sees_image=False,
    text='$listed\n\nWhich edges are wrong? Name each "part" and its "doubt". "$box_key": $part_rule $doubts',
    form=PART_FAULTS,
)


async def look_closely(state: BatchState, image: AnnotateContext) -> Sighting:
    """The usual question about enlarged parts with a prompt of the lab's own, about tiles alone.

    Doubts are for others to answer: what it says of them is new.
    """
    regions: list[Region] = [image.regions[number] for number in state["regions"]]
    tiles = tuple(each.number for each in regions if each.why == "tile")
    seen = await look_at_parts(CLOSE, {**state, "regions": tiles}, image)
    answers: list[SecondLook] = seen.get("second", [])
    return {**seen, "findings": [*seen["findings"], *(each["finding"] for each in answers)], "second": []}


CLOSE_READER = OwnAgent(name="CloseReader", per="batch", look=look_closely)

NOTES = Step("CalmScanner", 1, "notes", text="Describe the light in $limit words at most.")
CALM = ListStep("CalmScanner", 2, "calm", text="Which of this cannot be?\n$notes", form=FAULTS)


async def scan_calmly(state: ScanState, image: AnnotateContext) -> Sighting:
    """Two calls in place of the open look at the whole picture: notes, then the faults among them."""
    notes = await image.text(NOTES, sample=state["order"])
    faults = await image.items(CALM, sample=state["order"], notes=notes)
    return {"findings": as_findings(CALM.agent, faults, image)}


CALM_NODES: PackedNodes = {"scan": scan_calmly}


async def scan_paper(_state: ScanState, image: AnnotateContext) -> ScanState:
    """The scan of the schedule `paper`, with a prompt of the lab's own."""
    step = ListStep("CalmScanner", 1, "calm", text="What about the light cannot be?", form=FINDINGS)
    return {"findings": list(await image.items(step))}


async def one_object(_state: AnnotateState, _image: AnnotateContext) -> AnnotateState:
    """Asks nobody: the whole picture is the one object."""
    return {"objects": [SceneObject(name="picture", description="the whole picture")], "cut": []}


async def no_relations(_state: ObjectState, _image: AnnotateContext) -> ObjectState:
    """One object has no others to relate to."""
    return {"relations": []}


PAPER_NODES: AnnotateNodes = {"perceive": one_object, "relations": no_relations, "scan": scan_paper}
