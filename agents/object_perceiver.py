"""ObjectPerceiver: which objects, people and body parts are in the picture?

Asked `repeats` times in different words, since one look finds what another misses. The drafts are merged into
one list: the union, with equal names taken for one object. Source: AnomReason, section 2.1.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Final

from uncanny.agents.common.annotate_context import AnnotateState, Context, PackedState
from uncanny.agents.steps import PERCEIVE, TAKE_INVENTORY
from uncanny.answers.boxes import overlap
from uncanny.schema import SceneObject

# Intersection over union of two boxes from which on they are taken for one thing's, and for trustworthy.
SAME_PLACE: Final = 0.75
AGREED: Final = 0.5
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


async def take_inventory(_state: PackedState, image: Context) -> PackedState:
    """The same with boxes, for the packed schedule; `located` are objects whose place two drafts agree on."""
    drafts = await asyncio.gather(
        *(_located_draft(image, number) for number in range(image.config.repeats)), return_exceptions=True
    )
    for draft in drafts:
        if isinstance(draft, BaseException):
            raise draft
    merged, located = merge_located(draft for draft in drafts if not isinstance(draft, BaseException))
    objects, cut = _examined(merged, image)
    return {"objects": objects, "cut": cut, "located": located}


def _examined(objects: Sequence[SceneObject], image: Context) -> tuple[list[SceneObject], list[SceneObject]]:
    """The objects that are examined, and those known by name alone; what is beyond these is counted."""
    image.leave_out("objects", max(0, len(objects) - MOST_NAMED))
    limit = image.config.max_objects
    return list(objects[:limit]), list(objects[limit:MOST_NAMED])


async def _located_draft(image: Context, number: int) -> list[SceneObject]:
    items = await image.items(TAKE_INVENTORY, sample=number)
    return [
        SceneObject(name=item.name, description=item.description, box=image.box(item.box)) for item in items
    ]


def merge_located(drafts: Iterable[Sequence[SceneObject]]) -> tuple[list[SceneObject], list[str]]:
    """Union over drafts, in order of first mention, and the names of those whose boxes two drafts agree on.

    Two entries of different drafts are one object where their names are equal, or else where their boxes
    overlap by `SAME_PLACE`. Name and box are the first mention's, the description is the longest.
    """
    merged: list[SceneObject] = []
    places: dict[str, int] = {}
    located: dict[str, None] = {}
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
            if known.box and item.box and overlap(known.box, item.box) >= AGREED and place < before:
                located[known.name] = None
            longest = max(known.description, item.description, key=len)
            merged[place] = known.model_copy(update={"description": longest, "box": known.box or item.box})
    return merged, list(located)


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
