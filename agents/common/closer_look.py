"""What is looked at more closely, decided by code: which findings are taken on, which parts are enlarged for
them, and who is asked about which part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from uncanny.agents.common.annotate_context import (
    BatchFinding,
    BatchState,
    Context,
    PackedState,
    in_order,
    numbered,
)
from uncanny.agents.common.regions import Place, choose_regions, closest_region, pieces, regions_of, shows
from uncanny.agents.steps import JUDGE, LOOKS, PARTS_A_CALL
from uncanny.answers.boxes import area
from uncanny.images.parts import Survey
from uncanny.schema import Candidate, Fate, Kind, Region

# A finding that is less likely than that is padding, and so is a doubtful one beyond so many of an image.
LEAST_CONFIDENCE: Final = 0.1
DOUBTFUL: Final = 0.5
MOST_TAKEN_ON: Final = 8
# From that on a finding is not asked about again: the integrator looks at its enlarged part anyway.
SURE: Final = 0.9
# Of what kind the RelationReasoner answers doubts. It also compares a reflection that takes up such a share
# of the image; asked about every shadow and small reflection, it had nothing to say.
RELATIONAL: Final[frozenset[Kind | None]] = frozenset({"contact", "light", "perspective"})
LARGE_REFLECTION: Final = 0.03
# Questions about enlarged parts of an image that the model sees whole, where nothing in it is doubted.
QUESTIONS_ABOUT_CLEAN: Final = 2
# A finding is shown to the integrator in a part of its own where that is so many times larger than the one it
# was seen in.
CLOSER: Final = 1.5


def taken_on(findings: Sequence[BatchFinding]) -> list[int]:
    """The numbers, from 1, of the findings that go on; the others are kept as candidates.

    Those that are likely, and the likeliest of the doubtful ones, up to `MOST_TAKEN_ON` in all. One of
    unknown confidence goes on.
    """
    numbers = dict(enumerate(findings, start=1))
    likely = {n for n, each in numbers.items() if (c := each.get("confidence")) is None or c >= DOUBTFUL}
    rest = sorted(
        (-(each.get("confidence") or 0.0), number)
        for number, each in numbers.items()
        if number not in likely and (each.get("confidence") or 0.0) >= LEAST_CONFIDENCE
    )
    return sorted([*likely, *(number for _, number in rest[: max(0, MOST_TAKEN_ON - len(likely))])])


def is_doubted(finding: BatchFinding) -> bool:
    """Whether a closer look is to tell about a finding."""
    confidence = finding.get("confidence")
    return confidence is None or confidence < SURE


async def enlarge_regions(state: PackedState, image: Context) -> PackedState:
    """`regions`: the parts of the image that are enlarged; none where its pixels cannot be had any more."""
    if not image.config.max_regions:
        return {"regions": []}
    findings = numbered(state)
    numbers = taken_on(findings)
    view = image.view("AttributeAnalyzer")
    boxes = [box for n in numbers if (box := findings[n - 1]["box"]) is not None]
    doubted = [Place(piece) for box in boxes for piece in pieces(box, view)]
    things = [Place(each.box, each.name) for each in state.get("objects", ()) if each.box is not None]
    most = image.config.max_regions
    if not numbers and not view.is_large:
        compared = bool(_to_compare(state, image))
        most = min(most, (QUESTIONS_ABOUT_CLEAN - compared) * PARTS_A_CALL)

    def choose(survey: Survey) -> list[Region]:
        return choose_regions(doubted, things, view, most, survey.detail)

    agents = (*(step.agent for step in LOOKS if step.per != "scan"), JUDGE.agent)
    return {"regions": await image.enlarge(choose, view, agents)}


async def enlarge_findings(findings: Sequence[BatchFinding], image: Context) -> None:
    """Cut out the places of findings that were seen in no part, or in one that shows much around them."""
    view, known = image.view(JUDGE.agent), list(image.regions.values())
    places = []
    for each in findings:
        if each["box"] is None or not image.config.max_regions:
            continue
        region, scale = closest_region(each["box"], known), view.own_scale(each["box"])
        if scale is not None and (region is None or scale >= CLOSER * (region.scale or 1.0)):
            places.append(Place(each["box"]))
    if not places:
        return

    def choose(_survey: Survey) -> list[Region]:
        chosen = choose_regions(places, (), view, image.config.max_regions, None)
        first = max(image.regions, default=0)
        return [each.model_copy(update={"number": first + each.number}) for each in chosen]

    await image.enlarge(choose, view, (JUDGE.agent,))


def _to_compare(state: PackedState, image: Context) -> set[str]:
    """The names of the objects that are reflections worth a question of their own."""
    whole = image.pixels[0] * image.pixels[1]
    return {
        each.name
        for each in state.get("objects", ())
        if each.sort == "reflection" and each.box is not None and area(each.box) >= LARGE_REFLECTION * whole
    }


def questions(state: PackedState, image: Context) -> tuple[list[BatchState], BatchState | None]:
    """The batches of enlarged parts that are examined by themselves, and the one about relations.

    A doubt is answered by one agent: about contact, light and perspective by the RelationReasoner, in the
    whole image if no part shows its place.
    """
    regions, findings = state["regions"], numbered(state)
    boxes, going = {each.number: each.box for each in regions}, taken_on(findings)
    view = image.view("AttributeAnalyzer")
    doubts: dict[bool, dict[int, list[tuple[int, BatchFinding]]]] = {False: {}, True: {}}
    for number in going:
        finding = findings[number - 1]
        if not is_doubted(finding):
            continue
        showing = regions_of(finding["box"], regions, view) if finding["box"] else []
        relational = finding.get("kind") in RELATIONAL
        for region in [each.number for each in showing] or ([0] if relational else []):
            doubts[relational].setdefault(region, []).append((number, finding))
    reflections = _to_compare(state, image)
    mirrors = {each.number for each in regions if not reflections.isdisjoint(each.objects)}
    # The doubted places come before those that are only there to be compared.
    related = sorted(
        mirrors | doubts[True].keys() - {0}, key=lambda number: (number not in doubts[True], number)
    )
    for number in related[PARTS_A_CALL:]:
        # There is no room for it there, and each doubt is answered.
        doubts[False].setdefault(number, []).extend(doubts[True].pop(number, ()))
    related = related[:PARTS_A_CALL]
    alone = [
        each.number
        for each in regions
        if doubts[False].get(each.number) or each.why == "tile" or not reflections.issuperset(each.objects)
    ]
    if reflections - {name for each in regions for name in each.objects}:
        # Too large to be enlarged, it is looked at in the whole image.
        doubts[True].setdefault(0, [])

    def known(numbers: Sequence[int], relational: bool) -> dict[int, list[str]]:
        """What parts show that their question need not be told again; 0 is for what none of them shows."""
        texts: dict[int, list[str]] = {}
        asked = {each for doubted in doubts[relational].values() for each, _ in doubted}
        for each in going:
            box, text = findings[each - 1]["box"], findings[each - 1]["phenomenon"]
            showing = [number for number in numbers if box is not None and shows(boxes[number], box)]
            for number in (showing or [0]) if each not in asked else ():
                texts.setdefault(number, []).append(text)
        return texts

    def batch(order: int, numbers: Sequence[int], relational: bool) -> BatchState:
        return {
            "image": state["image"],
            "order": order,
            "regions": tuple(numbers),
            "doubts": doubts[relational],
            "known": known(numbers, relational),
            "objects": state["objects"],
        }

    batches = [batch(order, numbers, False) for order, numbers in enumerate(evenly(alone))]
    return batches, batch(0, related, True) if related or doubts[True] else None


def evenly(numbers: Sequence[int]) -> list[Sequence[int]]:
    """In batches of at most `PARTS_A_CALL`, as equal in size as can be."""
    count = -(-len(numbers) // PARTS_A_CALL)
    ends = [round(len(numbers) * part / max(count, 1)) for part in range(count + 1)]
    return [numbers[first:last] for first, last in pairwise(ends)]


@dataclass(frozen=True, slots=True)
class Seen:
    """A finding after all looks at it; `first_confidence` is that of the first, if there was another.

    `fate` and `why` are set where it goes no further.
    """

    finding: BatchFinding
    first_confidence: float | None = None
    fate: Fate | None = None
    why: str | None = None

    def candidate(self, number: int, fate: Fate, why: str | None) -> Candidate:
        finding = self.finding
        return Candidate(
            number=number,
            found_by=finding["found_by"],
            objects=finding["objects"],
            phenomenon=finding["phenomenon"],
            reasoning=finding["reasoning"],
            box=finding["box"],
            confidence=finding.get("confidence"),
            first_confidence=self.first_confidence,
            region=finding.get("region"),
            fate=fate,
            why=why,
        )


def after_all_looks(state: PackedState) -> dict[int, Seen]:
    """All findings about an image by their numbers, from 1, those of the whole image first.

    What the closer look says of a finding takes its place. Where it disproves one, it is dropped for that
    reason; of two answers the more confident one counts.
    """
    findings, whole = numbered(state), numbered(state, of_parts=False)
    going = {*taken_on(whole)}
    seen: dict[int, Seen] = {}
    for number, finding in enumerate(findings, start=1):
        confidence = finding.get("confidence")
        unlikely = confidence is not None and confidence < LEAST_CONFIDENCE
        stays = number in going if number <= len(whole) else not unlikely
        seen[number] = Seen(finding) if stays else Seen(finding, fate="left_out")
    again: dict[int, BatchFinding] = {}
    for sighting in in_order(state):
        for each in sighting.get("second", ()):
            known = again.get(each["number"])
            if known is None or _likely(known) < _likely(each["finding"]):
                again[each["number"]] = each["finding"]
    for number, finding in again.items():
        if number in seen:
            seen[number] = _looked_at_again(seen[number], finding)
    return seen


def _likely(finding: BatchFinding) -> float:
    """By what one of two answers counts; one of unknown confidence goes before one that disproves."""
    confidence = finding.get("confidence")
    return LEAST_CONFIDENCE if confidence is None else confidence


def _looked_at_again(seen: Seen, second: BatchFinding) -> Seen:
    first, confidence = seen.finding, second.get("confidence")
    if confidence is not None and confidence < LEAST_CONFIDENCE:
        finding: BatchFinding = {**first, "confidence": confidence, "region": second.get("region")}
        return replace(
            seen,
            finding=finding,
            first_confidence=first.get("confidence"),
            fate="dropped",
            why=second["phenomenon"],
        )
    finding = {**first, "region": second.get("region")}
    if confidence is not None:
        finding["confidence"] = confidence
    if confidence is not None and confidence >= max(DOUBTFUL, first.get("confidence") or 0.0):
        finding |= {
            "phenomenon": second["phenomenon"],
            "reasoning": second["reasoning"],
            "objects": second["objects"] or first["objects"],
            "box": second["box"] or first["box"],
            "kind": second.get("kind") or first.get("kind"),
        }
    else:  # it may say why all is well, which is no text for a fault
        finding["closer"] = second["phenomenon"]
    return replace(seen, finding=finding, first_confidence=first.get("confidence"))
