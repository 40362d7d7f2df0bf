"""AnomalyIntegrator: one consolidated list of what was found.

In the paper's schedule it is about one object, and works on the findings alone without seeing the picture
(AnomReason, section 2.3). In the packed one it sees the picture and all findings, each with a number, and
says of every number what becomes of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from uncanny.agents.common.annotate_context import (
    BatchFinding,
    Context,
    JudgedFault,
    ObjectState,
    PackedState,
)
from uncanny.agents.common.batches import WHOLE_ABOVE
from uncanny.agents.common.closer_look import Seen, after_all_looks, enlarge_findings
from uncanny.agents.common.context import as_json
from uncanny.agents.common.regions import closest_region
from uncanny.agents.steps import INTEGRATE_LIST, INTEGRATE_MERGE, JUDGE
from uncanny.answers.forms import MAX_ITEMS
from uncanny.answers.packed import JUDGEMENTS, Judgement, Numbered
from uncanny.errors import AnswerError, RequestRejectedError, StepFailedError
from uncanny.models.base import Part
from uncanny.schema import Candidate, Fate, StepError


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

    In the packed schedule it sees the picture, all findings at once, and the enlarged part of each. A finding
    that no answer accounts for stands as it is; so do all of them where the call fails, which is an error of
    the record. What was not taken on, what a closer look disproved, and what is more than one list can
    account for stays a candidate, and goes no further.
    """
    seen = after_all_looks(state)
    going = [number for number, each in seen.items() if each.fate is None]
    asked, beyond = going[:MAX_ITEMS], going[MAX_ITEMS:]
    image.leave_out("findings", len(beyond))
    errors = list[StepError]()
    entries: Sequence[Judgement] = ()
    if asked:
        # Numbers that are asked about run from 1 on, whatever was left out before.
        reader = Numbered(JUDGEMENTS, len(asked))
        await enlarge_findings([seen[number].finding for number in asked], image)
        try:
            entries = await _decide(reader, [seen[number].finding for number in asked], image)
        except StepFailedError as failed:
            entries = reader.best or ()
            # A model that leaves numbers out said what it had to say; a call that failed is asked again.
            if not entries or reader.lost or not isinstance(failed.error, AnswerError):
                errors.append(failed.record)
    faults, candidates = _judged(seen, asked, entries, image)
    regions = [image.regions[number] for number in sorted(image.regions)]
    return {"faults": faults, "candidates": candidates, "regions": regions, "errors": errors}


async def _decide(
    reader: Numbered[Judgement], findings: Sequence[BatchFinding], image: Context
) -> Sequence[Judgement]:
    """What the integrator says of findings, asked about place by place."""
    places = [_region(each, image) for each in findings]
    by_place = sorted(enumerate(findings, start=1), key=lambda each: (places[each[0] - 1], each[0]))
    rows = [
        (
            {
                "id": number,
                "part": places[number - 1] or None,
                "by": each["found_by"],
                "objects": each["objects"],
                "phenomenon": each["phenomenon"],
                "reasoning": each["reasoning"],
                "closer": each.get("closer"),
                "confidence": None if (sure := each.get("confidence")) is None else round(100 * sure),
            },
            None if places[number - 1] else each["box"],
        )
        for number, each in by_place
    ]

    async def ask(numbers: Sequence[int]) -> Sequence[Judgement]:
        extra: list[Part] = [WHOLE_ABOVE] if numbers else []
        for number in numbers:
            extra += [f"Part {number}:", image.parts[number]]
        return await image.answer(
            JUDGE,
            reader.read,
            extra=extra,
            max_output_tokens=image.config.formatter_output_tokens,
            findings=partial(image.shown, rows),
            count=str(len(findings)),
            shown=partial(_shown, numbers, image) if numbers else "",
        )

    numbers = sorted({*places} - {0})
    try:
        return await ask(numbers)
    except StepFailedError as failed:
        # Some servers take a single image a call, and say so by turning the call down.
        if not numbers or not isinstance(failed.error, RequestRejectedError):
            raise
        return await ask(())


def _region(finding: BatchFinding, image: Context) -> int:
    """The number of the enlarged part that shows a finding closest; 0 for the whole image.

    Of parts that show it alike it is the one in which it was seen.
    """
    seen_in = image.regions.get(finding.get("region") or 0)
    region = finding["box"] and closest_region(finding["box"], list(image.regions.values()))
    if region is None or (seen_in is not None and (seen_in.scale or 0.0) >= (region.scale or 0.0)):
        return seen_in.number if seen_in else 0
    return region.number


def _shown(numbers: Sequence[int], image: Context, model: str) -> str:
    parts = image.shown([(image.part_row(number, model), None) for number in numbers], model)
    return image.prompts["shown"].fill(count=str(len(numbers)), parts=parts)


def _judged(
    seen: Mapping[int, Seen], asked: Sequence[int], entries: Sequence[Judgement], image: Context
) -> tuple[list[JudgedFault], list[Candidate]]:
    """The faults that stand, in the order of their numbers, and all candidates."""
    faults: list[JudgedFault] = []
    fates: dict[int, tuple[Fate, str | None]] = {
        number: (each.fate or "left_out", each.why) for number, each in seen.items()
    }
    added: list[Candidate] = []
    for entry in entries:
        if entry.decision == "add":
            numbers: tuple[int, ...] = (len(seen) + len(added) + 1,)
            fault = _fault(numbers, entry, (), image)
            added.append(_candidate_of(fault, entry, image))
            faults.append(fault)
            continue
        numbers = tuple(sorted(asked[number - 1] for number in entry.ids))
        if entry.decision == "drop":
            fates |= dict.fromkeys(numbers, ("dropped", entry.why))
            continue
        # In the order of the model, which names the best one first.
        faults.append(_fault(numbers, entry, [seen[asked[n - 1]].finding for n in entry.ids], image))
        fates |= dict.fromkeys(numbers, ("merged", entry.why or None))
        fates[numbers[0]] = ("kept" if entry.decision == "keep" else "corrected", entry.why or None)
    accounted = {number for entry in entries for number in entry.ids}
    for place, number in enumerate(asked, start=1):
        if place not in accounted:
            finding = seen[number].finding
            fates[number] = ("unchecked", None)
            faults.append(
                {
                    "numbers": (number,),
                    "phenomenon": finding["phenomenon"],
                    "reasoning": finding["reasoning"],
                    "box": finding["box"],
                    "kind": finding.get("kind"),
                    "objects": finding["objects"],
                    "confidence": finding.get("confidence"),
                }
            )
    candidates = [each.candidate(number, *fates[number]) for number, each in seen.items()]
    return sorted(faults, key=lambda fault: fault["numbers"]), [*candidates, *added]


def _fault(
    numbers: tuple[int, ...], entry: Judgement, findings: Sequence[BatchFinding], image: Context
) -> JudgedFault:
    """What an entry that stands says; what it leaves open is that of its findings."""
    boxes = (each["box"] for each in findings if each["box"] is not None)
    objects = tuple(dict.fromkeys(name for each in findings for name in each["objects"]))
    confidences = [known for each in findings if (known := each.get("confidence")) is not None]
    fault: JudgedFault = {
        "numbers": numbers,
        "phenomenon": entry.phenomenon,
        "reasoning": entry.reasoning,
        "box": image.box_in(entry.part, entry.box) or next(boxes, None),
        "name": entry.name,
        "kind": entry.kind,
        "objects": entry.objects or objects,
        "confidence": max(confidences, default=None) if entry.confidence is None else entry.confidence,
    }
    if entry.realism is not None:
        fault["severity"] = entry.realism
    return fault


def _candidate_of(fault: JudgedFault, entry: Judgement, image: Context) -> Candidate:
    """The finding of the integrator's own that a fault is."""
    return Candidate(
        number=fault["numbers"][0],
        found_by=JUDGE.agent,
        objects=fault.get("objects", ()),
        phenomenon=fault["phenomenon"],
        reasoning=fault["reasoning"],
        box=fault["box"],
        confidence=fault.get("confidence"),
        region=entry.part if entry.part in image.regions else None,
        fate="kept",
        why=entry.why or None,
    )
