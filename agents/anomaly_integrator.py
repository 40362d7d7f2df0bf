"""AnomalyIntegrator: one consolidated list of what was found.

In the paper's schedule it is about one object, and works on the findings alone without seeing the picture
(AnomReason, section 2.3). In the packed one it sees the picture and all findings, each with a number, and
says of every number what becomes of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from uncanny.agents.common.annotate_context import (
    BatchFinding,
    Context,
    JudgedFault,
    ObjectState,
    PackedState,
    numbered,
)
from uncanny.agents.common.context import as_json
from uncanny.agents.object_perceiver import AGREED
from uncanny.agents.steps import INTEGRATE_LIST, INTEGRATE_MERGE, JUDGE
from uncanny.answers.boxes import area, overlap
from uncanny.answers.forms import MAX_ITEMS
from uncanny.answers.packed import JUDGEMENTS, Judgement, Numbered
from uncanny.errors import AnswerError, RequestRejectedError, StepFailedError
from uncanny.models.base import SentImage
from uncanny.schema import Box, Candidate, Fate, StepError

MOST_PARTS: Final = 4
# Findings and objects whose boxes are compared, each with each: more come of a model that repeats itself.
MOST_COMPARED: Final = 200
# As a share of the picture; and how many objects' boxes meet there, its own included.
SMALL: Final = 1 / 50
CROWD: Final = 3


async def integrate(state: ObjectState, image: Context) -> ObjectState:
    """`findings`: the attributes and relations of one object, merged.

    Without findings there is nothing to merge, and no call is made: an integrator that sees neither picture
    nor findings could only invent some.
    """
    attributes, relations = state["attributes"], state["relations"]
    if not attributes and not relations:
        return {"findings": []}
    name, description = state["subject"].name, as_json(state["subject"])
    notes = await image.text(
        INTEGRATE_MERGE,
        subject=name,
        object=description,
        attributes=as_json(attributes),
        relations=as_json(relations),
    )
    merged = await image.items(INTEGRATE_LIST, subject=name, object=description, notes=notes)
    return {"findings": list(merged)}


async def judge(state: PackedState, image: Context) -> PackedState:
    """`faults` that stand, and `candidates`: every finding with what became of it.

    In the packed schedule it sees the picture, and all findings at once. A finding that no answer accounts
    for stands as it is; so do all of them where the call fails, which is an error of the record. Of more than
    one list can account for the rest stays a candidate, and goes no further.
    """
    everything = numbered(state)
    findings, beyond = everything[:MAX_ITEMS], everything[MAX_ITEMS:]
    image.leave_out("findings", len(beyond))
    if not findings:
        return {"faults": [], "candidates": []}
    reader, errors = Numbered(JUDGEMENTS, len(findings)), list[StepError]()
    places = crowded_places(state, findings, image)
    parts = await image.enlarged(places, JUDGE.agent)
    rows = [
        (
            {
                "id": number,
                "by": each["found_by"],
                "objects": each["objects"],
                "phenomenon": each["phenomenon"],
                "reasoning": each["reasoning"],
            },
            each["box"],
        )
        for number, each in enumerate(findings, start=1)
    ]

    async def ask(parts: Sequence[SentImage]) -> tuple[Judgement, ...]:
        return await image.answer(
            JUDGE,
            reader.read,
            extra=parts,
            max_output_tokens=image.config.formatter_output_tokens,
            findings=partial(image.shown, rows),
            count=str(len(findings)),
            parts=partial(_parts, places, findings, image) if parts else "",
        )

    try:
        try:
            entries = await ask(parts)
        except StepFailedError as failed:
            # Some servers take a single image a call, and say so by turning the call down.
            if not parts or not isinstance(failed.error, RequestRejectedError):
                raise
            entries = await ask(())
    except StepFailedError as failed:
        entries = reader.best or ()
        # A model that leaves numbers out said what it had to say; a call that failed is asked again.
        if not entries or not isinstance(failed.error, AnswerError):
            errors.append(failed.record)
    faults, candidates = _judged(findings, entries, image)
    candidates += [
        Candidate(number=number, **each, fate="left_out")
        for number, each in enumerate(beyond, start=len(findings) + 1)
    ]
    return {"faults": faults, "candidates": candidates, "errors": errors}


def _judged(
    findings: Sequence[BatchFinding], entries: Sequence[Judgement], image: Context
) -> tuple[list[JudgedFault], list[Candidate]]:
    faults: list[JudgedFault] = []
    fates: dict[int, tuple[Fate, str | None]] = {}
    for entry in entries:
        numbers = tuple(sorted(entry.ids))
        if entry.decision == "drop":
            fates |= dict.fromkeys(numbers, ("dropped", entry.why))
            continue
        boxes = (findings[number - 1]["box"] for number in numbers)
        box = image.box(entry.box) or next((box for box in boxes if box is not None), None)
        first = findings[entry.ids[0] - 1]  # as the model put them, not as they are numbered
        faults.append(
            {
                "numbers": numbers,
                "phenomenon": entry.phenomenon or first["phenomenon"],
                "reasoning": entry.reasoning or first["reasoning"],
                "box": box,
            }
        )
        fates |= dict.fromkeys(numbers, ("merged", entry.why or None))
        fates[numbers[0]] = ("kept" if entry.decision == "keep" else "corrected", entry.why or None)
    for number, each in enumerate(findings, start=1):
        if number not in fates:
            fates[number] = ("unchecked", None)
            faults.append(
                {
                    "numbers": (number,),
                    "phenomenon": each["phenomenon"],
                    "reasoning": each["reasoning"],
                    "box": each["box"],
                }
            )
    candidates = [
        Candidate(number=number, **each, fate=fates[number][0], why=fates[number][1])
        for number, each in enumerate(findings, start=1)
    ]
    return sorted(faults, key=lambda fault: fault["numbers"]), candidates


def crowded_places(state: PackedState, findings: Sequence[BatchFinding], image: Context) -> list[Box]:
    """The parts of the picture worth showing enlarged: small or crowded ones whose place is certain.

    It is certain where two answers agree: boxes of two agents, or of two drafts of the object list. The
    smallest come first, `MOST_PARTS` of them.
    """
    findings = findings[:MOST_COMPARED]
    objects = [each for each in (*state["objects"], *state["cut"]) if each.box is not None][:MOST_COMPARED]
    located = set(state.get("located", ()))
    certain: list[Box] = []
    for place, finding in enumerate(findings):
        others = [
            *(
                each["box"]
                for each in (*findings[:place], *findings[place + 1 :])
                if each["found_by"] != finding["found_by"]
            ),
            *(each.box for each in objects),
        ]
        box = finding["box"]
        if box is not None and any(other is not None and overlap(box, other) >= AGREED for other in others):
            certain.append(box)
            continue
        certain += [
            each.box
            for each in objects
            if each.box and each.name in finding["objects"] and each.name in located
        ]
    whole = image.pixels[0] * image.pixels[1]
    chosen: list[Box] = []
    for box in sorted(set(certain), key=lambda each: (area(each), each)):
        crowd = sum(1 for each in objects if each.box and overlap(box, each.box) > 0)
        small = area(box) <= SMALL * whole
        if (small or crowd > CROWD) and all(overlap(box, each) < AGREED for each in chosen):
            chosen.append(box)
            if len(chosen) == MOST_PARTS:
                break
    return chosen


def _parts(places: Sequence[Box], findings: Sequence[BatchFinding], image: Context, model: str) -> str:
    def about(place: Box) -> list[int]:
        boxes = [each["box"] for each in findings]
        return [number for number, box in enumerate(boxes, start=1) if box and overlap(box, place) >= AGREED]

    boxes = image.shown([({"findings": about(place)}, place) for place in places], model)
    return image.prompts["parts"].fill(parts=boxes)
