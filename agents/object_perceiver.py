"""ObjectPerceiver: which objects, people and body parts are in the picture?

Asked `repeats` times in different words, since one look finds what another misses. The drafts are merged into
one list: the union, with equal names taken for one object. Source: AnomReason, section 2.1. In the packed
schedule the first draft and the scanner's open look are one question, if one model is asked for both.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

from uncanny.agents.common.annotate_context import (
    AnnotateState,
    Context,
    PackedState,
    Sighting,
    as_findings,
)
from uncanny.agents.steps import LOOK, PERCEIVE, SCAN_IMAGE, TAKE_INVENTORY
from uncanny.answers.boxes import overlap
from uncanny.answers.packed import read_look
from uncanny.schema import SceneObject

# Intersection over union of two boxes from which on they are taken for one thing's.
SAME_PLACE: Final = 0.75
# Of all drafts together: each question about relations names them all. As high as the limit on objects goes.
MOST_NAMED: Final = 1_000

_ARTICLE = re.compile(r"^(?:the|an?)\s+")


async def perceive(_state: AnnotateState, image: Context) -> AnnotateState:
    """`objects` of any draft up to the limit, and those above it, `cut`. Raises when one draft fails."""
    drafts = await asyncio.gather(
        *(image.items(PERCEIVE, sample=number) for number in range(image.config.repeats)),
        return_exceptions=True,
    )
    # All drafts come back before a failure is raised: what was paid for is kept for the next try.
    for draft in drafts:
        if isinstance(draft, BaseException):
            raise draft
    merged = merge_objects(draft for draft in drafts if not isinstance(draft, BaseException))
    objects, cut = _examined(merged, image)
    return {"objects": objects, "cut": cut}


async def take_inventory(state: PackedState, image: Context) -> PackedState:
    """The same with boxes, for the packed schedule."""
    return await _with_drafts(state, image, jointly=False)


async def look_once(state: PackedState, image: Context) -> PackedState:
    """The same, the first draft and the first open look at the image in one question.

    What is found there is the scanner's, in `sightings`.
    """
    return await _with_drafts(state, image, jointly=True)


async def _with_drafts(_state: PackedState, image: Context, *, jointly: bool) -> PackedState:
    seen: list[Sighting] = []

    async def draft(number: int) -> list[SceneObject]:
        if not jointly or number:
            items = await image.items(TAKE_INVENTORY, sample=number)
        else:
            answer = await image.answer(LOOK, read_look)
            for what, left_out in answer.left_out.items():
                image.leave_out(what, left_out)
            seen.append({"findings": as_findings(SCAN_IMAGE.agent, answer.faults, image), "order": 0})
            items = answer.inventory
        return [
            SceneObject(name=each.name, description=each.description, sort=each.sort, box=image.box(each.box))
            for each in items
        ]

    drafts = await asyncio.gather(*map(draft, range(image.config.repeats)), return_exceptions=True)
    for each in drafts:
        if isinstance(each, BaseException):
            raise each
    merged = merge_located(each for each in drafts if not isinstance(each, BaseException))
    objects, cut = _examined(merged, image)
    return {"objects": objects, "cut": cut, "sightings": seen}


def _examined(objects: Sequence[SceneObject], image: Context) -> tuple[list[SceneObject], list[SceneObject]]:
    """The objects that are examined, and those known by name alone; what is beyond these is counted."""
    image.leave_out("objects", max(0, len(objects) - MOST_NAMED))
    limit = image.config.max_objects
    return list(objects[:limit]), list(objects[limit:MOST_NAMED])


def merge_located(drafts: Iterable[Sequence[SceneObject]]) -> list[SceneObject]:
    """Union over drafts, in order of first mention.

    Two entries of different drafts are one object where their names are equal, or else where their boxes
    overlap by `SAME_PLACE`. Name and box are the first mention's, the description is the longest.
    """
    merged: list[SceneObject] = []
    places: dict[str, int] = {}
    for draft in drafts:
        before, taken = len(merged), set[int]()
        for item in draft:
            key = object_key(item.name)
            place = places.get(key)
            if place is None:
                place = _same_place(item, merged[:before], taken)
            if place is None:
                places[key] = len(merged)
                merged.append(item)
                continue
            places.setdefault(key, place)
            taken.add(place)
            known = merged[place]
            longest = max(known.description, item.description, key=len)
            merged[place] = known.model_copy(update={"description": longest, "box": known.box or item.box})
    return merged


def _same_place(item: SceneObject, earlier: Sequence[SceneObject], taken: set[int]) -> int | None:
    """The place of the object of earlier drafts whose box is that of `item`."""
    if item.box is None:
        return None
    overlaps = [
        (overlap(each.box, item.box), -place)
        for place, each in enumerate(earlier)
        if each.box is not None and place not in taken
    ]
    best, place = max(overlaps, default=(0.0, 0))
    return -place if best >= SAME_PLACE else None


def merge_objects(drafts: Iterable[Iterable[SceneObject]]) -> tuple[SceneObject, ...]:
    """Union over drafts, in order of first mention; of one object's descriptions the longest comes first.

    Different descriptions of one object are all kept, one a line; the name is its first.
    """
    names: dict[str, str] = {}
    descriptions: dict[str, list[str]] = {}
    for draft in drafts:
        for item in draft:
            key = object_key(item.name)
            names.setdefault(key, item.name)
            texts = descriptions.setdefault(key, [])
            if item.description not in texts:
                texts.append(item.description)
    return tuple(
        SceneObject(name=name, description="\n".join(sorted(descriptions[key], key=len, reverse=True)))
        for key, name in names.items()
    )


def object_key(name: str) -> str:
    """Equal for names of the same object: NFKC, case folding, no article, no white space.

    "The Cat", "cat" and "ＣＡＴ" are one object; "person on the left" and "person on the right" are two.
    """
    folded = unicodedata.normalize("NFKC", name).casefold().strip()
    without = _ARTICLE.sub("", folded)
    return "".join((without or folded).split())
