"""One list of objects out of several drafts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from uncanny.schema import SceneObject

_ARTICLE = re.compile(r"^(?:the|an?)\s+")


def object_key(name: str) -> str:
    """Equal for names of the same object: NFKC, case folding, no article, no white space.

    "The Cat", "cat" and "ＣＡＴ" are one object; "person on the left" and "person on the right" are two.
    """
    folded = unicodedata.normalize("NFKC", name).casefold().strip()
    without = _ARTICLE.sub("", folded)
    return "".join((without or folded).split())


def merge_objects(drafts: Iterable[Iterable[SceneObject]]) -> tuple[SceneObject, ...]:
    """Union over drafts, in order of first mention; of one object's descriptions the longest comes first.

    Different descriptions of one object are all kept, one a line; the name is the first one given.
    """
    names: dict[str, str] = {}
    descriptions: dict[str, list[str]] = {}
    for draft in drafts:
        for found in draft:
            key = object_key(found.name)
            names.setdefault(key, found.name)
            texts = descriptions.setdefault(key, [])
            if found.description not in texts:
                texts.append(found.description)
    return tuple(
        SceneObject(name=name, description="\n".join(sorted(descriptions[key], key=len, reverse=True)))
        for key, name in names.items()
    )
