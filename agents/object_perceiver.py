"""ObjectPerceiver: which objects, people and body parts are in the picture?

Asked `repeats` times in different words, since one look finds what another misses. The drafts are merged into
one list: the union, with equal names taken for one object. Source: AnomReason, section 2.1.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Iterable

from uncanny.agents.state import AnnotateState, Context
from uncanny.agents.steps import PERCEIVE
from uncanny.schema import SceneObject

_ARTICLE = re.compile(r"^(?:the|an?)\s+")


async def perceive(_state: AnnotateState, image: Context) -> AnnotateState:
    """`objects` of any draft up to the limit, and those above it, `cut`. Raises when one draft fails."""
    drafts = await asyncio.gather(
        *(_draft(image, number) for number in range(image.config.repeats)), return_exceptions=True
    )
    # All drafts come back before a failure is raised: what was paid for is kept for the next try.
    for draft in drafts:
        if isinstance(draft, BaseException):
            raise draft
    objects = merge_objects(draft for draft in drafts if not isinstance(draft, BaseException))
    limit = image.config.max_objects
    return {"objects": list(objects[:limit]), "cut": list(objects[limit:])}


async def _draft(image: Context, number: int) -> tuple[SceneObject, ...]:
    repeats = image.config.repeats
    return await image.items(PERCEIVE, sample=number, draft=str(number + 1), drafts=str(repeats))


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
